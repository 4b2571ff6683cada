"""Recorded history of a queue over a period: arrivals and their outcomes, runs, and changes of settings and state."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from mergeyard.domain.config import DEFAULT_PRIORITY, Config, DirectMergeMode, LandingMethod
from mergeyard.domain.ids import PullRequestNumber, Sha, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PullRequestState, QueueState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant

ArrivalIndex = int
"""Index of an arrival, counted from 0 in the order of admission."""


class EndState(StrEnum):
    MERGED = "merged"
    FAILED = "failed"
    """Its tests failed."""
    REMOVED = "removed"
    """Removed, closed, pushed to, or merged manually."""
    UNTESTED = "untested"
    """Concluded without a test result: it could not be built or merged, or it merged with the checks of its head."""
    STILL_QUEUED = "still_queued"
    """Still in the queue at the end of the period."""


class Arrival(Struct, frozen=True, kw_only=True):
    """One submission of a pull request, from its admission on."""

    number: PullRequestNumber
    head: Sha
    admitted_at: Instant
    author: str = ""
    priority: int = DEFAULT_PRIORITY
    no_batch: bool = False
    impacted_targets: ImpactedTargets | None = None
    stacked_on: tuple[ArrivalIndex, ...] = ()
    """Arrivals whose changes it contains."""
    previous: ArrivalIndex | None = None
    """The previous submission of the same pull request."""
    end_state: EndState
    ended_at: Instant
    is_counted: bool = True
    """False: replayed only so that the queue is as full as it was."""

    @property
    def duration_ms(self) -> int:
        return self.ended_at - self.admitted_at


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A recorded run."""

    stack: tuple[ArrivalIndex, ...]
    tested_count: int
    """How many arrivals at the end of the stack it tested; 0: it tested the target branch itself."""
    base: Sha
    started_at: Instant
    decided_at: Instant
    status: RunStatus
    is_stack_complete: bool = True
    """False: only the tested part of the stack is known."""

    @property
    def duration_ms(self) -> int:
        return self.decided_at - self.started_at

    @property
    def is_decided(self) -> bool:
        return self.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)

    @property
    def is_failed(self) -> bool:
        return self.status is RunStatus.FAILED

    @property
    def tested_arrivals(self) -> tuple[ArrivalIndex, ...]:
        return self.stack[len(self.stack) - self.tested_count :]


class ConfigChange(Struct, frozen=True):
    """The settings from this time on."""

    at: Instant
    config: Config


class StateChange(Struct, frozen=True):
    """The state of the queue from this time on: running, draining or paused."""

    at: Instant
    state: QueueState


class History(Struct, frozen=True, kw_only=True):
    since: Instant
    until: Instant
    arrivals: tuple[Arrival, ...] = ()
    runs: tuple[RecordedRun, ...] = ()
    """In the order of their start."""
    config_changes: tuple[ConfigChange, ...]
    """The first entry holds from the beginning."""
    state_changes: tuple[StateChange, ...] = ()
    external_pushes: tuple[Instant, ...] = ()
    """When the target branch moved to a commit that this queue did not land."""
    is_truncated: bool = False
    """The requested period contains more arrivals than were read; the oldest are missing."""
    unreadable_changes: int = 0
    """How many changes of settings cannot be read."""

    def was_merged(self, place: ArrivalIndex, by: Instant) -> bool:
        arrival = self.arrivals[place]
        return arrival.end_state is EndState.MERGED and arrival.ended_at <= by

    def is_counted_run(self, tested: tuple[ArrivalIndex, ...], started_at: Instant) -> bool:
        """Whether a run belongs to a counted arrival or, for a run of the target branch itself, to the period."""
        return any(self.arrivals[place].is_counted for place in tested) if tested else started_at >= self.since


TEST_FAILURE_REASONS = {Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION}
QUEUE_MERGE_REASONS = {Reason.MERGED_BY_QUEUE, Reason.TREE_MISMATCH}


