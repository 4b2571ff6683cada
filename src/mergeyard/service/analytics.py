"""Numbers about queues: what is in them now, and throughput, durations, costs and flaky checks over a period."""

import asyncio
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter

import msgspec
from msgspec import Struct, field

from mergeyard.domain.access import Token
from mergeyard.domain.ids import BatchId, QueueId, QueueKey, Repo, RunId, Sha
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import TERMINAL_STATES, CheckState, PullRequestState, RunStatus
from mergeyard.domain.timestamps import HOUR, Instant, later
from mergeyard.ports.store import Store, TransitionRow
from mergeyard.service import persistence
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry


class QueueTypeMetrics(Struct, kw_only=True):
    """Metrics of one `queue_type`: the first three fields count pull requests that are in the queue now, the others
    describe the last hour."""

    depth: int = 0
    not_ready: int = 0
    testing: int = 0
    conclusions: dict[str, int] = field(default_factory=dict[str, int])
    """Ended submissions, by their final state."""
    restarts: int = 0
    wait_seconds: list[float] = field(default_factory=list[float])
    """Seconds from admission to the first test run."""
    test_seconds: list[float] = field(default_factory=list[float])
    """Seconds in the state `testing`."""
    queue_seconds: list[float] = field(default_factory=list[float])
    """Seconds from admission to the end."""


class QueueMetrics(Struct, frozen=True):
    key: QueueKey
    main: QueueTypeMetrics = field(default_factory=QueueTypeMetrics)
    bisection: QueueTypeMetrics = field(default_factory=QueueTypeMetrics)


class QueueMetricsReader:
    def __init__(self, registry: QueueRegistry) -> None:
        self._registry = registry

    async def read_visible(self, token: Token, repo: Repo | None) -> list[QueueMetrics]:
        """The metrics of all queues that the token can see, or of those of one repository."""
        queue_actors = await self._registry.list_visible(token)
        if repo is not None:
            queue_actors = [queue_actor for queue_actor in queue_actors if queue_actor.key.repo == repo]
        metrics_by_queue = {queue_actor.id: _count_current(queue_actor) for queue_actor in queue_actors}
        now = self._registry.clock.now()
        changes = await self._registry.store.transitions(list(metrics_by_queue), Instant(now - HOUR), later(now, 1))
        for change in changes:
            queue_metrics = metrics_by_queue[change.queue]
            _count_change(queue_metrics.bisection if change.bisecting else queue_metrics.main, change)
        return list(metrics_by_queue.values())


def _count_current(queue_actor: QueueActor) -> QueueMetrics:
    queue_metrics = QueueMetrics(queue_actor.key)
    bisected = set(queue_actor.queue.bisected_submission_ids)
    for submission in queue_actor.queue.submissions.values():
        metrics = queue_metrics.bisection if submission.id in bisected else queue_metrics.main
        metrics.not_ready += submission.state is PullRequestState.NOT_READY
        metrics.depth += submission.state is not PullRequestState.NOT_READY
        metrics.testing += submission.state is PullRequestState.TESTING
    return queue_metrics


def _count_change(metrics: QueueTypeMetrics, change: TransitionRow) -> None:
    if change.source == PullRequestState.TESTING:
        metrics.restarts += change.to == PullRequestState.PENDING
        _append_seconds(metrics.test_seconds, change.ms_in_state)
    if change.first_run:
        _append_seconds(metrics.wait_seconds, change.ms_in_queue)
    if change.to in TERMINAL_STATES:
        metrics.conclusions[change.to] = metrics.conclusions.get(change.to, 0) + 1
        _append_seconds(metrics.queue_seconds, change.ms_in_queue)


def _append_seconds(seconds: list[float], milliseconds: int | None) -> None:
    if milliseconds is not None:
        seconds.append(milliseconds / 1000)


class PastRun(Struct, frozen=True, kw_only=True, gc=False):
    """The counted part of a run. There can be 100,000 of them, so they are not tracked by the garbage collector."""

    queue: QueueId
    id: RunId
    kind: RunKind
    has_batch: bool
    """Whether it tested a batch; also true for a bisection run whose result a batch took over."""
    stack: bytes
    """A hash of base, pull requests and heads."""
    tested_count: int
    status: RunStatus
    started_at: Instant
    decided_at: Instant
    failed_checks: tuple[str, ...] = ()
    passed_checks: tuple[str, ...] = ()

    @property
    def duration_ms(self) -> int:
        return self.decided_at - self.started_at

    @property
    def is_batched(self) -> bool:
        return self.has_batch and self.tested_count > 1


def is_counted(transition: TransitionRow) -> bool:
    return transition.to in TERMINAL_STATES or is_restart(transition)


def is_restart(transition: TransitionRow) -> bool:
    return transition.source == PullRequestState.TESTING and transition.to == PullRequestState.PENDING


