"""Tells each pull request's state at the forge: in one comment, edited in place, and as a status on its head."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import structlog

from mergeyard.domain.ids import PrNumber, QueueId
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL, CheckState
from mergeyard.domain.statuses import Status
from mergeyard.ports.forge import Forge
from mergeyard.ports.host import HostRefused
from mergeyard.ports.store import Store, StoredEntry
from mergeyard.service import recalling, shelving
from mergeyard.service.site import Sites
from mergeyard.service.talking import words
from mergeyard.service.talking.conversation import Conversation, Conversations
from mergeyard.service.talking.words import Told
from mergeyard.service.turn import Keeper
from mergeyard.service.views import PullView, view
from mergeyard.service.yard import Yard

log = structlog.get_logger()


class Commenting:
    name = "comments"

    def __init__(self, yard: Yard, sites: Sites, conversations: Conversations, public_url: str) -> None:
        self._yard = yard
        self._store: Store = yard.store
        self._sites = sites
        self._conversations = conversations
        self._public_url = public_url

    async def tell(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """Not what happened, but what is: of several changes only the last is worth a word."""
        keeper, forge = await self._yard.find(key), self._sites.host(key.repo.host).forge
        if keeper is None or keeper.id != queue or forge is None:
            return
        records = (shelving.decode_record(entry.body) for entry in entries)
        for number in dict.fromkeys(record.number for record in records if isinstance(record, PrChanged)):
            await self._tell_of(keeper, forge, number)

    async def _tell_of(self, keeper: Keeper, forge: Forge, number: PrNumber) -> None:
        stay = keeper.queue.submission_of(number) or await recalling.last_stay(self._store, keeper.id, number)
        if stay is None:
            return
        shown, config = view(keeper.queue, stay, self._yard.clock.now()), keeper.queue.config
        async with self._conversations.joined(keeper, number) as kept:
            conversation = kept.so_far
            if config.comments_enabled:
                with _as_far_as_allowed(keeper, number):
                    await self._comment(keeper, forge, shown, conversation)
            if config.status_check_enabled:
                with _as_far_as_allowed(keeper, number):
                    await self._show_status(keeper, forge, shown, conversation)
            if stay.state in TERMINAL and conversation.label:
                with _as_far_as_allowed(keeper, number):
                    await forge.unlabel(keeper.key.repo, number, conversation.label)

    async def _comment(self, keeper: Keeper, forge: Forge, shown: PullView, conversation: Conversation) -> None:
        run = await self._run(keeper, shown)
        told = Told(
            view=shown,
            batch=() if run is None else tuple(member.number for member in run.tested),
            failed=() if run is None else await self._failed(keeper, run),
            page=self._page(keeper, shown),
        )
        text = words.comment(told)
        if text != conversation.told:
            repo, number = keeper.key.repo, shown.stay.number
            conversation.comment = await forge.say(repo, number, text, conversation.comment)
            conversation.told = text

    async def _show_status(self, keeper: Keeper, forge: Forge, shown: PullView, conversation: Conversation) -> None:
        status, head = words.status(shown, self._page(keeper, shown)), shown.stay.pull.head
        said = f"{head} {status.state} {status.description}"
        if said != conversation.shown:
            await forge.show_status(keeper.key.repo, head, status)
            conversation.shown = said

    def _page(self, keeper: Keeper, shown: PullView) -> str:
        return f"{self._public_url}/pulls/{keeper.key.repo}/{shown.stay.number}" if self._public_url else ""

    async def _failed(self, keeper: Keeper, run: Run) -> tuple[Status, ...]:
        """Those required checks that are red."""
        if not run.chain:
            return ()
        statuses = await self._store.statuses(keeper.key.repo, run.tip)
        return tuple(
            status for status in statuses if status.check is CheckState.FAILED and status.context in run.required
        )

    async def _run(self, keeper: Keeper, shown: PullView) -> Run | None:
        if shown.run is None:
            return None
        return keeper.queue.runs.get(shown.run) or await recalling.run(self._store, keeper.id, shown.run)


@contextmanager
def _as_far_as_allowed(keeper: Keeper, number: PrNumber) -> Generator[None]:
    """Trouble that may pass is waited for; where something may not be said, all else goes on without it."""
    try:
        yield
    except HostRefused as refused:
        log.warning("a pull request was not told of", queue=str(keeper.key), number=number, words=str(refused))
