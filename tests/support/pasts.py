"""What happened, made up line by line: a test names only what matters to it."""

from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.ports.store import Figure
from mergeyard.service.history.past import PastRun

QUEUE = QueueId("q1")


def an_end(
    state: PrState = PrState.MERGED,
    reason: Reason | str = Reason.MERGED_BY_QUEUE,
    *,
    at: int = 0,
    minutes: int | None = None,
    queue: QueueId = QUEUE,
) -> Figure:
    """Of a stay that took so many minutes."""
    in_queue = None if minutes is None else minutes * MINUTE
    return Figure(queue, Instant(at), PrState.TESTS_PASSED, state, reason, False, None, in_queue, False)


def a_restart(reason: Reason = Reason.TARGET_BRANCH_MOVED, *, at: int = 0) -> Figure:
    return a_step(PrState.TESTING, PrState.PENDING, reason, at=at)


def a_step(source: PrState | None, to: PrState, reason: Reason, *, at: int = 0) -> Figure:
    return Figure(QUEUE, Instant(at), source, to, reason, False, None, None, False)


def a_past_run(
    name: str = "run",
    *,
    kind: RunKind = RunKind.LINE,
    in_line: bool | None = None,
    stack: str = "",
    tests: int = 1,
    status: RunStatus = RunStatus.SUCCEEDED,
    at: int = 0,
    minutes: int = 10,
    red: tuple[str, ...] = (),
    green: tuple[str, ...] = (),
    queue: QueueId = QUEUE,
) -> PastRun:
    """One that was decided at this time, after so many minutes; on a stack of its own unless that is named."""
    return PastRun(
        queue=queue,
        id=RunId(name),
        kind=kind,
        in_line=kind is RunKind.LINE if in_line is None else in_line,
        stack=(stack or name).encode(),
        tests=tests,
        status=status,
        started_at=Instant(at - minutes * MINUTE),
        decided_at=Instant(at),
        red=red,
        green=green,
    )