class PeriodRecords(Struct, frozen=True):
    transitions: Sequence[TransitionRow] = ()
    """Only ends of submissions, and restarts."""
    runs: Sequence[PastRun] = ()

    @property
    def is_empty(self) -> bool:
        return not self.transitions and not self.runs

    def between(self, since: Instant, until: Instant) -> "PeriodRecords":
        return PeriodRecords(
            [transition for transition in self.transitions if since <= transition.at < until],
            [run for run in self.runs if since <= run.decided_at < until],
        )

    def split_at(self, starts: Sequence[Instant]) -> "list[PeriodRecords]":
        """One part per start, up to the next start. Records before the first start are dropped."""
        transitions, runs = [list[TransitionRow]() for _ in starts], [list[PastRun]() for _ in starts]
        for transition in self.transitions:
            if transition.at >= starts[0]:
                transitions[bisect_right(starts, transition.at) - 1].append(transition)
        for run in self.runs:
            if run.decided_at >= starts[0]:
                runs[bisect_right(starts, run.decided_at) - 1].append(run)
        return [PeriodRecords(*part) for part in zip(transitions, runs, strict=True)]


def sum_ci_ms(runs: Iterable[PastRun]) -> int:
    """Milliseconds from the start of each run until it was decided or cancelled."""
    return sum(run.duration_ms for run in runs)


def sum_saved_ci_ms(runs: Iterable[PastRun]) -> int:
    """Milliseconds; negative when batching cost more than it saved."""
    return sum(map(_savings_ms, runs))


def _savings_ms(run: PastRun) -> int:
    if run.has_batch and run.status is RunStatus.SUCCEEDED:
        return (run.tested_count - 1) * run.duration_ms
    if run.kind is RunKind.BISECTION or (run.is_batched and run.status is RunStatus.FAILED):
        return -run.duration_ms
    return 0


MAX_EVIDENCE = 3


class FlakyStack(Struct, frozen=True):
    """A check that failed and passed on one stack, with its latest failed and its latest passed run."""

    queue: QueueId
    check: str
    failures: int
    failed_run_id: RunId
    passed_run_id: RunId
    at: Instant


class FlakyCheck(Struct, frozen=True):
    queue: QueueId
    check: str
    stacks: int
    """On how many stacks the check failed and passed."""
    failures: int
    """In how many runs on these stacks the check failed."""
    reports: int
    """In how many runs the check failed or passed, on all stacks."""
    last_at: Instant
    evidence: tuple[FlakyStack, ...]
    """Latest first."""


def find_flaky_checks(runs: Iterable[PastRun]) -> list[FlakyCheck]:
    """Ordered by the number of stacks, most first, then by time, latest first."""
    reports = defaultdict[tuple[QueueId, str], int](int)
    runs_by_stack = defaultdict[tuple[QueueId, bytes], list[PastRun]](list)
    for run in runs:
        runs_by_stack[run.queue, run.stack].append(run)
        for check in (*run.failed_checks, *run.passed_checks):
            reports[run.queue, check] += 1
    by_check = defaultdict[tuple[QueueId, str], list[FlakyStack]](list)
    for runs_of_stack in runs_by_stack.values():
        for contradiction in _find_contradictions(runs_of_stack):
            by_check[contradiction.queue, contradiction.check].append(contradiction)
    found = [_summarize(contradictions, reports[key]) for key, contradictions in by_check.items()]
    return sorted(found, key=lambda flaky: (-flaky.stacks, -flaky.last_at, flaky.check))


def _find_contradictions(runs_of_stack: Sequence[PastRun]) -> Iterator[FlakyStack]:
    decided_at = attrgetter("decided_at")
    failed = {check for run in runs_of_stack for check in run.failed_checks}
    passed = {check for run in runs_of_stack for check in run.passed_checks}
    for check in sorted(failed & passed):
        failures = [run for run in runs_of_stack if check in run.failed_checks]
        last_failed = max(failures, key=decided_at)
        last_passed = max((run for run in runs_of_stack if check in run.passed_checks), key=decided_at)
        at = max(last_failed.decided_at, last_passed.decided_at)
        yield FlakyStack(last_failed.queue, check, len(failures), last_failed.id, last_passed.id, at)


def _summarize(contradictions: Sequence[FlakyStack], reports: int) -> FlakyCheck:
    latest = sorted(contradictions, key=lambda each: each.at, reverse=True)
    return FlakyCheck(
        queue=latest[0].queue,
        check=latest[0].check,
        stacks=len(latest),
        failures=sum(each.failures for each in latest),
        reports=reports,
        last_at=latest[0].at,
        evidence=tuple(latest[:MAX_EVIDENCE]),
    )


CHUNK_MS = 3 * HOUR
MAX_RUNS_PER_CHUNK = 2000
"""Complete runs that are in memory at one time."""


class _RunExcerpt(Struct):
    """The counted fields of a stored `Run`, with the same names. Decoding whole runs takes three times as long."""

    id: RunId
    kind: RunKind
    base: Sha
    stack: msgspec.Raw
    tested_count: int
    status: RunStatus
    started_at: Instant
    decided_at: Instant
    batch: BatchId | None = None
    checks: Mapping[str, CheckState] = field(default_factory=dict[str, CheckState])
    used_head_checks: bool = False


