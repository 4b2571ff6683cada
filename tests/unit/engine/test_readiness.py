"""Who is ready, who is admitted, and who is sent back."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Mode
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability, PrState, QueueState
from mergeyard.domain.targets import Targets, named
from mergeyard.engine.readiness import unready
from tests.support.builders import Yard, a_config, a_parallel_yard, a_plain_queue, a_pull, a_submission, a_yard

SINGLE = a_plain_queue()
PARALLEL = a_plain_queue(config=a_config(mode=Mode.PARALLEL))


def why_unready(pull: PullRequest, *, forced: bool = False) -> Reason | None:
    return unready(SINGLE, a_submission(pull=pull, forced=forced))


def a_closed_yard(state: QueueState) -> Yard:
    yard = a_yard()
    yard.tell(e.StateRequested(state=state))
    yard.submit(1)
    return yard


def test_an_open_mergeable_pr_on_the_target_is_ready():
    assert why_unready(a_pull()) is None


def test_a_pr_on_another_branch_is_not_ready():
    assert why_unready(a_pull(base="elsewhere")) is Reason.BASE_BRANCH_MISMATCH


def test_a_pr_that_is_a_draft_is_not_ready():
    assert why_unready(a_pull(draft=True)) is Reason.DRAFT


def test_a_pr_that_the_host_calls_not_mergeable_is_not_ready():
    assert why_unready(a_pull(mergeability=Mergeability.NOT_MERGEABLE)) is Reason.NOT_MERGEABLE


@pytest.mark.parametrize("mergeability", [Mergeability.UNKNOWN, Mergeability.CHECKING])
def test_a_pr_of_unknown_mergeability_waits(mergeability: Mergeability):
    assert why_unready(a_pull(mergeability=mergeability)) is Reason.MERGEABILITY_UNKNOWN


@pytest.mark.parametrize("mergeability", list(Mergeability))
def test_a_forced_pr_does_not_wait_for_mergeability(mergeability: Mergeability):
    assert why_unready(a_pull(mergeability=mergeability), forced=True) is None


def test_a_forced_draft_is_not_ready():
    assert why_unready(a_pull(draft=True), forced=True) is Reason.DRAFT


def test_a_forced_pr_on_another_branch_is_not_ready():
    assert why_unready(a_pull(base="elsewhere"), forced=True) is Reason.BASE_BRANCH_MISMATCH


@pytest.mark.parametrize("forced", [False, True])
def test_in_parallel_mode_a_pr_without_targets_is_not_ready(forced: bool):
    assert unready(PARALLEL, a_submission(forced=forced)) is Reason.MISSING_IMPACTED_TARGETS


@pytest.mark.parametrize("targets", [named("a"), named()])
def test_in_parallel_mode_a_pr_with_targets_is_ready(targets: Targets):
    assert unready(PARALLEL, a_submission(targets=targets)) is None


# Guarded paths.

GUARDED = (".github/workflows/ci.yml",)


def a_yard_with_a_guarded_fork(*, guarded: tuple[str, ...] | None = GUARDED) -> Yard:
    yard = a_yard()
    yard.open(1)
    yard.change(1, fork=True, guarded=guarded)
    return yard


def push(yard: Yard, number: int) -> None:
    yard.change(number, head=yard.repository.commit((yard.head(number),), {"more": "more"}, "a push"))


@pytest.mark.parametrize("forced", [False, True])
def test_a_fork_that_changes_guarded_paths_waits_for_a_maintainer(forced: bool):
    yard = a_yard_with_a_guarded_fork()
    yard.submit(1, forced=forced)
    assert yard.state(1) is PrState.NOT_READY
    assert unready(yard.queue, yard.stay(1)) is Reason.WAITING_FOR_MAINTAINER


@pytest.mark.parametrize("forced", [False, True])
def test_a_fork_whose_guarded_paths_are_not_known_yet_is_not_ready(forced: bool):
    yard = a_yard_with_a_guarded_fork(guarded=None)
    yard.submit(1, forced=forced)
    assert unready(yard.queue, yard.stay(1)) is Reason.MERGEABILITY_UNKNOWN


@pytest.mark.parametrize("guarded", [GUARDED, None])
def test_a_fork_that_a_maintainer_submitted_is_ready(guarded: tuple[str, ...] | None):
    yard = a_yard_with_a_guarded_fork(guarded=guarded)
    yard.tell(replace(yard.submission(1), by_maintainer=True))
    assert yard.state(1) is PrState.PENDING


def test_a_fork_that_changes_no_guarded_path_is_ready():
    yard = a_yard_with_a_guarded_fork(guarded=())
    yard.submit(1)
    assert yard.state(1) is PrState.PENDING


def test_a_pr_of_the_same_repository_needs_no_maintainer():
    assert why_unready(replace(a_pull(), guarded=GUARDED)) is None


def test_a_maintainer_who_submits_it_again_lets_it_in():
    yard = a_yard_with_a_guarded_fork()
    yard.submit(1)
    yard.tell(replace(yard.submission(1), by_maintainer=True))
    assert yard.state(1) is PrState.PENDING


def test_a_later_submission_by_another_person_keeps_what_the_maintainer_said():
    yard = a_yard_with_a_guarded_fork()
    yard.tell(replace(yard.submission(1), by_maintainer=True))
    yard.submit(1)
    assert yard.stay(1).by_maintainer


def test_a_maintainer_who_saw_another_head_does_not_let_this_one_in():
    """The look of the maintainer's request began before the fork was pushed to and submitted again."""
    yard = a_yard_with_a_guarded_fork()
    late = replace(yard.submission(1), by_maintainer=True)
    push(yard, 1)
    yard.submit(1)
    yard.tell(replace(late, as_of=0))
    assert not yard.stay(1).by_maintainer
    assert yard.state(1) is PrState.NOT_READY


