"""Reads the past of one queue out of the store: as much of it as a replay takes."""

import asyncio
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import DAY, Instant, later
from mergeyard.domain.journal import QueueChanged, QueueCreated
from mergeyard.domain.pulls import Submission
from mergeyard.domain.reasons import Reason
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import ALL, Targets
from mergeyard.ports.store import AuditPage, Page, Store
from mergeyard.service import recalling, shelving
from mergeyard.service.replaying.past_settings import read_back
from mergeyard.service.turn import Keeper
from mergeyard.sim.replaying.history import History, Order
from mergeyard.sim.replaying.reading import Period, read

MOST = 500
"""Pull requests that are counted, the latest: more would make whoever asks wait for minutes."""
LEAD, MOST_IN_LEAD = DAY, 100
"""Those who came before the period fill the queue, and are not counted."""
MAX_RUNS = 10_000
"""The latest: so many pull requests have fewer, unless clients restart their tests again and again."""
MOST_CHANGES = 500
MOST_TARGETS = 1000
"""Of one pull request: whoever has more is taken to impact ALL."""
ORDERED = {QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING}


async def read_history(store: Store, keeper: Keeper, since: Instant, until: Instant, *, in_lanes: bool) -> History:
    """`in_lanes`: it will also be replayed with lanes, so what everybody impacts is asked for."""
    latest = await _stays(store, keeper.id, Page(take=MOST + 1, since=since, until=until))
    counted, cut = latest[:MOST], len(latest) > MOST
    start = counted[-1].submitted_at if cut else since
    begin = later(start, -LEAD)
    stays = [*counted, *await _stays(store, keeper.id, Page(take=MOST_IN_LEAD, since=begin, until=start))]
    changes = await _changes(store, keeper.key, begin)
    past = read_back(keeper.queue.config, changes, begin)
    if in_lanes or any(setting.config.mode is Mode.PARALLEL for setting in past.settings):
        stays = await _with_targets(store, keeper, stays)
    period = Period(
        since=start,
        until=until,
        settings=past.settings,
        orders=tuple(_orders(changes, keeper.queue.ordered_state, begin)),
        cut=cut,
        unread=past.unread,
    )
    runs = await store.decided_runs(keeper.id, begin, until, MAX_RUNS)
    return await asyncio.to_thread(_put_together, stays, [run.body for run in runs], period)


def _put_together(stays: Sequence[Submission], bodies: Sequence[bytes], period: Period) -> History:
    return read(stays, [shelving.decode_run(body) for body in bodies], period)


async def _stays(store: Store, queue: QueueId, page: Page) -> list[Submission]:
    """The latest first."""
    bodies = await store.stays(queue, page)
    return await asyncio.to_thread(lambda: [shelving.decode_stay(body) for body in bodies])


async def _with_targets(store: Store, keeper: Keeper, stays: Sequence[Submission]) -> list[Submission]:
    if not await store.any_targets(keeper.key.repo):
        return list(stays)
    return [replace(stay, targets=await _targets(store, keeper.id, stay)) for stay in stays]


async def _targets(store: Store, queue: QueueId, stay: Submission) -> Targets | None:
    found = await recalling.targets(store, queue, stay.number, stay.pull.head)
    return ALL if found is not None and len(found.names) > MOST_TARGETS else found


async def _changes(store: Store, key: QueueKey, since: Instant) -> list[QueueChanged]:
    """Of this queue, the latest first: another one may have been there before it under the same name."""
    page = AuditPage(take=MOST_CHANGES, repos=(key.repo,), branch=key.branch, since=since)
    changes = await store.audit(replace(page, kind=QueueChanged.__name__))
    created = await store.audit(replace(page, kind=QueueCreated.__name__, take=1))
    born = created[0].seq if created else 0
    records = [shelving.decode_record(entry.body) for entry in changes if entry.seq > born]
    return [record for record in records if isinstance(record, QueueChanged)]


def _orders(changes: Sequence[QueueChanged], now: QueueState, begin: Instant) -> Iterator[Order]:
    """Switching modes is nobody's order. Before the first order was what it took over from."""
    ordered = [
        change
        for change in reversed(changes)
        if change.source is not change.to and change.reason is not Reason.MODE_SWITCHED and change.to in ORDERED
    ]
    first = ordered[0].source if ordered else now
    if first in ORDERED:
        yield Order(begin, first)
    yield from (Order(change.at, change.to) for change in ordered)
