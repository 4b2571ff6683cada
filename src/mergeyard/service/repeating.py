"""Lets a request be repeated without a second effect: its answer is kept with what it changed, and given again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Struct

from mergeyard.domain.instants import DAY, Instant
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import Answer, ForgetAnswers, KeepAnswer
from mergeyard.service.errors import Code, Refused

KEPT = DAY


class Repeat(Struct, frozen=True):
    """A request that may come again: whose, under which key, and what it asks."""

    token: str
    key: str
    digest: bytes

    def kept(self, body: bytes, now: Instant) -> KeepAnswer:
        return KeepAnswer(Answer(self.token, self.key, self.digest, body, now), unless_since=Instant(now - KEPT + 1))


def kept(repeat: Repeat | None, body: bytes, now: Instant) -> tuple[KeepAnswer, ...]:
    """To be written along, where the request may come again."""
    return () if repeat is None else (repeat.kept(body, now),)


class Twins:
    """Requests with the same key that are here at the same time: one after the other."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


class Repeating:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._under_way: dict[tuple[str, str], Twins] = {}

    @asynccontextmanager
    async def once(self, repeat: Repeat) -> AsyncGenerator[bytes | None]:
        """Gives the answer of the first time, if there was one. A twin that is still under way is waited for."""
        place = (repeat.token, repeat.key)
        twins = self._under_way.setdefault(place, Twins())
        twins.count += 1
        try:
            async with twins.lock:
                yield await self.answered(repeat)
        finally:
            twins.count -= 1
            if not twins.count:
                del self._under_way[place]

    async def forget_old_answers(self) -> None:
        await self._store.commit(ForgetAnswers(Instant(self._clock.now() - KEPT)))

    async def answered(self, repeat: Repeat) -> bytes | None:
        answer = await self._store.answer(repeat.token, repeat.key)
        if answer is None or answer.at <= self._clock.now() - KEPT:
            return None
        if answer.digest != repeat.digest:
            raise Refused(
                Code.IDEMPOTENCY_KEY_REUSED,
                "This Idempotency-Key was used for another request: send a new key, or repeat that request exactly.",
            )
        return answer.body
