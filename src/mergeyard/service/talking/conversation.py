"""What has been said and heard on a pull request, remembered so that nothing is said or obeyed twice."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Comment
from mergeyard.ports.store import Store
from mergeyard.ports.writes import KeepConversation
from mergeyard.service.duties import Duties
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

MAX_STRANGERS_ANSWERED = 50
"""On one pull request: a crowd must not spend what the forge lets us write."""


class Labelled(Struct, frozen=True):
    """A label asks for a submission, by a word of its own each time that somebody puts it there."""

    label: str
    word: str


class Conversation(Struct, kw_only=True, omit_defaults=True):
    comment: str | None = None
    """The one of ours that tells its state."""
    told: str = ""
    """What that says."""
    shown: str = ""
    """What our status says, and on which commit."""
    heard: Instant = Instant(0)
    """When the last comment that was dealt with was written."""
    dealt_with: tuple[str, ...] = ()
    """Those of that very moment."""
    label: str = ""
    """The one that it bore then, if that meant something at the time."""
    labelled: Labelled | None = None
    """As long as nobody heard what came of it."""
    submitted_by_label: Ticket | None = None
    strangers: tuple[str, ...] = ()
    """People without write permission who got their one answer here."""
    trace: str = ""
    """How the host showed it when we last listened."""

    def unheard(self, comments: Sequence[Comment]) -> list[Comment]:
        later = [comment for comment in comments if comment.at >= self.heard and comment.id not in self.dealt_with]
        return sorted(later, key=lambda comment: (comment.at, len(comment.id), comment.id))

    def hear(self, comment: Comment) -> None:
        same_moment = self.dealt_with if comment.at == self.heard else ()
        self.heard, self.dealt_with = comment.at, (*same_moment, comment.id)

    def answer_once(self, person: str) -> bool:
        """Whether the person is still to be answered; from now on they are not."""
        if person in self.strangers or len(self.strangers) >= MAX_STRANGERS_ANSWERED:
            return False
        self.strangers = (*self.strangers, person)
        return True

    def take_over(self, other: "Conversation") -> None:
        """What was said to another queue, when it was pointed at another branch, was not said to this one."""
        self.heard, self.dealt_with = other.heard, other.dealt_with
        self.label, self.strangers, self.trace = other.label, other.strangers, ""


class Kept:
    """A conversation that somebody takes part in."""

    def __init__(self, store: Store, duties: Duties, keeper: Keeper, number: PrNumber, body: bytes | None) -> None:
        self.so_far = Conversation() if body is None else _read(body)
        self._store = store
        self._duties = duties
        self._keeper = keeper
        self._number = number
        self._body = body

    async def keep(self) -> None:
        """What was done is known from now on, also after a crash."""
        body = msgspec.json.encode(self.so_far)
        if body != self._body:
            kept = KeepConversation(self._keeper.id, self._number, body)
            await self._store.commit(*self._duties.proof(self._keeper.key.repo), kept)
            self._body = body


class Conversations:
    def __init__(self, yard: Yard, duties: Duties) -> None:
        self._yard = yard
        self._duties = duties
        self._locks = WeakValueDictionary[tuple[QueueId, PrNumber], asyncio.Lock]()

    @asynccontextmanager
    async def joined(self, keeper: Keeper, number: PrNumber) -> AsyncGenerator[Kept]:
        """One at a time. What changed is kept at the end, also when something went wrong on the way."""
        lock = self._locks.setdefault((keeper.id, number), asyncio.Lock())
        async with lock:
            kept = Kept(self._yard.store, self._duties, keeper, number, await self._body(keeper, number))
            for other in await self._elsewhere(keeper, number):
                if other.heard > kept.so_far.heard:
                    kept.so_far.take_over(other)
            try:
                yield kept
            finally:
                await kept.keep()

    async def know(self, repo: Repo, number: PrNumber, trace: str) -> bool:
        """Whether anybody listened since the host has shown it like this."""
        bodies = [await self._body(keeper, number) for keeper in self._yard.of_repo(repo)]
        return any(_read(body).trace == trace for body in bodies if body is not None)

    async def _elsewhere(self, keeper: Keeper, number: PrNumber) -> list[Conversation]:
        others = [other for other in await self._yard.of_repo_now(keeper.key.repo) if other is not keeper]
        bodies = [await self._body(other, number) for other in others]
        return [_read(body) for body in bodies if body is not None]

    async def _body(self, keeper: Keeper, number: PrNumber) -> bytes | None:
        return await self._yard.store.conversation(keeper.id, number)


def _read(body: bytes) -> Conversation:
    return msgspec.json.decode(body, type=Conversation)
