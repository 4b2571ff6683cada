"""The page of a pull request: its progress steps and its checklist."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import Mergeability, PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.service.views import SubmissionView, view_submission
from mergeyard.web.pull_request_page import ChecklistItem, ItemStatus, build_checklist, build_progress_steps
from tests.support.builders import a_config, a_plain_queue, a_world


def steps(state: PullRequestState, *, previous: PullRequestState | None = None) -> str:
    entry = PullRequestChanged(
        at=Instant(0),
        submission_id=SubmissionId(1),
        number=PullRequestNumber(1),
        source=previous,
        to=state,
        reason=Reason.SUBMITTED,
    )
    return " ".join(f"{step.name}={step.stage}" for step in build_progress_steps(state, [entry]))


def test_a_queued_pull_request_has_passed_the_first_step():
    assert steps(PullRequestState.PENDING) == "Submitted=passed Queued=here Testing=ahead Passed=ahead Merged=ahead"


def test_a_merged_pull_request_has_passed_all_steps():
    assert steps(PullRequestState.MERGED) == "Submitted=passed Queued=passed Testing=passed Passed=passed Merged=passed"


def test_a_failed_pull_request_ends_after_testing():
    failed = steps(PullRequestState.FAILED, previous=PullRequestState.TESTING)
    assert failed == "Submitted=passed Queued=passed Testing=passed Failed=off"


def test_a_pull_request_removed_before_it_was_ready_ends_after_submission():
    assert steps(PullRequestState.CANCELLED, previous=PullRequestState.NOT_READY) == "Submitted=passed Removed=off"


@pytest.mark.parametrize("state", PullRequestState)
def test_every_state_has_steps(state: PullRequestState):
    assert steps(state, previous=PullRequestState.PENDING).startswith("Submitted=")


def not_ready(*, mode: Mode = Mode.SINGLE, **changes: object) -> SubmissionView:
    """A submitted pull request that lacks only what `changes` says."""
    submission = a_world(prs=1).submission(1)
    submission = replace(
        submission, **{name: value for name, value in changes.items() if name in submission.__struct_fields__}
    )
    pull_request_changes = {
        name: value for name, value in changes.items() if name in submission.pull_request.__struct_fields__
    }
    submission = replace(
        submission,
        state=PullRequestState.NOT_READY,
        pull_request=replace(submission.pull_request, **pull_request_changes),
    )
    return view_submission(a_plain_queue(config=a_config(mode=mode)), submission, submission.submitted_at)


def missing(view: SubmissionView, state: QueueState = QueueState.RUNNING) -> list[ChecklistItem]:
    return [item for item in build_checklist(view, state) if item.status is not ItemStatus.MET]


def test_a_complete_checklist_has_no_open_items():
    assert [item.label for item in build_checklist(not_ready(), QueueState.RUNNING)] == [
        "Base branch is main",
        "Is not a draft",
        "Can be merged",
        "The queue is running",
    ]
    assert missing(not_ready()) == []


def test_every_missing_item_says_what_to_do():
    (base, draft, merge, queue) = missing(
        not_ready(base_branch="next", draft=True, mergeability=Mergeability.NOT_MERGEABLE), QueueState.PAUSED
    )
    assert "Change it to main" in base.advice
    assert draft.advice == "Mark it as ready for review."
    assert "conflicts" in merge.advice
    assert "resume" in queue.advice


def test_an_unknown_mergeability_is_awaited_without_advice_to_act():
    (unknown,) = missing(not_ready(mergeability=Mergeability.UNKNOWN))
    assert unknown.status is ItemStatus.AWAITED
    assert "nothing to do" in unknown.advice


def test_a_forced_pull_request_need_not_be_mergeable():
    assert missing(not_ready(mergeability=Mergeability.NOT_MERGEABLE, forced=True)) == []


def test_a_fork_that_changes_guarded_paths_needs_a_maintainer():
    (guarded,) = missing(not_ready(fork=True, guarded_paths=("ci.yml",)))
    assert guarded.label == "Changes guarded paths"
    assert "ci.yml" in guarded.advice
    assert missing(not_ready(fork=True, guarded_paths=("ci.yml",), by_maintainer=True)) == []
    assert missing(not_ready(fork=True, guarded_paths=())) == []


def test_impacted_targets_are_needed_only_in_parallel_mode():
    (item,) = missing(not_ready(mode=Mode.PARALLEL, impacted_targets=None))
    assert "Upload them" in item.advice
    assert missing(not_ready(mode=Mode.PARALLEL, impacted_targets=impacted_targets_from_names("x"))) == []
    assert missing(not_ready(impacted_targets=None)) == []


def test_a_pull_request_admitted_before_parallel_mode_needs_no_impacted_targets():
    admitted = not_ready(mode=Mode.PARALLEL, impacted_targets=None)
    assert missing(replace(admitted, submission=replace(admitted.submission, state=PullRequestState.TESTING))) == []


@pytest.mark.parametrize("state", QueueState)
def test_every_state_of_the_queue_is_explained(state: QueueState):
    assert build_checklist(not_ready(), state)[-1].label.startswith("The queue ")
