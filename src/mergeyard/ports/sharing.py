"""What a store offers when several replicas work on it: who works for which repository, and what others changed."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.store import Store, StoredQueue


class Duty(Struct, frozen=True):
    """A repository that a replica works for. The fence grows with every change of hands, and proves who is the last."""

    repo: Repo
    fence: int


class Roster(Struct, frozen=True, kw_only=True):
    duties: tuple[Duty, ...]
    """Those of the replica that asks."""
    repositories: int
    workers: int
    """How many replicas share them, the one that asks among them."""


Hear = Callable[[str], None]


class SharedStore(Store, Protocol):
    async def find(self, key: QueueKey) -> StoredQueue | None:
        """The live queue of a branch, at the version that it has now."""
        ...

    async def newer(self, known: Collection[tuple[QueueId, int]]) -> Sequence[StoredQueue]:
        """Of these queues, those that have another version now, without those that are there no more."""
        ...

    async def of_repo(self, repo: Repo) -> Sequence[StoredQueue]:
        """The live queues of a repository, each at the version that it has now."""
        ...

    async def on_duty(self, replica: str) -> Sequence[StoredQueue]:
        """All live queues of the repositories that it works for."""
        ...

    async def enlist(self, replica: str, lasting: int) -> None:
        """A worker presents itself, for so many milliseconds of the store's own clock."""
        ...

    async def report(self, replica: str, lasting: int) -> Roster:
        """It is still there. Raises `Relieved` when it was silent for longer than it had said."""
        ...

    async def claim(self, replica: str, most: int, at_hand: Collection[Repo], patience: int) -> Sequence[Duty]:
        """Takes over repositories for which nobody works; none that another replica is just taking.

        Those at hand come first. Others must have been without anybody for `patience` milliseconds, so that whoever
        has them at hand can be quicker.
        """
        ...

    async def let_go(self, replica: str, repos: Collection[Repo]) -> None: ...

    async def resign(self, replica: str) -> None:
        """Lets go of everything, and is a worker no more."""
        ...

    async def call_out(self, *words: str) -> None:
        """To all replicas, this one included. A word may get lost, so it only wakes who would look anyway."""
        ...

    async def listen(self, hear: Hear, on_deaf_ears: Callable[[], Awaitable[None]]) -> None:
        """Hears until the store is closed; after a time in which words may have been missed, says so."""
        ...
