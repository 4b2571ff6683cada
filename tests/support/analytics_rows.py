"""Builders for journal rows and past runs: a test names only what matters to it."""

from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.ports.store import TransitionRow
from mergeyard.service.analytics import PastRun

QUEUE = QueueId("q1")


def a_final_transition(
    state: PullRequestState = PullRequestState.MERGED,
    reason: Reason | str = Reason.MERGED_BY_QUEUE,
    *,
    at: int = 0,
    minutes: int | None = None,
    queue: QueueId = QUEUE,
) -> TransitionRow:
    """The end of a submission that took this many minutes."""
    in_queue = None if minutes is None else minutes * MINUTE
    return TransitionRow(queue, Instant(at), PullRequestState.TESTS_PASSED, state, reason, False, None, in_queue, False)


def a_restart_transition(reason: Reason = Reason.TARGET_BRANCH_MOVED, *, at: int = 0) -> TransitionRow:
    return a_transition(PullRequestState.TESTING, PullRequestState.PENDING, reason, at=at)


def a_transition(
    from_state: PullRequestState | None, to: PullRequestState, reason: Reason, *, at: int = 0
) -> TransitionRow:
    return TransitionRow(QUEUE, Instant(at), from_state, to, reason, False, None, None, False)


def a_past_run(
    name: str = "run",
    *,
    kind: RunKind = RunKind.BATCH,
    has_batch: bool | None = None,
    stack: str = "",
    tests: int = 1,
    status: RunStatus = RunStatus.SUCCEEDED,
    at: int = 0,
    minutes: int = 10,
    failed_checks: tuple[str, ...] = (),
    passed_checks: tuple[str, ...] = (),
    queue: QueueId = QUEUE,
) -> PastRun:
    """A run that was decided at this time, after this many minutes; its stack is its name unless one is given."""
    return PastRun(
        queue=queue,
        id=RunId(name),
        kind=kind,
        has_batch=kind is RunKind.BATCH if has_batch is None else has_batch,
        stack=(stack or name).encode(),
        tested_count=tests,
        status=status,
        started_at=Instant(at - minutes * MINUTE),
        decided_at=Instant(at),
        failed_checks=failed_checks,
        passed_checks=passed_checks,
    )
