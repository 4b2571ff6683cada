"""Rings when a queue wants to be asked again, even if nothing happens until then."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from mergeyard.domain.instants import Instant, later
from mergeyard.ports.clock import Clock

log = structlog.get_logger()

BETWEEN_ATTEMPTS = 1000


class Alarm:
    def __init__(self, clock: Clock, wake: Callable[[], Awaitable[object]]) -> None:
        self._clock = clock
        self._wake = wake
        self._ringing: tuple[Instant, asyncio.Task[None]] | None = None
        self._stopped = False

    def set(self, at: Instant | None) -> None:
        """One that rings too early costs a turn without news; one that is due earlier need not be moved."""
        if at is None or self._stopped:
            return
        if self._ringing is not None:
            due, ringing = self._ringing
            if due <= at and not ringing.done():
                return
            ringing.cancel()
        self._ringing = (at, asyncio.create_task(self._ring(at)))

    def stop(self) -> None:
        self._stopped = True
        if self._ringing is not None:
            self._ringing[1].cancel()

    async def _ring(self, at: Instant) -> None:
        await self._clock.sleep(max(0, at - self._clock.now()))
        self._ringing = None
        try:
            await self._wake()
        except Exception as error:
            log.error("a turn failed", error=str(error))
            self.set(later(self._clock.now(), BETWEEN_ATTEMPTS))
