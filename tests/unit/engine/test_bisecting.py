"""The guilty one of a red batch is the last of its shortest red prefix."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import MergeMethod, Mode
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import CheckState, PrState, QueueState
from tests.support.builders import Yard, a_config, a_red_prefix_upon_an_unseen_tip, a_yard, prs_tested


def a_red_batch(count: int = 4, budget: int = 5, *, behind: bool = False, retries: int = 0) -> Yard:
    """A batch of so many that just failed; with another behind it, so that nothing of it lands as tested."""
    yard = a_yard(prs=count, batch=count, bisection_concurrency=budget, test_retries=retries)
    if behind:
        yard.submit(9, no_batch=True)
        yard.build()
    for _ in range(retries + 1):
        yard.fails(*range(1, count + 1))
        yard.build()
    return yard


def probes(yard: Yard) -> list[tuple[int, ...]]:
    (bisection,) = yard.queue.bisections
    return sorted(prs_tested(yard.queue.runs[run]) for run in bisection.runs if yard.queue.runs[run].active)


# Where it looks.


def test_the_whole_batch_is_known_red_and_not_run_again():
    assert (1, 2, 3, 4) not in probes(a_red_batch())


@pytest.mark.parametrize(
    ("budget", "lengths"), [(1, [2]), (2, [2, 3]), (3, [1, 2, 3]), (9, [1, 2, 3])], ids=["1", "2", "3", "9"]
)
def test_prefixes_are_evenly_spaced_as_many_at_once_as_the_budget_allows(budget: int, lengths: list[int]):
    assert [len(probe) for probe in probes(a_red_batch(4, budget))] == lengths


@pytest.mark.parametrize(("budget", "lengths"), [(1, [4]), (2, [3, 6]), (3, [2, 4, 6])], ids=["1", "2", "3"])
def test_prefixes_of_eight_are_evenly_spaced(budget: int, lengths: list[int]):
    assert [len(probe) for probe in probes(a_red_batch(8, budget))] == lengths


def test_the_line_flows_on_without_the_batch():
    yard = a_red_batch(behind=True)
    assert yard.picture == "main ← 9… ⋔ 1+2+3+4 : 1… 1+2… 1+2+3…"


def test_two_bisections_share_the_budget():
    yard = a_yard(prs=8, batch=4, bisection_concurrency=4)
    yard.fails(1, 2, 3, 4)
    yard.build()
    yard.fails(5, 6, 7, 8)
    assert yard.picture == "main ⋔ 1+2+3+4 : 1… 1+2… 1+2+3… ⋔ 5+6+7+8 : 5+6…"


def test_room_that_becomes_free_is_used():
    yard = a_red_batch(8, budget=2)
    yard.passes(1, 2, 3)
    assert probes(yard) == [(1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6)]


def test_a_probe_that_is_repeated_for_its_retries_says_nothing_yet():
    yard = a_red_batch(2, retries=1)
    yard.fails(1)
    assert (yard.picture, yard.run_of(1).attempt) == ("main ⋔ 1+2 : 1…", 1)


def test_a_probe_that_is_repeated_waits_for_room():
    yard = a_red_batch(4, budget=2, retries=1)
    yard.tell(e.SettingsSaved(config=a_config(batch=4, bisection_concurrency=1, test_retries=1)))
    yard.fails(1, 2)
    assert (probes(yard), yard.run_of(1, 2).attempt) == ([(1, 2, 3)], 0)


def test_in_a_paused_queue_it_goes_no_further():
    yard = a_red_batch(4, budget=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.passes(1, 2)
    assert (probes(yard), yard.state(1)) == ([], PrState.PENDING_FAILURE)


def test_what_went_red_while_the_queue_was_paused_is_probed_again():
    yard = a_red_batch(4, budget=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1, 2)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert probes(yard) == [(1, 2)]


def test_when_nothing_is_required_any_more_nothing_could_be_shown():
    yard = a_red_batch(2)
    yard.tell(e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=Required()))
    assert (yard.queue.bisections, yard.reason(1)) == ((), Reason.NO_REQUIRED_STATUSES)


def test_when_nothing_is_required_any_more_those_without_a_slot_are_to_be_tested_again():
    yard = a_red_batch(2, behind=True)
    yard.tell(
        e.SettingsSaved(config=a_config(batch=2, concurrency=1)),
        e.TargetSeen(tip=yard.host.tip, as_of=yard.queue.counters.turns, required=Required()),
    )
    assert (yard.state(1), yard.reason(1)) == (PrState.PENDING, Reason.REQUIRED_STATUSES_CHANGED)


# What it stands on.


def test_a_probe_stands_on_the_base_of_the_failed_run():
    yard = a_yard(prs=2, batch=2)
    base = yard.host.tip
    yard.push_to_target({"other": "other"})
    yard.fails(1, 2)
    assert yard.run_of(1).base == base


def test_a_probe_stays_on_its_base_whatever_the_target_does():
    yard = a_red_batch(2)
    probe = yard.run_of(1)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert yard.run_of(1) == probe


def test_a_probe_reuses_the_commits_of_the_failed_run_but_its_tip():
    yard = a_yard(prs=4, batch=4)
    failed = yard.run_of(1, 2, 3, 4)
    yard.fails(1, 2, 3, 4)
    assert yard.run_of(1, 2, 3).chain == failed.chain[:2]


def test_a_probe_with_another_merge_method_reuses_nothing():
    yard = a_yard(prs=4, batch=4)
    yard.tell(e.SettingsSaved(config=a_config(batch=4, merge_method=MergeMethod.REBASE)))
    yard.fails(1, 2, 3, 4)
    assert yard.run_of(1, 2, 3).chain == ()


def test_a_batch_that_was_red_upon_others_is_searched_upon_them():
    yard = a_yard(prs=4, batch=2)
    under = yard.run_of(1, 2).tip
    yard.fails(3, 4)
    yard.passes(1, 2)
    yard.perform_all()
    assert yard.run_of(3).base == under == yard.host.tip


def test_a_probe_is_a_run_of_a_bisection():
    assert a_red_batch(2).run_of(1).kind is RunKind.BISECTION


def test_a_batch_that_is_searched_proves_nothing_about_its_base():
    yard = a_red_prefix_upon_an_unseen_tip()
    assert yard.host.tip not in yard.queue.target.proofs


def test_when_a_probe_cannot_be_built_the_search_is_over_and_all_are_tested_again_together():
    yard = a_yard(prs=3, batch=3)
    yard.tell(e.SettingsSaved(config=a_config(batch=3, merge_method=MergeMethod.REBASE)))
    yard.fails(1, 2, 3)
    probe = yard.run_of(1, 2)
    yard.tell(e.RunRefused(run=probe.id, ticket=yard.ticket(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK))
    assert (yard.picture, yard.reason(2)) == ("main ← 1+2+3…", Reason.TARGET_BRANCH_MOVED)


def test_a_probe_that_cannot_be_built_does_not_matter_when_the_search_ended_in_the_same_turn():
    yard = a_yard(prs=3, batch=3)
    yard.tell(e.SettingsSaved(config=a_config(batch=3, merge_method=MergeMethod.REBASE)))
    yard.fails(1, 2, 3)
    probe = yard.run_of(1, 2)
    refused = e.RunRefused(run=probe.id, ticket=yard.ticket(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK)
    yard.tell(e.RestartRequested(number=PrNumber(1)), refused)
    assert (yard.picture, yard.reason(2)) == ("main ← 1+2+3…", Reason.TESTS_RESTARTED)


# What it finds.


def test_those_of_a_green_prefix_go_back_together():
    yard = a_red_batch(4, behind=True)
    yard.passes(1, 2)
    assert (yard.reason(1), yard.reason(2), yard.picture) == (
        *(Reason.BISECTION_PASSED, Reason.BISECTION_PASSED),
        "main ← 9… ← 1+2… ⋔ 3+4 : 1+2+3…",
    )


def test_those_behind_a_red_prefix_go_back():
    yard = a_red_batch(4, budget=1, behind=True)
    yard.fails(1, 2)
    assert (yard.reason(3), yard.reason(4), yard.picture) == (
        *(Reason.BISECTION, Reason.BISECTION),
        "main ← 9… ← 3+4… ⋔ 1+2 : 1…",
    )


def test_probes_that_can_tell_nothing_new_are_stopped():
    yard = a_red_batch(4, behind=True)
    yard.passes(1, 2)
    assert probes(yard) == [(1, 2, 3)]


def test_results_may_come_in_any_order():
    yard = a_red_batch(4, behind=True)
    yard.fails(1, 2, 3)
    yard.passes(1, 2)
    (bisection,) = yard.queue.bisections
    assert bisection.suspect == yard.ticket(3)


def test_results_may_come_all_at_once():
    yard = a_red_batch(4, behind=True)
    yard.tell(
        yard.verdict(CheckState.PASSED, 1),
        yard.verdict(CheckState.PASSED, 1, 2),
        yard.verdict(CheckState.FAILED, 1, 2, 3),
    )
    (bisection,) = yard.queue.bisections
    assert (bisection.members, yard.stay(1).reunion) == ((yard.ticket(3),), ())


def test_the_first_one_of_a_batch_may_be_the_guilty_one():
    yard = a_red_batch(2)
    yard.fails(1)
    assert (yard.state(1), yard.stay(1).upon, yard.picture) == (PrState.FAILED, (), "main ← 2…")


def test_the_search_goes_on_until_red_follows_on_green():
    yard = a_red_batch(4, budget=1, behind=True)
    yard.passes(1, 2)
    yard.build()
    yard.passes(1, 2, 3)
    (bisection,) = yard.queue.bisections
    assert (bisection.searching, bisection.suspect) == (False, yard.ticket(4))


# A green prefix that lands as it was tested.


def test_a_green_prefix_lands_as_tested_when_nothing_else_is_under_test():
    yard = a_red_batch(4)
    run = yard.run_of(1, 2)
    yard.passes(1, 2)
    yard.perform_all()
    assert (yard.state(1), yard.state(2), yard.stay(2).verified_by) == (PrState.MERGED, PrState.MERGED, run.id)


def test_a_green_prefix_does_not_land_as_tested_when_something_else_is_under_test():
    yard = a_red_batch(2, behind=True)
    yard.passes(1)
    assert yard.queue.landing is None


def test_a_green_prefix_does_not_land_as_tested_when_the_target_moved():
    yard = a_red_batch(2)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.passes(1)
    assert (yard.queue.landing, yard.run_of(1).base) == (None, yard.host.tip)


def test_a_green_prefix_does_not_land_as_tested_upon_one_that_was_handed_back_before():
    yard = a_red_batch(8, budget=1, behind=True)
    yard.passes(1, 2, 3, 4)
    yard.cancel(9)
    for number in 1, 2, 3, 4:
        yard.cancel(number)
    assert yard.queue.landing is None


def test_another_bisection_is_something_else_under_test():
    yard = a_yard(prs=4, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.fails(3, 4)
    yard.build()
    yard.passes(1)
    assert yard.queue.landing is None


def test_while_modes_switch_a_green_prefix_goes_back():
    yard = a_red_batch(2)
    yard.tell(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, batch=2)))
    yard.passes(1)
    assert (yard.state(1), yard.queue.bisections) == (PrState.PENDING, ())
