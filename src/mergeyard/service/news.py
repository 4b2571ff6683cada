"""Takes in what forges send: checked, and then only a reason to look. Nothing of it is believed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

import structlog

from mergeyard.domain.events import Event, PullTouched, TargetTouched
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, Refused
from mergeyard.service.forge_checks import ForgeChecks
from mergeyard.service.site import Sites
from mergeyard.service.talking.desk import Desk
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

log = structlog.get_logger()

UNVERIFIED = (
    "The signature of this webhook is missing or wrong, or no such host is configured: compare the webhook's address "
    "and secret with the settings. The server's log has the cause."
)
"""The same answer for all causes, so that a client without the secret cannot find out which hosts are configured."""


class NewsRoom:
    def __init__(self, yard: Yard, sites: Sites, desk: Desk, checks: ForgeChecks, background: Background) -> None:
        self._yard = yard
        self._sites = sites
        self._desk = desk
        self._checks = checks
        self._background = background

    def listener(self, provider: str, name: str) -> Callable[[Mapping[str, str], bytes], Sequence[News]]:
        """Reads what this host sends, from the headers and the raw body; in any thread."""
        host = self._sites.hosts.get(name)
        forge = None if host is None or host.provider != provider else host.forge

        def listen(headers: Mapping[str, str], body: bytes) -> Sequence[News]:
            try:
                if forge is None:
                    raise Forged("no such host is configured")
                return forge.heard(headers, body)
            except Forged as forged:
                raise Refused(Code.INVALID_TOKEN, UNVERIFIED) from forged

        return listen

    def look_into(self, news: Sequence[News]) -> None:
        """Whoever sent it need not wait until somebody has looked."""
        for each in news:
            self._background.start(self._look_into(each))

    async def _look_into(self, news: News) -> None:
        try:
            match news:
                case PullNews():
                    await self._touch_pull(news.repo, news.number)
                case BranchNews():
                    await self._touch_branch(news.repo, news.branch)
                case CommitNews():
                    self._checks.hear(news.repo, news.sha)
                    await self._touch_head(news.repo, news.sha)
                case _:
                    assert_never(news)
        except StoreTrouble as trouble:
            log.warning("news were lost", repo=str(news.repo), words=str(trouble))

    async def _touch_pull(self, repo: Repo, number: PrNumber) -> None:
        keepers = await self._yard.of_repo_now(repo)
        for keeper in keepers:
            if keeper.is_concerned(number):
                await _tell(keeper, PullTouched(number=number))
        if keepers:
            self._desk.attend(repo, number)

    async def _touch_branch(self, repo: Repo, branch: str) -> None:
        for keeper in await self._yard.of_repo_now(repo):
            if keeper.key.branch == branch:
                await _tell(keeper, TargetTouched())

    async def _touch_head(self, repo: Repo, sha: Sha) -> None:
        """Not in the queues of other replicas: whoever works for those hears of it as well."""
        for keeper in self._yard.of_repo(repo):
            for number in _held_back(keeper.queue, sha):
                await _tell(keeper, PullTouched(number=number))


def _held_back(queue: Queue, head: Sha) -> Iterator[PrNumber]:
    """Those with this head that could not be merged so far, for which a check of it may have been all they lacked."""
    for _, ticket in queue.not_ready:
        pull = queue.submissions[ticket].pull
        if pull.head == head and pull.mergeability is not Mergeability.MERGEABLE:
            yield pull.number


async def _tell(keeper: Keeper, event: Event) -> None:
    if not keeper.closed:
        await keeper.tell(event)