def build_history(submissions: Sequence[Submission], runs: Sequence[Run], period: History) -> History:
    """Adds arrivals, runs and external pushes to a history of the period that has none of them."""
    candidates = [
        submission
        for submission in submissions
        if submission.admitted_at is not None and submission.state is not PullRequestState.NOT_READY
    ]
    admitted = sorted(candidates, key=lambda submission: (submission.admitted_at, submission.id))
    index_by_submission = {submission.id: index for index, submission in enumerate(admitted)}
    runs_by_start = sorted(runs, key=lambda run: (run.started_at or 0, run.decided_at or 0))
    return replace(
        period,
        arrivals=tuple(_build_arrivals(admitted, period)),
        runs=tuple(
            _build_recorded_run(run, index_by_submission)
            for run in runs_by_start
            if _is_relevant(run, index_by_submission)
        ),
        external_pushes=tuple(_find_external_pushes(admitted, runs_by_start, period.since)),
    )


def _build_arrivals(admitted: Sequence[Submission], period: History) -> Iterator[Arrival]:
    last_by_number = dict[PullRequestNumber, ArrivalIndex]()
    for index, submission in enumerate(admitted):
        end, at = _end_state(submission), submission.admitted_at or period.since
        contained = submission.pull_request.contained_heads
        yield Arrival(
            number=submission.number,
            head=submission.pull_request.head,
            admitted_at=at,
            author=submission.pull_request.author,
            priority=submission.priority,
            no_batch=submission.no_batch,
            impacted_targets=submission.impacted_targets,
            stacked_on=tuple(sorted(last_by_number[other] for other in contained if other in last_by_number)),
            previous=last_by_number.get(submission.number),
            end_state=end,
            ended_at=period.until if end is EndState.STILL_QUEUED else submission.state_changed_at,
            is_counted=at >= period.since and end is not EndState.STILL_QUEUED,
        )
        last_by_number[submission.number] = index


def _end_state(submission: Submission) -> EndState:
    match submission.state:
        case PullRequestState.MERGED if submission.reason in QUEUE_MERGE_REASONS:
            return EndState.MERGED
        case PullRequestState.FAILED if submission.reason in TEST_FAILURE_REASONS:
            return EndState.FAILED
        case PullRequestState.FAILED:
            return EndState.UNTESTED
        case PullRequestState.MERGED if submission.reason is Reason.MERGED_DIRECTLY:
            return EndState.UNTESTED
        case PullRequestState.MERGED | PullRequestState.CANCELLED:
            return EndState.REMOVED
        case _:
            return EndState.STILL_QUEUED


def _is_relevant(run: Run, index_by_submission: Mapping[SubmissionId, ArrivalIndex]) -> bool:
    """Whether it tested a known submission or the target branch itself; a run that used the checks of a head shows
    nothing about how long tests take."""
    if run.used_head_checks:
        return False
    return not run.tested_count or any(member.submission_id in index_by_submission for member in run.tested_members)


def _build_recorded_run(run: Run, index_by_submission: Mapping[SubmissionId, ArrivalIndex]) -> RecordedRun:
    stack = tuple(
        index_by_submission[member.submission_id] for member in run.stack if member.submission_id in index_by_submission
    )
    return RecordedRun(
        stack=stack,
        tested_count=sum(member.submission_id in index_by_submission for member in run.tested_members),
        base=run.base,
        started_at=run.started_at or Instant(0),
        decided_at=run.decided_at or Instant(0),
        status=run.status,
        is_stack_complete=len(stack) == len(run.stack),
    )


def _find_external_pushes(
    admitted: Sequence[Submission], runs_by_start: Sequence[Run], since: Instant
) -> Iterator[Instant]:
    """An external push shows as the first batch run on a base that this queue did not land. The initial base is not a
    push."""
    known_bases = {submission.merged_sha for submission in admitted}
    batch_runs = (run for run in runs_by_start if run.kind is RunKind.BATCH and run.started_at is not None)
    for position, run in enumerate(batch_runs):
        if position and run.base not in known_bases and run.started_at is not None and run.started_at >= since:
            yield run.started_at
        known_bases.add(run.base)


REPLAYABLE_SETTINGS = (
    "mode",
    "concurrency",
    "bisection_concurrency",
    "batch",
    "batching_min_size",
    "batching_max_wait_time_minutes",
    "can_optimistically_merge",
    "pending_failure_depth",
    "optimization_mode",
    "speculation",
    "testing_timeout_minutes",
    "test_retries",
)


def apply_proposed_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """Applies the proposed values, and turns off what a replay does not simulate."""
    proposed = convert(to_builtins(config) | dict(settings), Config)
    return replace(
        proposed,
        required_statuses=None,
        landing=LandingMethod.TESTED_COMMIT,
        direct_merge_mode=DirectMergeMode.OFF,
        not_ready_timeout_hours=0,
    )
