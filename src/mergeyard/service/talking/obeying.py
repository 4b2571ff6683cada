"""Does what somebody asks for in a comment, once, and says what came of it."""

from contextlib import suppress
from typing import assert_never

from msgspec import Struct

from mergeyard.domain.ids import Ticket
from mergeyard.domain.pulls import PullRequest
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


class Outcome(Struct, frozen=True):
    fine: bool
    words: str
    told_by_comment: bool = False
    """The comment that tells the state says it as well."""


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
    def __init__(self, submissions: Submissions, stays: Stays, repeating: Repeating) -> None:
        self._submissions = submissions
        self._stays = stays
        self._repeating = repeating

    async def outcome(self, forge: Forge, order: Order, comment: Comment) -> Outcome | None:
        """None when nothing is asked of us."""
        asked = commands.read(comment.text)
        if asked is None:
            return None
        try:
            key = order.keeper.key
            if not comment.author or not await forge.may_write(key.repo, comment.author, key.branch):
                return Outcome(False, words.ONLY_WRITERS)
            if _goes_around_the_rules(asked) and not await forge.may_maintain(order.keeper.key.repo, comment.author):
                return Outcome(False, words.ONLY_MAINTAINERS)
        except HostRefused:
            return Outcome(False, words.MAY_NOT_SEE)
        if isinstance(asked, Misunderstood):
            return Outcome(False, words.misunderstood(asked.word))
        try:
            view = await self._carry_out(order, asked)
        except HeadNotConfirmed as refused:
            return Outcome(False, words.name_the_head(refused.head, pushed=refused.code is Code.SHA_MISMATCH))
        except Refused as refused:
            return Outcome(False, words.refused(refused.detail))
        return Outcome(True, words.submitted(view), told_by_comment=asked.verb is not Verb.STATUS)

    async def _carry_out(self, order: Order, asked: Command) -> PullView:
        errand = order.errand()
        with suppress(Answered):  # it was carried out, and then a crash came before anybody knew
            match asked.verb:
                case Verb.SUBMIT:
                    wish = Wish(head=asked.head, priority=asked.priority, no_batch=asked.no_batch, forced=asked.forced)
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


def _goes_around_the_rules(asked: Command | Misunderstood) -> bool:
    return isinstance(asked, Command) and bool(asked.forced)