_decode = msgspec.json.Decoder(_RunExcerpt).decode


class AnalyticsReader:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> PeriodRecords:
        """The transitions of pull requests of these queues, and their runs that were decided in the period."""
        return PeriodRecords(
            await self.read_transitions(queues, since, until), await self._read_runs(queues, since, until)
        )

    async def read_creation(self, queues: Sequence[QueueId]) -> Instant | None:
        """When the first of these queues was created. That entry is the oldest of a queue, and never expires."""
        first = [await self._store.entries(queue, 0, 1) for queue in queues]
        return min((persistence.decode_record(entries[0].body).at for entries in first if entries), default=None)

    async def read_transitions(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> list[TransitionRow]:
        transitions = list[TransitionRow]()
        for start in range(since, until, CHUNK_MS):
            end = Instant(min(start + CHUNK_MS, until))
            transitions += filter(is_counted, await self._store.transitions(queues, Instant(start), end))
        return transitions

    async def _read_runs(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> list[PastRun]:
        """All runs that were started and decided in the period, read chunk by chunk, latest first."""
        runs = list[PastRun]()
        for queue in queues:
            end, before = until, 0
            while found := await self._store.decided_runs(queue, since, end, MAX_RUNS_PER_CHUNK, before):
                runs += await asyncio.to_thread(decode_past_runs, queue, [run.body for run in found])
                if len(found) < MAX_RUNS_PER_CHUNK:
                    break
                end, before = found[-1].decided_at, found[-1].row_id
        return runs


def decode_past_runs(queue: QueueId, bodies: Iterable[bytes]) -> list[PastRun]:
    """A run that took its result from the checks of a head tested nothing, so it is left out."""
    excerpts = (_decode(body) for body in bodies)
    return [_to_past_run(queue, run) for run in excerpts if not run.used_head_checks]


def _to_past_run(queue: QueueId, run: _RunExcerpt) -> PastRun:
    return PastRun(
        queue=queue,
        id=run.id,
        kind=run.kind,
        has_batch=run.batch is not None,
        stack=blake2b(run.base.encode() + bytes(run.stack), digest_size=16).digest(),
        tested_count=run.tested_count,
        status=run.status,
        started_at=run.started_at,
        decided_at=run.decided_at,
        failed_checks=tuple(name for name, state in run.checks.items() if state is CheckState.FAILED),
        passed_checks=tuple(name for name, state in run.checks.items() if state is CheckState.PASSED),
    )


class ReasonCount(Struct, frozen=True):
    state: str
    reason: str
    count: int


def count_conclusion_reasons(transitions: Iterable[TransitionRow]) -> list[ReasonCount]:
    return _count_reasons(transition for transition in transitions if transition.to in TERMINAL_STATES)


def count_restart_reasons(transitions: Iterable[TransitionRow]) -> list[ReasonCount]:
    return _count_reasons(transition for transition in transitions if is_restart(transition))


def _count_reasons(transitions: Iterable[TransitionRow]) -> list[ReasonCount]:
    """Most frequent first, then by name."""
    counts = Counter((each.to, each.reason) for each in transitions)
    return [
        ReasonCount(*state_and_reason, count)
        for state_and_reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


class Summary(Struct, frozen=True, kw_only=True):
    merged: int
    failed: int
    cancelled: int
    median_ms: int | None
    """Milliseconds in the queue, of merged pull requests."""
    p95_ms: int | None
    """The 95th percentile of the same times."""
    runs: int
    restarts: int
    bisection_runs: int
    failed_batches: int
    ci_ms: int
    """Milliseconds of CI time."""
    saved_ci_ms: int
    """Milliseconds of CI time that batching saved."""

    @property
    def success_rate(self) -> float | None:
        decided = self.merged + self.failed
        return self.merged / decided if decided else None

    @property
    def runs_per_merge(self) -> float | None:
        return self.runs / self.merged if self.merged else None


def summarize(past: PeriodRecords) -> Summary:
    ends = Counter(transition.to for transition in past.transitions)
    times = sorted(
        each.ms_in_queue
        for each in past.transitions
        if each.to == PullRequestState.MERGED and each.ms_in_queue is not None
    )
    return Summary(
        merged=ends[PullRequestState.MERGED],
        failed=ends[PullRequestState.FAILED],
        cancelled=ends[PullRequestState.CANCELLED],
        median_ms=quantile(times, 0.5),
        p95_ms=quantile(times, 0.95),
        runs=len(past.runs),
        restarts=sum(map(is_restart, past.transitions)),
        bisection_runs=sum(run.kind is RunKind.BISECTION for run in past.runs),
        failed_batches=_count_failed_batches(past.runs),
        ci_ms=sum_ci_ms(past.runs),
        saved_ci_ms=sum_saved_ci_ms(past.runs),
    )


def quantile(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _count_failed_batches(runs: Sequence[PastRun]) -> int:
    """A batch that fails again when it is retried counts once."""
    return len({(run.queue, run.stack) for run in runs if run.is_batched and run.status is RunStatus.FAILED})
