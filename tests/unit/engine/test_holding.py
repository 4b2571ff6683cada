"""Whether what a run tested is still what would merge."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, Mode
from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.landing import Landed
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import ALL, named
from mergeyard.engine import holding, lanes
from tests.support.builders import (
    ROOT,
    Yard,
    a_batch,
    a_config,
    a_parallel_yard,
    a_plain_queue,
    a_run,
    a_submission,
    a_target,
    a_yard,
)


def in_line(*batches: Batch, runs: tuple[Run, ...] = ()) -> Queue:
    """A line of these batches; every run belongs to the batch of its last member."""
    tickets = [ticket for batch in batches for ticket in batch.tickets]
    queue = replace(a_plain_queue(*map(a_submission, tickets)), waiting={}, runs={run.id: run for run in runs})
    with_runs = (
        replace(batch, runs=tuple(run.id for run in runs if run.stack[-1].ticket == batch.tickets[-1]))
        for batch in batches
    )
    return replace(queue, line=lanes.arrange(with_runs))


def first(queue: Queue) -> Batch:
    return queue.line.batches[0]


def last(queue: Queue) -> Batch:
    return queue.line.batches[-1]


# A misfit, seen from a queue.


def test_a_run_upon_all_ahead_fits():
    run = a_run(1, 2)
    queue = in_line(a_batch(1), a_batch(2), runs=(run,))
    assert holding.misfit(queue, last(queue), run) is None


def test_a_run_that_was_declared_void_does_not_fit():
    run = replace(a_run(1), void=Reason.QUEUE_RESUMED)
    queue = in_line(a_batch(1), runs=(run,))
    assert holding.misfit(queue, first(queue), run) is Reason.QUEUE_RESUMED


def test_a_run_upon_another_base_does_not_fit():
    run = a_run(1, base="another")
    queue = in_line(a_batch(1), runs=(run,))
    assert holding.misfit(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_a_run_with_one_who_left_the_batch_does_not_fit():
    run = a_run(1, 2, tests=2)
    queue = in_line(a_batch(1, 2), runs=(run,))
    assert holding.misfit(queue, first(queue), run) is Reason.BATCHMATE_REMOVED


def test_a_run_upon_one_who_left_does_not_fit():
    run = a_run(1, 2)
    queue = in_line(a_batch(2), runs=(run,))
    assert holding.misfit(queue, first(queue), run) is Reason.PREREQUISITE_REMOVED


def test_a_run_without_one_who_stands_ahead_does_not_fit():
    run = a_run(2)
    queue = in_line(a_batch(1), a_batch(2), runs=(run,))
    assert holding.misfit(queue, last(queue), run) is Reason.SKIP_THE_LINE_INTERRUPTED


def test_a_run_upon_the_same_in_another_order_does_not_fit():
    run = a_run(1, 2, 3)
    queue = in_line(a_batch(2), a_batch(1), a_batch(3), runs=(run,))
    assert holding.misfit(queue, last(queue), run) is Reason.SKIP_THE_LINE_INTERRUPTED


def test_a_run_may_leave_out_one_who_stands_ahead():
    run = a_run(2, left_out=frozenset({Ticket(1)}))
    queue = in_line(a_batch(1), a_batch(2), runs=(run,))
    assert holding.misfit(queue, last(queue), run) is None


def test_a_run_that_lacks_a_required_status_does_not_fit():
    run = replace(a_run(1), required=())
    queue = in_line(a_batch(1), runs=(run,))
    assert holding.misfit(queue, first(queue), run) is Reason.REQUIRED_STATUSES_CHANGED


# A misfit, seen in the yard.


def test_a_foreign_push_starts_every_run_again():
    yard = a_yard(prs=2)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    assert [(yard.reason(number), yard.run_of(number).base) for number in (1, 2)] == [
        (Reason.TARGET_BRANCH_MOVED, yard.host.tip)
    ] * 2


def test_runs_behind_a_landing_go_on():
    yard = a_yard(prs=2)
    behind = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    assert yard.run_of(2) == behind


def test_runs_behind_a_provider_merge_with_the_tested_tree_go_on():
    yard = a_yard(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    behind = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    assert (yard.run_of(2), yard.host.tip != behind.chain[0].commit) == (behind, True)


def test_in_parallel_mode_a_landing_elsewhere_does_not_disturb():
    yard = a_parallel_yard("x", "y")
    other = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    assert yard.run_of(2) == other


def test_in_parallel_mode_a_stranger_that_landed_in_the_lane_disturbs():
    run = a_run(2)
    queue = in_line(a_batch(2, targets=named("x")), runs=(run,))
    history = (Landed(ROOT, None), Landed(Sha("1"), Sha("tree"), Ticket(1), named("x")))
    queue = replace(queue, mode=Mode.PARALLEL, target=replace(queue.target, tip=Sha("1"), history=history))
    assert holding.misfit(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_in_parallel_mode_a_stranger_that_landed_in_another_lane_does_not_disturb():
    run = a_run(2)
    queue = in_line(a_batch(2, targets=named("x")), runs=(run,))
    history = (Landed(ROOT, None), Landed(Sha("1"), Sha("tree"), Ticket(1), named("y")))
    queue = replace(queue, mode=Mode.PARALLEL, target=replace(queue.target, tip=Sha("1"), history=history))
    assert holding.misfit(queue, first(queue), run) is None


def test_in_parallel_mode_one_beneath_that_landed_before_the_run_was_built_disturbs():
    """Also when it shares no target: the run would be built upon it a second time."""
    run = replace(a_run(1, 2), chain=())
    queue = in_line(a_batch(2, targets=named("x")), runs=(run,))
    history = (Landed(ROOT, None), Landed(Sha("1"), Sha("tree"), Ticket(1), named("y")))
    queue = replace(queue, mode=Mode.PARALLEL, target=replace(queue.target, tip=Sha("1"), history=history))
    assert holding.misfit(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_in_single_mode_only_the_very_chain_lands():
    """1 landed as another commit than the one that 2 was tested upon."""
    run = a_run(1, 2)
    queue = in_line(a_batch(2), runs=(run,))
    history = (Landed(ROOT, None), Landed(Sha("another 1"), Sha("tree of 1"), Ticket(1)))
    queue = replace(queue, target=replace(queue.target, tip=Sha("another 1"), history=history))
    assert holding.misfit(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


# The target and a run.


def landed(*commits: tuple[int, str]) -> TargetBranch:
    """The target after these tickets landed upon its root, as these commits."""
    history = [Landed(Sha(commit), Sha(f"tree of {commit}"), Ticket(ticket)) for ticket, commit in commits]
    return replace(a_target(), tip=history[-1].commit, history=(Landed(ROOT, None), *history))


def test_a_run_stands_on_the_tip_that_is_its_base():
    assert holding.stands_on_tip(a_target(), a_run(1))


def test_a_run_does_not_stand_on_a_tip_that_moved():
    assert not holding.stands_on_tip(replace(a_target(), tip=Sha("elsewhere")), a_run(1))


def test_a_run_stands_on_what_landed_of_it():
    assert holding.stands_on_tip(landed((1, "1")), a_run(1, 2))


def test_a_run_does_not_stand_on_what_landed_of_it_as_another_commit():
    assert not holding.stands_on_tip(landed((1, "another 1")), a_run(1, 2))


def with_the_tree_of(step: Step, target: TargetBranch) -> TargetBranch:
    return replace(target, history=(*target.history[:-1], replace(target.history[-1], tree=step.tree)))


def test_a_run_does_not_stand_on_another_commit_with_the_same_tree_whoever_merges():
    run = replace(a_run(1, 2), landing=LandingMethod.PROVIDER_MERGE)
    assert not holding.stands_on_tip(with_the_tree_of(run.chain[0], landed((1, "another 1"))), run)


def test_what_the_provider_merges_may_land_upon_what_landed_of_it_with_the_same_tree():
    run = replace(a_run(1, 2), landing=LandingMethod.PROVIDER_MERGE)
    assert holding.may_land_as_it_is(with_the_tree_of(run.chain[0], landed((1, "another 1"))), run)


def test_what_the_provider_merges_may_not_land_upon_what_landed_of_it_with_another_tree():
    run = replace(a_run(1, 2), landing=LandingMethod.PROVIDER_MERGE)
    assert not holding.may_land_as_it_is(landed((1, "another 1")), run)


def test_what_the_provider_merges_may_land_upon_its_base():
    assert holding.may_land_as_it_is(a_target(), replace(a_run(1), landing=LandingMethod.PROVIDER_MERGE))


def test_what_we_land_ourselves_may_land_only_upon_the_very_commit():
    run = a_run(1, 2)
    same_tree = with_the_tree_of(run.chain[0], landed((1, "another 1")))
    verdicts = [holding.may_land_as_it_is(target, run) for target in (landed((1, "1")), same_tree)]
    assert verdicts == [True, False]


def test_a_run_does_not_stand_on_what_landed_of_others():
    assert not holding.stands_on_tip(landed((7, "1")), a_run(1, 2))


def test_a_run_that_is_not_built_stands_on_nothing_that_landed():
    assert not holding.stands_on_tip(landed((1, "1")), replace(a_run(1, 2), chain=()))


def test_nothing_has_landed_since_the_tip():
    assert holding.landed_since(a_target(), ROOT) == ()


def test_what_the_queue_landed_since_a_base_is_known():
    target = landed((1, "1"), (2, "1+2"))
    assert holding.landed_since(target, ROOT) == target.history[1:]


def test_nothing_is_known_of_what_landed_since_a_foreign_base():
    assert holding.landed_since(a_target(), Sha("elsewhere")) is None


# Verdicts.


def test_a_run_that_left_somebody_out_does_not_hold_while_that_one_is_ahead():
    run = a_run(2, left_out=frozenset({Ticket(1)}), status=RunStatus.SUCCEEDED)
    queue = in_line(a_batch(1), a_batch(2), runs=(run,))
    assert not holding.passed(queue, last(queue))


def test_a_run_that_left_somebody_out_holds_when_that_one_left():
    run = a_run(2, left_out=frozenset({Ticket(1)}), status=RunStatus.SUCCEEDED)
    queue = in_line(a_batch(2), runs=(run,))
    assert holding.passed(queue, first(queue))


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.IN_PROGRESS, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_batch_whose_run_did_not_succeed_has_not_passed(status: RunStatus):
    queue = in_line(a_batch(1), runs=(a_run(1, status=status),))
    assert not holding.passed(queue, first(queue))


def test_any_run_that_passed_and_holds_counts():
    red = replace(a_run(1, status=RunStatus.FAILED), id=RunId("red"))
    green = replace(a_run(1, status=RunStatus.SUCCEEDED), id=RunId("green"))
    queue = in_line(a_batch(1), runs=(red, green))
    assert holding.passed_run(queue, first(queue)) == green


def test_a_batch_without_a_run_has_no_current_one():
    queue = in_line(a_batch(1))
    assert (holding.current_run(queue, first(queue)), holding.red_run(queue, first(queue))) == (None, None)


def test_a_batch_is_cleared_by_one_behind_it_that_passed():
    queue = in_line(a_batch(1), a_batch(2), runs=(a_run(1, 2, status=RunStatus.SUCCEEDED),))
    assert holding.cleared(replace(queue, config=a_config(depth=0)), first(queue))


def test_without_optimistic_merging_nobody_is_cleared():
    queue = in_line(a_batch(1), a_batch(2), runs=(a_run(1, 2, status=RunStatus.SUCCEEDED),))
    assert not holding.cleared(queue, first(queue))


def test_a_batch_is_not_cleared_by_one_that_does_not_depend_on_it():
    queue = in_line(
        a_batch(1, targets=named("x")),
        a_batch(2, targets=named("y")),
        runs=(a_run(2, status=RunStatus.SUCCEEDED),),
    )
    assert not holding.cleared(replace(queue, config=a_config(depth=0)), first(queue))


def test_a_red_run_is_repeated_while_there_are_retries():
    queue = replace(in_line(), config=a_config(test_retries=1))
    assert holding.to_be_repeated(queue, a_run(1, status=RunStatus.FAILED))


def test_a_red_run_is_not_repeated_when_the_retries_are_used_up():
    queue = replace(in_line(), config=a_config(test_retries=1))
    assert not holding.to_be_repeated(queue, replace(a_run(1, status=RunStatus.FAILED), attempt=1))


def test_a_restarted_run_is_repeated_in_any_case():
    assert holding.to_be_repeated(in_line(), replace(a_run(1, status=RunStatus.CANCELLED), restarted=True))


def test_a_run_that_is_repeated_has_not_failed_for_good():
    queue = replace(in_line(), config=a_config(test_retries=1))
    assert not holding.failed_for_good(queue, a_run(1, status=RunStatus.FAILED))


# Bound by a landing.


def an_intended_yard() -> Yard:
    """1 is being merged, 2 stands behind."""
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.intend()
    return yard


def test_from_intent_to_outcome_a_landing_binds_its_own():
    yard = an_intended_yard()
    assert holding.bound_by_landing(yard.queue, yard.ticket(1))


def test_a_landing_does_not_bind_others():
    yard = an_intended_yard()
    assert not holding.bound_by_landing(yard.queue, yard.ticket(2))


def test_a_landing_without_intent_binds_nobody():
    yard = a_yard(prs=1)
    yard.passes(1)
    assert not holding.bound_by_landing(yard.queue, yard.ticket(1))


def test_settings_do_not_touch_those_that_are_being_merged():
    yard = an_intended_yard()
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    yard.perform(t.Land)
    assert yard.state(1) is PrState.MERGED


def test_a_run_of_one_that_impacts_everything_goes_on_when_what_it_stands_upon_has_landed():
    yard = a_parallel_yard("x")
    yard.submit(2, targets=ALL)
    yard.build()
    run = yard.run_of(2)
    yard.passes(1)
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED
    assert yard.run_of(2) == run