def test_a_push_takes_back_what_the_maintainer_said():
    yard = a_yard_with_a_guarded_fork()
    yard.change(1, fork=False, draft=True)
    yard.tell(replace(yard.submission(1), by_maintainer=True))
    push(yard, 1)
    yard.tell(yard.pull_seen(1))
    assert not yard.stay(1).by_maintainer


def test_one_under_test_is_not_ready_again_when_the_target_guards_what_it_changes():
    yard = a_yard_with_a_guarded_fork(guarded=())
    yard.submit(1)
    yard.build()
    yard.change(1, guarded=GUARDED)
    yard.tell(yard.pull_seen(1))
    assert (yard.state(1), yard.reason(1)) == (PrState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)
    assert yard.picture == "main"


def test_one_that_is_about_to_land_is_not_ready_again_when_the_target_guards_what_it_changes():
    yard = a_yard_with_a_guarded_fork(guarded=())
    yard.submit(1, forced=True)
    yard.build()
    yard.passes(1)
    yard.change(1, guarded=GUARDED)
    yard.perform_all()
    assert (yard.state(1), yard.reason(1)) == (PrState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)


def test_one_in_a_bisection_is_not_ready_again_and_the_others_are_tested_without_it():
    yard = a_yard(batch=3)
    for number in (1, 2, 3):
        yard.open(number)
    yard.change(2, fork=True, guarded=())
    yard.submit(1, 2, 3)
    yard.build()
    yard.fails(1, 2, 3)
    yard.build()
    assert yard.queue.bisections
    yard.change(2, guarded=GUARDED)
    yard.tell(yard.pull_seen(2))
    assert (yard.state(2), yard.reason(2)) == (PrState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)
    assert not yard.queue.bisections
    yard.build()
    assert yard.picture == "main ← 1+3…"


# Admission.


def test_a_ready_pr_is_admitted_when_it_is_submitted():
    yard = a_yard(concurrency=1, prs=1)
    yard.submit(2)
    assert yard.timeline(2) == [(PrState.NOT_READY, Reason.SUBMITTED), (PrState.PENDING, Reason.READY)]


@pytest.mark.parametrize("state", [QueueState.PAUSED, QueueState.DRAINING])
def test_a_queue_that_does_not_run_admits_nobody(state: QueueState):
    assert a_closed_yard(state).state(1) is PrState.NOT_READY


@pytest.mark.parametrize("state", [QueueState.PAUSED, QueueState.DRAINING])
def test_those_that_are_ready_come_in_when_the_queue_runs_again(state: QueueState):
    yard = a_closed_yard(state)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.state(1) is PrState.PENDING


def test_those_that_are_not_ready_stay_out_when_the_queue_runs_again():
    yard = a_yard()
    yard.open(1)
    yard.change(1, draft=True)
    yard.submit(1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.state(1) is PrState.NOT_READY


def test_those_without_targets_come_in_when_the_queue_turns_to_single_mode():
    yard = a_parallel_yard()
    yard.submit(1)
    yard.tell(e.SettingsSaved(config=a_config()))
    assert yard.state(1) is PrState.PENDING


def test_those_that_are_in_stay_in_when_the_queue_pauses():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    assert yard.state(1) is PrState.TESTING


# Sent back.


def test_one_that_is_no_longer_mergeable_before_it_lands_is_not_ready_again():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform_all()
    assert (yard.state(1), yard.reason(1)) == (PrState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_one_that_was_sent_back_comes_in_again_when_it_is_mergeable():
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform_all()
    yard.change(1, mergeability=Mergeability.MERGEABLE)
    yard.tell(yard.pull_seen(1))
    assert yard.picture == "main ← 1…"


def test_the_time_of_one_that_was_sent_back_begins_anew():
    yard = a_yard(prs=1, not_ready_timeout_hours=1)
    yard.passes(1)
    yard.pass_time(2 * 3_600_000)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform_all()
    assert yard.state(1) is PrState.NOT_READY
