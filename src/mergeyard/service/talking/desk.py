"""Listens on pull requests: what people say there, and how they label them, from the day the queue was made."""

import asyncio

import structlog

from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import MINUTE, SECOND, Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.forge import Comment, Forge
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import Relieved, StoreTrouble
from mergeyard.service import shelving
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.others import Others, PullHeard
from mergeyard.service.repeating import Repeating
from mergeyard.service.site import Sites
from mergeyard.service.stays import Stays
from mergeyard.service.submissions import Submissions
from mergeyard.service.talking import words
from mergeyard.service.talking.conversation import Conversations, Kept
from mergeyard.service.talking.labelling import Labelling
from mergeyard.service.talking.obeying import Obeying, Order, Outcome
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

log = structlog.get_logger()

ATTEMPTS = 1500
"""With the pauses between them about a day."""
FIRST_PAUSE = 2 * SECOND
AT_ONCE = 4

Place = tuple[Repo, PrNumber]


class Desk:
    def __init__(
        self,
        yard: Yard,
        sites: Sites,
        submissions: Submissions,
        stays: Stays,
        repeating: Repeating,
        conversations: Conversations,
        duties: Duties,
        others: Others,
        background: Background,
    ) -> None:
        self._yard = yard
        self._sites = sites
        self._conversations = conversations
        self._obeying = Obeying(submissions, stays, repeating, yard.clock)
        self._labelling = Labelling(self._obeying)
        self._duties = duties
        self._others = others
        self._background = background
        self._places = asyncio.Semaphore(AT_ONCE)
        self._waiting: dict[Place, str] = {}
        """With how the host shows it, where that is known."""
        self._attended = set[Place]()

    def attend(self, repo: Repo, number: PrNumber, trace: str = "") -> None:
        """Soon, and by the one whose duty it is."""
        place = (repo, number)
        if not self._duties.covers(repo):
            self._others.tell(PullHeard(repo, number))
            return
        self._waiting[place] = trace
        if place not in self._attended:
            self._attended.add(place)
            self._background.start(self._see_through(place))

    async def _see_through(self, place: Place) -> None:
        try:
            while place in self._waiting:
                await self._insist(place, self._waiting.pop(place))
        finally:
            self._attended.discard(place)

    async def _insist(self, place: Place, trace: str) -> None:
        """News may come only once: passing trouble is waited for."""
        pause = FIRST_PAUSE
        for _ in range(ATTEMPTS):
            try:
                async with self._places:
                    return await self._listen(*place, trace)
            except Relieved:
                return None
            except (HostTrouble, GitTrouble, StoreTrouble, Refused) as trouble:
                log.warning("a pull request cannot be listened to", repo=str(place[0]), words=str(trouble))
            await self._yard.clock.sleep(pause)
            pause = min(2 * pause, MINUTE)
        return None

    async def _listen(self, repo: Repo, number: PrNumber, trace: str) -> None:
        if trace and await self._conversations.know(repo, number, trace):
            return
        host = self._sites.host(repo.host)
        pull = None if host.forge is None else await host.pull(repo, number)
        if host.forge is None or pull is None or pull.branch.startswith(ours.BRANCHES):
            return
        keeper = await self._yard.find(QueueKey(repo, pull.base))
        if keeper is None:
            return
        async with self._conversations.joined(keeper, number) as kept:
            if not trace or kept.so_far.trace != trace:
                await self._catch_up(keeper, host.forge, pull, kept)
                kept.so_far.trace = trace

    async def _catch_up(self, keeper: Keeper, forge: Forge, pull: PullRequest, kept: Kept) -> None:
        conversation = kept.so_far
        conversation.heard = conversation.heard or await self._beginning(keeper)
        thread = await forge.thread(keeper.key.repo, pull.number, conversation.heard)
        for comment in conversation.unheard(thread.comments):
            await self._hear(keeper, forge, pull, comment, kept)
        if keeper.queue.config.label_commands_enabled:
            await self._labelling.mind(keeper, forge, pull, thread, kept)

    async def _hear(self, keeper: Keeper, forge: Forge, pull: PullRequest, comment: Comment, kept: Kept) -> None:
        """What was obeyed is known before it is answered: an answer that nobody takes must not have it obeyed again."""
        outcome = None
        if keeper.queue.config.commands_enabled and not comment.text.startswith(words.OURS):
            order = Order(keeper=keeper, pull=pull, person=comment.author, word=comment.id)
            outcome = await self._obeying.outcome(forge, order, comment)
        kept.so_far.hear(comment)
        if outcome is not None and (not outcome.once or kept.so_far.answer_once(comment.author)):
            await kept.keep()
            await self._answer(keeper, forge, pull, comment, outcome)

    async def _answer(
        self, keeper: Keeper, forge: Forge, pull: PullRequest, comment: Comment, outcome: Outcome
    ) -> None:
        repo, number = keeper.key.repo, pull.number
        try:
            await forge.react(repo, number, comment.id, fine=outcome.fine)
            if not (outcome.told_by_comment and keeper.queue.config.comments_enabled):
                await forge.say(repo, number, words.answer(comment.id, comment.author, outcome.words), None)
        except HostTrouble as trouble:
            log.warning("a command was not answered", repo=str(repo), number=number, words=str(trouble))

    async def _beginning(self, keeper: Keeper) -> Instant:
        """What was said before there was a queue was not said to us."""
        (first, *_) = await self._yard.store.entries(keeper.id, 0, 1)
        return shelving.decode_record(first.body).at
