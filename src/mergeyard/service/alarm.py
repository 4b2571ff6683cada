"""Rings when a queue wants to be asked again, even if nothing happens until then."""

import asyncio

import structlog

from mergeyard.domain.instants import Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.ports.clock import Clock
from mergeyard.service.turn import Keeper

log = structlog.get_logger()

BETWEEN_ATTEMPTS = 1000


class Alarms:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ringing: dict[Keeper, tuple[Instant, asyncio.Task[None]]] = {}

    def follow(self, keeper: Keeper, _: Queue | None) -> None:
        """One that rings too early costs a turn without news; one that is due earlier need not be moved."""
        if keeper.wake_at is not None:
            self._set(keeper, keeper.wake_at)

    def leave(self, keeper: Keeper) -> None:
        _, ringing = self._ringing.pop(keeper, (None, None))
        if ringing is not None:
            ringing.cancel()

    def stop(self) -> None:
        for keeper in tuple(self._ringing):
            self.leave(keeper)

    def _set(self, keeper: Keeper, at: Instant) -> None:
        due, ringing = self._ringing.get(keeper, (None, None))
        if due is not None and ringing is not None and not ringing.done():
            if due <= at:
                return
            ringing.cancel()
        self._ringing[keeper] = (at, asyncio.create_task(self._ring(keeper, at)))

    async def _ring(self, keeper: Keeper, at: Instant) -> None:
        await self._clock.sleep(max(0, at - self._clock.now()))
        del self._ringing[keeper]
        if keeper.closed:
            return
        try:
            await keeper.tell()
        except Exception as error:
            log.error("a turn failed", error=str(error))
            self._set(keeper, later(self._clock.now(), BETWEEN_ATTEMPTS))
