"""Reads the past out of the store, a little at a time, so that months of it neither fill memory nor stop others."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct, field

from mergeyard.domain.ids import BatchId, QueueId, RunId, Sha
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import CheckState, RunStatus
from mergeyard.ports.store import Figure, Store, StoredRun
from mergeyard.service.history.past import Past, PastRun, is_counted

WATCH = 3 * HOUR
MAX_RUNS_AT_ONCE = 2000
"""Runs that are in memory as a whole at one time."""


class _Stored(Struct):
    """The part of a stored run that is counted: to decode the whole of it takes three times as long."""

    id: RunId
    kind: RunKind
    base: Sha
    stack: msgspec.Raw
    tests: int
    status: RunStatus
    started_at: Instant
    decided_at: Instant
    batch: BatchId | None = None
    checks: Mapping[str, CheckState] = field(default_factory=dict[str, CheckState])


_decode = msgspec.json.Decoder(_Stored).decode


class Histories:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Past:
        """All that happened to pull requests of these queues, and all their runs that were decided then."""
        return Past(await self.figures(queues, since, until), await self._runs(queues, since, until))

    async def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> list[Figure]:
        figures = list[Figure]()
        for start, end in _parts(since, until, WATCH):
            figures += filter(is_counted, await self._store.figures(queues, start, end))
        return figures

    async def _runs(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> list[PastRun]:
        runs = list[PastRun]()
        for queue in queues:
            async for stored in decided_runs(self._store, queue, since, until):
                runs += await asyncio.to_thread(remembered, queue, [run.body for run in stored])
        return runs


async def decided_runs(
    store: Store, queue: QueueId, since: Instant, until: Instant
) -> AsyncIterator[Sequence[StoredRun]]:
    """All runs of a queue that were started and decided in this time, chunk by chunk, the latest first."""
    before = 0
    while found := await store.decided_runs(queue, since, until, MAX_RUNS_AT_ONCE, before):
        yield found
        if len(found) < MAX_RUNS_AT_ONCE:
            return
        until, before = found[-1].decided_at, found[-1].place


def remembered(queue: QueueId, bodies: Iterable[bytes]) -> list[PastRun]:
    return [_past_run(queue, _decode(body)) for body in bodies]


def _past_run(queue: QueueId, run: _Stored) -> PastRun:
    return PastRun(
        queue=queue,
        id=run.id,
        kind=run.kind,
        in_line=run.batch is not None,
        stack=blake2b(run.base.encode() + bytes(run.stack), digest_size=16).digest(),
        tests=run.tests,
        status=run.status,
        started_at=run.started_at,
        decided_at=run.decided_at,
        red=_with(CheckState.FAILED, run.checks),
        green=_with(CheckState.PASSED, run.checks),
    )


def _with(state: CheckState, checks: Mapping[str, CheckState]) -> tuple[str, ...]:
    return tuple(check for check, shown in checks.items() if shown is state)


def _parts(since: Instant, until: Instant, length: int) -> Iterable[tuple[Instant, Instant]]:
    for start in range(since, until, length):
        yield Instant(start), Instant(min(start + length, until))
