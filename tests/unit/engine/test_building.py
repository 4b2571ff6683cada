"""What became of a test branch: built, refused because of somebody in it, or gone."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, RunId
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState, RunStatus
from mergeyard.engine.proving import bare_runs
from mergeyard.engine.work import work
from tests.support.builders import Yard, a_config, a_red_prefix_upon_an_unseen_tip, a_step, a_wait, a_yard


def refuse(yard: Yard, number: int, refusal: e.BuildRefusal) -> None:
    """The run of this one cannot be built, because of itself."""
    run = yard.run_of(number)
    yard.tell(e.RunRefused(run=run.id, ticket=yard.ticket(number), refusal=refusal, words="the host's words"))


# Built.


def test_a_run_is_in_progress_once_its_branch_is_pushed():
    yard = a_yard()
    yard.submit(1)
    yard.pass_time(500)
    yard.build()
    run = yard.run_of(1)
    assert (run.status, run.started_at, run.pushed) == (RunStatus.IN_PROGRESS, yard.now, True)


def test_its_prs_are_in_test_once_its_branch_is_pushed():
    yard = a_yard()
    yard.submit(1)
    assert yard.state(1) is PrState.PENDING
    yard.build()
    assert (yard.state(1), yard.stay(1).run) == (PrState.TESTING, yard.run_of(1).id)


def test_those_that_go_on_from_a_chain_can_be_built_when_it_is():
    yard = a_yard()
    yard.submit(1, 2, 3)
    yard.perform(t.BuildRun)
    runs = [yard.run_of(2), yard.run_of(3)]
    assert [(run.extends, run.chain) for run in runs] == [
        (None, yard.run_of(1).chain),
        (yard.run_of(2).id, yard.run_of(1).chain),
    ]


def test_those_that_go_on_from_a_chain_take_only_what_lies_beneath_them():
    yard = a_yard(prs=2)
    yard.restart(2)
    yard.submit(3)
    yard.passes(1)
    yard.perform(t.ReadPulls)
    yard.perform(t.Land)
    yard.build()
    yard.submit(4)
    yard.build()
    assert yard.run_of(4).chain[0].parent == yard.host.tip


def test_a_run_that_is_built_twice_stays_as_it_was():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    before = yard.queue
    yard.tell(e.RunBuilt(run=run.id, steps=run.chain))
    assert yard.queue is before


def test_a_branch_that_was_pushed_for_a_run_that_is_over_is_deleted():
    """Restarted while its next run was being built, in a queue that was paused meanwhile."""
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    run = yard.run_of(1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.restart(1)
    yard.tell(e.RunBuilt(run=run.id, steps=(a_step("too late"),)))
    assert t.DeleteBranch(run=run.id) in yard.outstanding(t.DeleteBranch)


# Refused.

FOR_GOOD = {
    e.BuildRefusal.CONFLICTS_WITH_TARGET: Reason.MERGE_CONFLICT,
    e.BuildRefusal.CONTAINS_REMOVED_COMMIT: Reason.CONTAINS_REMOVED_COMMIT,
    e.BuildRefusal.NOTHING_TO_MERGE: Reason.NOTHING_TO_MERGE,
    e.BuildRefusal.TOO_LARGE: Reason.PR_TOO_LARGE,
    e.BuildRefusal.INVALID_TREE: Reason.INVALID_TREE,
    e.BuildRefusal.BREAKS_CONFIG: Reason.BREAKS_CONFIG,
    e.BuildRefusal.REFUSED: Reason.START_REFUSED,
}


@pytest.mark.parametrize(("refusal", "reason"), FOR_GOOD.items())
def test_one_that_cannot_be_built_fails(refusal: e.BuildRefusal, reason: Reason):
    yard = a_yard()
    yard.submit(1)
    refuse(yard, 1, refusal)
    assert (yard.state(1), yard.reason(1), yard.stay(1).words) == (PrState.FAILED, reason, "the host's words")


def test_those_behind_one_that_cannot_be_built_go_on_without_it():
    yard = a_yard()
    yard.submit(1, 2)
    refuse(yard, 1, e.BuildRefusal.NOTHING_TO_MERGE)
    assert yard.picture == "main ← 2…"


def test_batchmates_of_one_that_cannot_be_built_go_on_without_it():
    yard = a_yard(batch=2)
    yard.submit(1, 2)
    run = yard.run_of(1, 2)
    yard.tell(e.RunRefused(run=run.id, ticket=yard.ticket(1), refusal=e.BuildRefusal.NOTHING_TO_MERGE))
    assert yard.picture == "main ← 2…"


def test_one_that_the_target_contains_is_merged():
    yard = a_yard()
    yard.submit(1)
    refuse(yard, 1, e.BuildRefusal.ALREADY_CONTAINED)
    assert (yard.state(1), yard.reason(1), yard.queue.target.look) == (
        *(PrState.MERGED, Reason.MERGED_MANUALLY),
        True,
    )


def test_one_under_test_whose_next_run_cannot_be_built_fails():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    refuse(yard, 1, e.BuildRefusal.REFUSED)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.START_REFUSED)


def test_one_that_a_run_behind_cleared_fails_when_its_next_run_cannot_be_built():
    yard = a_yard(prs=2, depth=1, test_retries=1)
    yard.fails(1)
    yard.passes(2)
    refuse(yard, 1, e.BuildRefusal.REFUSED)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.START_REFUSED)


def test_one_under_test_whose_next_run_conflicts_with_the_line_waits_outside():
    """Its retry uses another method, by which it conflicts."""
    yard = a_yard(prs=2, test_retries=1)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1, merge_method=MergeMethod.REBASE)))
    yard.fails(2)
    refuse(yard, 2, e.BuildRefusal.CONFLICTS_WITH_STACK)
    assert (yard.picture, yard.waits(2)) == ("main ← 1…", a_wait(Reason.CONFLICTS_WITH_PR_AHEAD, 1))


def test_a_refusal_does_not_touch_those_that_are_being_merged():
    yard = a_yard(prs=2, depth=1, test_retries=1)
    yard.fails(1)
    yard.passes(2)
    yard.intend()
    before = yard.queue
    refuse(yard, 1, e.BuildRefusal.REFUSED)
    assert yard.queue is before
    yard.perform(t.Land)
    assert yard.state(1) is PrState.MERGED


def test_if_something_is_wrong_with_one_beneath_those_upon_it_wait_and_its_own_run_will_tell():
    yard = a_yard()
    yard.submit(1, 2)
    refused = e.RunRefused(run=yard.run_of(2).id, ticket=yard.ticket(1), refusal=e.BuildRefusal.NOTHING_TO_MERGE)
    yard.tell(refused)
    assert (yard.picture, yard.state(1), yard.waits(2)) == (
        *("main ← 1…", PrState.PENDING),
        a_wait(Reason.CONFLICTS_WITH_PR_AHEAD, 1),
    )


def test_a_refusal_of_a_run_that_is_built_is_not_believed():
    yard = a_yard(prs=1)
    before = yard.queue
    refuse(yard, 1, e.BuildRefusal.REFUSED)
    assert yard.queue is before


@pytest.mark.parametrize("refusal", e.BuildRefusal)
def test_a_refusal_because_of_one_that_left_in_the_same_turn_is_not_believed(refusal: e.BuildRefusal):
    yard = a_yard(batch=2)
    yard.submit(1, 2)
    refused = e.RunRefused(run=yard.run_of(1, 2).id, ticket=yard.ticket(2), refusal=refusal)
    yard.tell(e.CancelRequested(number=PrNumber(2)), refused)
    assert (yard.picture, yard.reason(2)) == ("main ← 1…", Reason.CANCELLED_BY_USER)


@pytest.mark.parametrize("refusal", e.BuildRefusal)
def test_those_whose_run_was_refused_because_of_one_beneath_that_left_are_tested_again(refusal: e.BuildRefusal):
    yard = a_yard()
    yard.submit(1, 2)
    run = yard.run_of(2)
    refused = e.RunRefused(run=run.id, ticket=yard.ticket(1), refusal=refusal)
    yard.tell(e.CancelRequested(number=PrNumber(1)), refused)
    assert (yard.picture, yard.run_of(2).id != run.id) == ("main ← 2…", True)


def test_a_commit_removed_from_the_target_never_comes_back():
    yard = a_yard(prs=1)
    leaked = yard.head(1)
    yard.passes(1)
    before = yard.host.tip
    yard.perform_all()
    yard.repository.refs["main"] = before
    yard.tell(e.TargetTouched())
    yard.perform_all()
    yard.open(2, upon=leaked)
    yard.submit(2)
    yard.perform_all()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)


# Gone.


def test_a_branch_that_was_deleted_is_not_deleted_again():
    yard = a_yard(prs=1)
    yard.cancel(1)
    yard.perform(t.DeleteBranch)
    assert (yard.outstanding(t.DeleteBranch), yard.queue.runs) == ((), {})


def test_a_branch_that_never_was_there_cannot_be_gone():
    yard = a_yard()
    yard.submit(1)
    before = yard.queue
    yard.tell(e.BranchDeleted(run=yard.run_of(1).id), e.BranchDeleted(run=RunId("a strange one")))
    assert yard.queue is before


def test_a_deleted_branch_leaves_the_verdict_of_its_run():
    yard = a_yard(prs=2)
    yard.fails(2)
    red = yard.run_of(2)
    yard.perform(t.DeleteBranch)
    assert yard.run_of(2) == replace(red, pushed=False)


# Lost.


def test_a_run_whose_ground_is_lost_is_built_anew_from_its_base():
    yard = a_yard(prs=1)
    yard.submit(2)
    yard.tell(e.GroundLost(run=yard.run_of(2).id))
    (task,) = [task for task in work(yard.queue) if isinstance(task, t.BuildRun)]
    assert (task.onto, task.beneath) == (task.base, ())
    assert [member.number for member in task.members] == [1, 2]


def test_a_search_whose_base_is_lost_is_over():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    probe = yard.queue.bisections[0].runs[0]
    yard.tell(e.GroundLost(run=probe))
    assert (yard.queue.bisections, yard.state(1), yard.reason(1)) == ((), PrState.PENDING, Reason.TARGET_BRANCH_MOVED)


def test_nobody_is_judged_upon_a_base_that_is_lost():
    yard = a_red_prefix_upon_an_unseen_tip()
    (bare,) = bare_runs(yard.queue).values()
    preparing = replace(bare, status=RunStatus.PREPARING, chain=())
    yard.queue = replace(yard.queue, runs={**yard.queue.runs, bare.id: preparing})
    yard.tell(e.GroundLost(run=bare.id))
    assert (yard.queue.bisections, yard.state(3), yard.reason(3)) == ((), PrState.PENDING, Reason.TARGET_BRANCH_MOVED)


def test_a_run_of_the_line_whose_base_is_lost_waits_for_a_look_at_the_target():
    yard = a_yard()
    yard.submit(1)
    yard.tell(e.GroundLost(run=yard.run_of(1).id))
    assert t.LookAtTarget in map(type, work(yard.queue))


def test_a_search_upon_another_base_goes_on():
    yard = a_yard(prs=2, batch=2, depth=None)
    yard.fails(1, 2)
    yard.build()
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.submit(3, no_batch=True)
    yard.tell(e.GroundLost(run=yard.run_of(3).id))
    assert len(yard.queue.bisections) == 1


def test_a_run_that_is_built_has_lost_nothing():
    yard = a_yard(prs=2)
    before = yard.queue
    yard.tell(e.GroundLost(run=yard.run_of(2).id))
    assert yard.queue is before
