"""What replicas call out to each other, and how it gets to those who listen."""

import asyncio
from collections.abc import Awaitable, Callable

from mergeyard.ports.sharing import Hear
from mergeyard.ports.store import StoreTrouble

OnDeafEars = Callable[[], Awaitable[None]]

Deliver = Callable[[Hear, str], None]
"""Brings a word to somebody who listens; may bring it late, or never."""


def deliver_soon(hear: Hear, word: str) -> None:
    asyncio.get_running_loop().call_soon(hear, word)


class Ear:
    def __init__(self, hear: Hear, on_deaf_ears: OnDeafEars, deliver: Deliver) -> None:
        self._hear = hear
        self._on_deaf_ears = on_deaf_ears
        self._deliver = deliver
        self._is_deaf = False

    def go_deaf(self) -> None:
        self._is_deaf = True

    async def hear_again(self) -> None:
        """Whoever was deaf looks at what was missed; if it cannot, words are missed still."""
        self._is_deaf = False
        try:
            await self._on_deaf_ears()
        except StoreTrouble:
            self._is_deaf = True
            raise

    def call(self, word: str) -> None:
        self._deliver(self._hear_unless_deaf, word)

    def _hear_unless_deaf(self, word: str) -> None:
        """A word may have been under way for a while."""
        if not self._is_deaf:
            self._hear(word)


class Ears:
    """Of everybody who listens, in the order in which they began to."""

    def __init__(self) -> None:
        self._ears: list[Ear] = []

    def add(self, ear: Ear) -> None:
        self._ears.append(ear)

    def remove(self, ear: Ear) -> None:
        self._ears.remove(ear)
        ear.go_deaf()

    def call_out(self, words: tuple[str, ...]) -> None:
        """What is said twice at once is heard once."""
        for word in dict.fromkeys(words):
            for ear in tuple(self._ears):
                ear.call(word)
