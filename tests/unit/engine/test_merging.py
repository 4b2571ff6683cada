"""What lands next: the furthest batch that passed, with everything that it stands on, in one update."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.landing import Landing, Phase
from mergeyard.domain.states import CheckState, PrState, QueueState
from mergeyard.domain.targets import named
from tests.support.builders import Yard, a_config, a_parallel_yard, a_yard


def landing_of(yard: Yard) -> Landing:
    assert yard.queue.landing is not None
    return yard.queue.landing


def lands(yard: Yard) -> tuple[int, ...]:
    """The numbers of those that are about to land."""
    landing = yard.queue.landing
    return () if landing is None else tuple(member.number for member in landing.members)


def all_pass(yard: Yard, *numbers: int) -> None:
    yard.tell(*[yard.verdict(CheckState.PASSED, number) for number in numbers])


# What lands.


def test_one_that_passed_at_the_front_lands():
    yard = a_yard(prs=2)
    yard.passes(1)
    assert lands(yard) == (1,)


def test_one_that_passed_behind_others_waits_for_them():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert lands(yard) == ()


def test_everything_up_to_the_furthest_that_passed_lands_in_one_update():
    yard = a_yard(prs=3)
    yard.passes(2)
    yard.passes(1)
    assert lands(yard) == (1, 2)


def test_all_that_are_green_at_once_land_in_one_update():
    yard = a_yard(prs=3)
    tip = yard.run_of(3).tip
    all_pass(yard, 1, 2, 3)
    yard.perform_all()
    assert (yard.host.tip, set(yard.ended)) == (tip, {1, 2, 3})


def test_they_merge_whatever_order_the_results_come_in():
    yard = a_yard(prs=3)
    for number in 3, 1, 2:
        yard.passes(number)
        yard.perform_all()
    assert [yard.state(number) for number in (1, 2, 3)] == [PrState.MERGED] * 3


def test_with_optimistic_merging_one_that_passed_brings_all_beneath_it():
    yard = a_yard(prs=2, depth=0)
    yard.passes(2)
    assert lands(yard) == (1, 2)


def test_in_parallel_mode_only_what_it_depends_on_comes_along():
    yard = a_parallel_yard("x", "y", "x")
    all_pass(yard, 1, 2, 3)
    assert lands(yard) == (1, 3)


def test_a_landing_moves_the_target_from_the_tip_that_we_know_to_the_tip_that_was_tested():
    yard = a_yard(prs=2)
    run = yard.run_of(2)
    all_pass(yard, 1, 2)
    landing = landing_of(yard)
    assert (landing.expected, landing.steps, landing.run, landing.tested_tip) == (
        *(yard.host.tip, run.chain),
        *(run.id, run.tip),
    )


def test_a_landing_of_the_rest_goes_on_from_what_landed():
    yard = a_yard(prs=2)
    run = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    assert (landing_of(yard).expected, landing_of(yard).steps) == (run.chain[0].commit, run.chain[1:])


def test_a_landing_uses_the_method_of_its_run():
    yard = a_yard(prs=1, landing=LandingMethod.PROVIDER_MERGE)
    yard.tell(e.SettingsSaved(config=a_config(landing=LandingMethod.TESTED_COMMIT)))
    yard.passes(1)
    assert landing_of(yard).method is LandingMethod.PROVIDER_MERGE


def test_landings_are_numbered():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    assert landing_of(yard).number == 2


def test_of_interchangeable_commits_the_one_lands_that_others_stand_on():
    yard = a_yard(prs=2)
    behind = yard.run_of(2)
    yard.restart(1)
    yard.build()
    yard.passes(1)
    assert landing_of(yard).steps == behind.chain[:1]


def test_without_others_the_tested_commit_itself_lands():
    yard = a_yard(prs=1)
    yard.restart(1)
    yard.build()
    yard.passes(1)
    assert landing_of(yard).steps == yard.run_of(1).chain


# From the choice to the intent.


def test_before_the_intent_is_saved_its_prs_are_read():
    yard = a_yard(prs=1)
    yard.passes(1)
    assert (landing_of(yard).phase, yard.outstanding(t.Land)) == (Phase.READING, ())


def test_the_intent_is_saved_when_its_prs_were_read():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.perform(t.ReadPulls)
    assert landing_of(yard).phase is Phase.INTENDED


def test_a_landing_that_is_still_being_read_grows_when_more_passed():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.passes(2)
    assert (lands(yard), landing_of(yard).number) == ((1, 2), 2)


def test_a_landing_that_was_read_does_not_grow_any_more():
    yard = a_yard(prs=2)
    yard.passes(1)
    (read,) = yard.outstanding(t.ReadPulls)
    seen = yard.host.perform(read, yard.queue.counters.turns)
    yard.tell(seen, yard.verdict(CheckState.PASSED, 2))
    assert (lands(yard), landing_of(yard).intended) == ((1,), True)


def test_a_landing_that_is_still_being_read_stays_when_another_lane_passed():
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    before = landing_of(yard)
    yard.passes(2)
    assert landing_of(yard) == before


def test_a_landing_without_intent_is_dropped_when_one_of_it_leaves():
    yard = a_yard(prs=2)
    all_pass(yard, 1, 2)
    yard.cancel(2)
    assert (lands(yard), landing_of(yard).number) == ((1,), 2)


def test_a_landing_without_intent_is_dropped_when_its_run_holds_no_longer():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert lands(yard) == ()


def test_a_landing_without_intent_is_dropped_when_the_queue_pauses():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    assert lands(yard) == ()


def test_a_landing_without_intent_is_dropped_when_the_target_must_be_read_again():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.tell(e.TargetTouched())
    assert lands(yard) == ()


def test_while_the_target_must_be_read_again_nothing_lands():
    yard = a_yard(prs=1)
    yard.tell(e.TargetTouched())
    yard.passes(1)
    assert lands(yard) == ()


def test_when_the_target_was_read_and_has_not_moved_it_lands():
    yard = a_yard(prs=1)
    yard.tell(e.TargetTouched())
    yard.passes(1)
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_in_a_paused_queue_nothing_lands(state: QueueState):
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=state))
    yard.passes(1)
    assert lands(yard) == ()


def test_in_a_draining_queue_what_passed_lands():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.DRAINING))
    yard.passes(1)
    assert lands(yard) == (1,)


def test_an_intended_landing_stays_when_the_queue_pauses():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    assert landing_of(yard).intended


def test_there_is_one_landing_at_a_time():
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.intend()
    yard.passes(2)
    assert lands(yard) == (1,)


# Composed landings.


def test_a_run_whose_tip_moved_elsewhere_is_composed():
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    landing = landing_of(yard)
    assert (landing.phase, landing.composed, landing.tested) == (Phase.COMPOSING, True, yard.run_of(2).chain)


def test_a_composed_landing_puts_the_tested_contents_on_the_tip():
    yard = a_parallel_yard("x", "y")
    all_pass(yard, 1, 2)
    yard.perform_all()
    assert yard.repository.commits[yard.host.tip].files == {
        "README": "hello",
        "file1": "pr1",
        "file2": "pr2",
    }


def test_a_composed_landing_whose_target_moves_again_is_composed_again():
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    before = landing_of(yard)
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert (landing_of(yard).phase, landing_of(yard).number) == (Phase.COMPOSING, before.number + 1)


def test_what_stands_on_two_lanes_stays_a_fast_forward_when_both_landed():
    yard = a_parallel_yard("x", "y", "xy")
    run = yard.run_of(3)
    for number in 1, 2, 3:
        yard.passes(number)
        yard.perform_all()
    assert yard.host.tip == run.tip


def test_without_a_target_branch_nothing_lands():
    yard = a_parallel_yard("x")
    yard.submit(2, targets=named("y"))
    yard.build()
    yard.tell(e.TargetSeen(tip=None, as_of=yard.queue.counters.turns, required=yard.host.required))
    assert (lands(yard), yard.picture) == ((), "main ← 1 ∥ main ← 2")
