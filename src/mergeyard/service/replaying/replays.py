"""Answers what a queue would have done in its past with other settings."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct, to_builtins

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.repositories import QueueKey
from mergeyard.service.errors import Code, Refused
from mergeyard.service.replaying.apart import answered_apart
from mergeyard.service.replaying.reading import MOST, read_history
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard
from mergeyard.sim.replaying.whatif import Answer, Question

AT_ONCE = 2
"""Replays of all queues together: each takes a core."""
MOST_ASKED = 12
"""Those under way, and those that wait for them."""

Replayer = Callable[[Question], Awaitable[Answer]]


class Replay(Struct, frozen=True, kw_only=True):
    since: Instant
    """Of whoever came since then the time is counted."""
    until: Instant
    counted: int
    most: int | None
    """So many are counted at most, and there were more."""
    now: Config
    """The present settings."""
    wishes: Mapping[str, Any]
    answer: Answer


class Replays:
    def __init__(self, yard: Yard, replayer: Replayer = answered_apart) -> None:
        self._yard = yard
        self._replayer = replayer
        self._one_at_a_time = WeakKeyDictionary[Keeper, asyncio.Lock]()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._asked = 0

    async def replay(self, key: QueueKey, since: Instant, wishes: Mapping[str, Any]) -> Replay:
        """`wishes` are settings that can be replayed, by their names."""
        keeper = await self._yard.keeper(key)
        if self._asked >= MOST_ASKED:
            raise Refused(Code.RATE_LIMITED, "Too many replays are asked for: ask again in a minute.", retry_after=60)
        self._asked += 1
        try:
            async with self._one_at_a_time.setdefault(keeper, asyncio.Lock()), self._places:
                return await self._replay(keeper, since, wishes)
        finally:
            self._asked -= 1

    async def _replay(self, keeper: Keeper, since: Instant, wishes: Mapping[str, Any]) -> Replay:
        until, in_lanes = later(self._yard.clock.now(), 1), wishes.get("mode") == Mode.PARALLEL
        history = await read_history(self._yard.store, keeper, since, until, in_lanes=in_lanes)
        return Replay(
            since=history.since,
            until=until,
            counted=sum(arrival.counted for arrival in history.arrivals),
            most=MOST if history.cut else None,
            now=keeper.queue.config,
            wishes=wishes,
            answer=await self._replayer(Question(history, to_builtins(wishes))),
        )
