"""Hints between replicas, and their delivery to listeners."""

import asyncio
from collections.abc import Awaitable, Callable

from mergeyard.ports.store import HintHandler, StoreUnavailable

OnDisconnect = Callable[[], Awaitable[None]]

Deliver = Callable[[HintHandler, str], None]
"""Delivers a hint to a listener, possibly late or never."""


def deliver_soon(on_hint: HintHandler, hint: str) -> None:
    asyncio.get_running_loop().call_soon(on_hint, hint)


class Listener:
    def __init__(self, on_hint: HintHandler, on_disconnect: OnDisconnect, deliver: Deliver) -> None:
        self._on_hint = on_hint
        self._on_disconnect = on_disconnect
        self._deliver = deliver
        self._is_stopped = False

    def stop_listening(self) -> None:
        self._is_stopped = True

    async def resume_listening(self) -> None:
        """Reads what was missed; if the read fails, hints are still lost."""
        self._is_stopped = False
        try:
            await self._on_disconnect()
        except StoreUnavailable:
            self._is_stopped = True
            raise

    def send(self, hint: str) -> None:
        self._deliver(self._receive, hint)

    def _receive(self, hint: str) -> None:
        """A hint can arrive after listening was stopped."""
        if not self._is_stopped:
            self._on_hint(hint)


class Listeners:
    """All listeners, in the order in which they started."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        self._listeners.remove(listener)
        listener.stop_listening()

    def notify(self, hints: tuple[str, ...]) -> None:
        """Duplicates in one send are delivered once."""
        for hint in dict.fromkeys(hints):
            for listener in tuple(self._listeners):
                listener.send(hint)
