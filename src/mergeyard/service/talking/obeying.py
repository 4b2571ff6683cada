"""Does what somebody asks for in a comment, once, and says what came of it."""

from contextlib import suppress
from typing import assert_never

from msgspec import Struct

from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.priorities import URGENT
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Comment, Forge
from mergeyard.ports.host import HostRefused
from mergeyard.ports.store import Answered
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat, Repeating
from mergeyard.service.stays import Stays
from mergeyard.service.submissions import Errand, HeadNotConfirmed, Submissions, Wish
from mergeyard.service.talking import commands, words
from mergeyard.service.talking.commands import Command, Misunderstood, Verb
from mergeyard.service.turn import Keeper
from mergeyard.service.views import PullView

STRANGER_REMEMBERED_MS = 5 * MINUTE
MAX_STRANGERS_REMEMBERED = 1000


class Outcome(Struct, frozen=True):
    fine: bool
    words: str
    told_by_comment: bool = False
    """The comment that tells the state says it as well."""
    once: bool = False
    """The person gets this answer once on a pull request, and none afterwards."""


class Order(Struct, frozen=True, kw_only=True):
    """Which pull request somebody wants something of, who, and by which word of theirs."""

    keeper: Keeper
    pull: PullRequest
    person: str
    word: str

    @property
    def repeat(self) -> Repeat:
        """Under a key of its own, so that the same word is obeyed once. What tells it from others stands at the end."""
        return Repeat(token="forge", key=f"{self.keeper.key.repo}#{self.pull.number}:{self.word}"[-255:], digest=b"")

    def errand(self) -> Errand:
        actor = f"{self.person}@{self.keeper.key.repo.host}"
        return Errand(key=self.keeper.key, number=self.pull.number, actor=actor, present=_ticket, repeat=self.repeat)


class Obeying:
    def __init__(self, submissions: Submissions, stays: Stays, repeating: Repeating, clock: Clock) -> None:
        self._submissions = submissions
        self._stays = stays
        self._repeating = repeating
        self._clock = clock
        self._strangers: dict[tuple[QueueKey, str], Instant] = {}
        """People without write permission, and until when the forge is not asked about them again."""

    async def outcome(self, forge: Forge, order: Order, comment: Comment) -> Outcome | None:
        """None when nothing is asked of us."""
        asked = commands.read(comment.text)
        if asked is None:
            return None
        try:
            key = order.keeper.key
            if not await self._may_write(forge, key, comment.author):
                return Outcome(False, words.ONLY_WRITERS, once=True)
            by_maintainer = _needs_maintainer(asked, order.pull) and await forge.may_maintain(key.repo, comment.author)
            if _goes_around_the_rules(asked) and not by_maintainer:
                return Outcome(False, words.ONLY_MAINTAINERS)
        except HostRefused:
            return Outcome(False, words.MAY_NOT_SEE, once=True)
        if isinstance(asked, Misunderstood):
            return Outcome(False, words.misunderstood(asked.word))
        try:
            view = await self._carry_out(order, asked, by_maintainer=by_maintainer)
        except HeadNotConfirmed as refused:
            return Outcome(False, words.name_the_head(refused.head, pushed=refused.code is Code.SHA_MISMATCH))
        except Refused as refused:
            return Outcome(False, words.refused(refused.detail))
        return Outcome(True, words.submitted(view), told_by_comment=asked.verb is not Verb.STATUS)

    async def _may_write(self, forge: Forge, key: QueueKey, person: str) -> bool:
        """The lack of the permission is remembered, so that repeated commands of a stranger cost no calls."""
        now = self._clock.now()
        for stranger, until in list(self._strangers.items()):
            if until <= now:
                del self._strangers[stranger]
        if not person or (key, person) in self._strangers:
            return False
        if await forge.may_write(key.repo, person, key.branch):
            return True
        if len(self._strangers) < MAX_STRANGERS_REMEMBERED:
            self._strangers[key, person] = Instant(now + STRANGER_REMEMBERED_MS)
        return False

    async def _carry_out(self, order: Order, asked: Command, *, by_maintainer: bool) -> PullView:
        errand = order.errand()
        with suppress(Answered):  # it was carried out, and then a crash came before anybody knew
            match asked.verb:
                case Verb.SUBMIT:
                    wish = Wish(
                        head=asked.head,
                        priority=asked.priority,
                        no_batch=asked.no_batch,
                        forced=asked.forced,
                        by_maintainer=by_maintainer,
                    )
                    await self._submissions.submit(errand, wish)
                case Verb.CANCEL:
                    await self._submissions.cancel(errand)
                case Verb.RESTART:
                    await self._submissions.restart(errand)
                case Verb.STATUS:
                    pass
                case _:
                    assert_never(asked.verb)
        return await self._stays.show(errand.key, errand.number)

    async def submit(self, order: Order) -> Ticket | None:
        with suppress(Answered):
            return Ticket(int(await self._submissions.submit(order.errand(), Wish())))
        return await self.submitted(order)

    async def submitted(self, order: Order) -> Ticket | None:
        """What came of this word, if it was obeyed, also when the answer was lost."""
        answer = await self._repeating.answered(order.repeat)
        return None if answer is None else Ticket(int(answer))

    async def cancel(self, order: Order) -> None:
        await self._submissions.cancel(order.errand())


def _ticket(view: PullView) -> bytes:
    return str(view.stay.ticket).encode()


def _needs_maintainer(asked: Command | Misunderstood, pull: PullRequest) -> bool:
    """Whether it makes a difference that a maintainer asks. A fork may change guarded paths only then."""
    return _goes_around_the_rules(asked) or (isinstance(asked, Command) and asked.verb is Verb.SUBMIT and pull.fork)


def _goes_around_the_rules(asked: Command | Misunderstood) -> bool:
    return isinstance(asked, Command) and (bool(asked.forced) or asked.priority == URGENT)
