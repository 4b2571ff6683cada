"""What-if replays: reads the history of a queue and has it replayed in another process."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct, ValidationError, convert, json, to_builtins
from msgspec.structs import replace

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.journal import QueueChanged, QueueCreated
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets, Submission
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import DAY, Instant, later
from mergeyard.ports.store import AuditQuery, Store, SubmissionsQuery
from mergeyard.service import persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.simulation.history import REPLAYABLE_SETTINGS, ConfigChange, History, StateChange, build_history
from mergeyard.simulation.whatif import WhatIfRequest, WhatIfResult, respond

CHANGE_PATTERN = re.compile(rf"({'|'.join(REPLAYABLE_SETTINGS)}) (\S+) → (\S+?)(?:, |$)")
BOOLEANS = {"yes": True, "no": False}


class PastSettings(Struct, frozen=True):
    settings: tuple[ConfigChange, ...]
    """Oldest first; the first applies from the beginning of the period."""
    unreadable_changes: int
    """How many changes could not be reverted."""


def reconstruct_settings(now: Config, changes: Iterable[QueueChanged], since: Instant) -> PastSettings:
    """`changes` are those since `since`, latest first. Settings that cannot be replayed keep their current value."""
    config, settings, unread = now, list[ConfigChange](), 0
    for change in changes:
        if change.reason is not Reason.SETTINGS_CHANGED:
            continue
        settings.append(ConfigChange(change.at, config))
        before = _revert(config, change.detail)
        unread += before is None
        config = before or config
    return PastSettings((ConfigChange(since, config), *reversed(settings)), unread)


def _revert(after: Config, detail: str) -> Config | None:
    """None when the new values in the journal entry are not those of `after`."""
    changes = list(_parse_changes(detail))
    if any(_format_value(getattr(after, name)) != new for name, _, new in changes):
        return None
    try:
        return convert(
            to_builtins(after) | {name: BOOLEANS.get(old, old) for name, old, _ in changes}, Config, strict=False
        )
    except ValidationError:
        return None


def _parse_changes(detail: str) -> Iterator[tuple[str, str, str]]:
    """Stops at the first setting that cannot be replayed. The replayable settings come first in `Config`, and so in the
    journal entry; later ones can contain arbitrary text, such as the name of a label."""
    position = 0
    while change := CHANGE_PATTERN.match(detail, position):
        yield change[1], change[2], change[3]
        position = change.end()


def _format_value(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


MAX_COUNTED_PULL_REQUESTS = 500
"""Pull requests that are counted, latest first: with more of them a client would wait for minutes."""
WARMUP_MS, MAX_WARMUP_PULL_REQUESTS = DAY, 100
"""Pull requests that were submitted before the period fill the queue and are not counted."""
MAX_RUNS = 10_000
"""Latest first. 500 pull requests have fewer runs, unless clients restart their tests again and again."""
MAX_CHANGES = 500
MAX_TARGETS = 1000
"""Of one pull request; one with more counts as impacting ALL."""
REQUESTABLE_STATES = {QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING}


async def read_history(
    store: Store, queue_actor: QueueActor, since: Instant, until: Instant, *, with_lanes: bool
) -> History:
    """`with_lanes`: the replay also uses parallel mode, so impacted targets are needed."""
    queue_id = queue_actor.id
    latest = await _read_submissions(
        store, queue_id, SubmissionsQuery(take=MAX_COUNTED_PULL_REQUESTS + 1, since=since, until=until)
    )
    counted, cut = latest[:MAX_COUNTED_PULL_REQUESTS], len(latest) > MAX_COUNTED_PULL_REQUESTS
    start = counted[-1].submitted_at if cut else since
    begin = later(start, -WARMUP_MS)
    warmup = SubmissionsQuery(take=MAX_WARMUP_PULL_REQUESTS, since=begin, until=start)
    submissions = [*counted, *await _read_submissions(store, queue_id, warmup)]
    changes = await _read_changes(store, queue_actor.key, begin)
    past = reconstruct_settings(queue_actor.queue.config, changes, begin)
    if with_lanes or any(setting.config.mode is Mode.PARALLEL for setting in past.settings):
        submissions = await _add_targets(store, queue_actor, submissions)
    period = History(
        since=start,
        until=until,
        config_changes=past.settings,
        state_changes=tuple(_to_orders(changes, queue_actor.queue.requested_state, begin)),
        is_truncated=cut,
        unreadable_changes=past.unreadable_changes,
    )
    stored_runs = await store.decided_runs(queue_id, begin, until, MAX_RUNS)
    return await asyncio.to_thread(
        lambda: build_history(submissions, [persistence.decode_run(run.body) for run in stored_runs], period)
    )


async def _read_submissions(store: Store, queue_id: QueueId, page: SubmissionsQuery) -> list[Submission]:
    """Latest first."""
    bodies = await store.submissions(queue_id, page)
    return await asyncio.to_thread(lambda: [persistence.decode_submission(body) for body in bodies])


async def _add_targets(store: Store, queue_actor: QueueActor, submissions: Sequence[Submission]) -> list[Submission]:
    if not await store.has_any_impacted_targets(queue_actor.key.repo):
        return list(submissions)
    return [
        replace(submission, impacted_targets=await _read_targets(store, queue_actor.id, submission))
        for submission in submissions
    ]


async def _read_targets(store: Store, queue_id: QueueId, submission: Submission) -> ImpactedTargets | None:
    found = await persistence.read_impacted_targets(store, queue_id, submission.number, submission.pull_request.head)
    return ALL_TARGETS if found is not None and len(found.names) > MAX_TARGETS else found


async def _read_changes(store: Store, key: QueueKey, since: Instant) -> list[QueueChanged]:
    """Latest first. Skips the changes of an earlier queue for the same branch, which was deleted."""
    page = AuditQuery(take=MAX_CHANGES, repos=(key.repo,), branch=key.branch, since=since)
    changes = await store.audit_entries(replace(page, kind=QueueChanged.__name__))
    created = await store.audit_entries(replace(page, kind=QueueCreated.__name__, take=1))
    created_at_seq = created[0].seq if created else 0
    entries = [persistence.decode_record(entry.body) for entry in changes if entry.seq > created_at_seq]
    return [entry for entry in entries if isinstance(entry, QueueChanged)]


def _to_orders(changes: Sequence[QueueChanged], now: QueueState, begin: Instant) -> Iterator[StateChange]:
    """The states that users requested, oldest first, starting with the one at `begin`. Mode switches set states by
    themselves and are skipped."""
    requested = [
        change
        for change in reversed(changes)
        if change.source is not change.to
        and change.reason is not Reason.MODE_SWITCHED
        and change.to in REQUESTABLE_STATES
    ]
    first = requested[0].source if requested else now
    if first in REQUESTABLE_STATES:
        yield StateChange(begin, first)
    yield from (StateChange(change.at, change.to) for change in requested)


MAX_CONCURRENT_REPLAYS = 2
"""Of all queues together; each occupies a core."""
MAX_PENDING_REPLAYS = 12
"""Running and waiting ones."""

Replayer = Callable[[bytes], Awaitable[bytes]]
"""Computes the result of an encoded request. Raises `TimeoutError` if that takes too long."""


async def replay_in_this_process(request: bytes) -> bytes:
    """Blocks the event loop: for tests, and for a process without an API."""
    return respond(request)


class Replay(Struct, frozen=True, kw_only=True):
    since: Instant
    """Only pull requests that were submitted since then are counted."""
    until: Instant
    pull_request_count: int
    limit: int | None
    """The limit, if there were more pull requests than it allows."""
    current_config: Config
    """The current settings."""
    changed_settings: Mapping[str, Any]
    answer: WhatIfResult


class Replays:
    def __init__(self, registry: QueueRegistry, replayer: Replayer) -> None:
        self._registry = registry
        self._replayer = replayer
        self._locks = WeakKeyDictionary[QueueActor, asyncio.Lock]()
        """At most one replay per queue runs at a time."""
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_REPLAYS)
        self._pending = 0

    async def replay(self, key: QueueKey, since: Instant, changed_settings: Mapping[str, Any]) -> Replay:
        """`changed_settings` has replayable settings by name."""
        queue_actor = await self._registry.get(key)
        if self._pending >= MAX_PENDING_REPLAYS:
            raise RequestRefused(
                Code.RATE_LIMITED, "Too many replays are waiting: try again in a minute.", retry_after=60
            )
        self._pending += 1
        try:
            async with self._locks.setdefault(queue_actor, asyncio.Lock()), self._slots:
                return await self._replay(queue_actor, since, changed_settings)
        finally:
            self._pending -= 1

    async def _replay(self, queue_actor: QueueActor, since: Instant, changed_settings: Mapping[str, Any]) -> Replay:
        until = later(self._registry.clock.now(), 1)
        in_lanes = changed_settings.get("mode") == Mode.PARALLEL
        history = await read_history(self._registry.store, queue_actor, since, until, with_lanes=in_lanes)
        return Replay(
            since=history.since,
            until=until,
            pull_request_count=sum(arrival.is_counted for arrival in history.arrivals),
            limit=MAX_COUNTED_PULL_REQUESTS if history.is_truncated else None,
            current_config=queue_actor.queue.config,
            changed_settings=changed_settings,
            answer=await self._compute(WhatIfRequest(history, to_builtins(changed_settings))),
        )

    async def _compute(self, request: WhatIfRequest) -> WhatIfResult:
        try:
            result = await self._replayer(await asyncio.to_thread(json.encode, request))
        except TimeoutError:
            message = "This replay takes too long: choose a shorter period."
            raise RequestRefused(Code.INVALID_REQUEST, message) from None
        return json.decode(result, type=WhatIfResult)
