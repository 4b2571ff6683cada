"""How long a connection waits for its client: to send what it owes, and to take what it is sent."""

import asyncio
from collections.abc import Callable

LEAST_TAKEN = 16 * 1024
"""Bytes between two looks: who takes less of a long answer only holds our memory."""


class Deadline:
    """Acts when its time is over, unless what it waits for came before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Again and again, and still the first time counts."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._act)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def at(self) -> float | None:
        """None when nothing is waited for."""
        return None if self._timer is None else self._timer.when()


class Taking:
    """Looks now and then whether a client takes what it is sent, and breaks off when it does not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._next_look = Deadline(loop, seconds, self._look)
        self._left = 0

    def watch(self) -> None:
        if self._next_look.at is None:
            self._left = self._transport.get_write_buffer_size()
            self._next_look.begin()

    def end(self) -> None:
        self._next_look.end()

    def _look(self) -> None:
        self._next_look.end()
        left = self._transport.get_write_buffer_size()
        if not left:
            return
        if left > self._left - LEAST_TAKEN:
            self._transport.abort()
        else:
            self.watch()
