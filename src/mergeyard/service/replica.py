"""One of several replicas: takes its share of the repositories, keeps up with what others save, and hands over."""

import asyncio
from collections.abc import Collection
from functools import partial
from math import ceil
from socket import gethostname
from uuid import uuid4

import structlog

from mergeyard.domain.instants import later
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import Git
from mergeyard.ports.sharing import Duty, Roster, SharedStore
from mergeyard.ports.store import Relieved, StoredQueue, StoreTrouble
from mergeyard.service.background import Background, insist
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Code, Refused
from mergeyard.service.others import DutiesFree, Others, written
from mergeyard.service.yard import Yard

log = structlog.get_logger()

LASTING = 10_000
"""For so long a replica that reported may be silent before others take over. With the time that it takes somebody
else to notice, a death is over within fifteen seconds."""
REPORT_EVERY = 2000
HEAD_START = 500
"""For whoever has a mirror of the repository."""


class Replica:
    def __init__(
        self,
        shared: SharedStore,
        yard: Yard,
        duties: Duties,
        others: Others,
        git: Git,
        clock: Clock,
        background: Background,
    ) -> None:
        self._shared = shared
        self._yard = yard
        self._duties = duties
        self._others = others
        self._git = git
        self._clock = clock
        self._background = background
        self._name: str | None = None
        self._reporting = asyncio.Lock()

    async def report(self) -> None:
        """Says that it is still there, and takes or hands over as many repositories as make its share."""
        async with self._reporting:
            try:
                roster = await self._present_itself()
            except Relieved:
                log.warning("this replica was silent for too long and begins anew", replica=self._name)
                self._name = None
                await self._hold(())
                roster = await self._present_itself()
            await self._hold(await self._share(roster))

    async def hurry(self) -> None:
        """Work was handed back: whoever has it at hand takes it now, and whoever has not a moment later."""
        await self.report()
        await self._clock.sleep(HEAD_START)
        await self.report()

    def ready(self) -> None:
        if self._name is None or not self._duties.valid:
            words = "This replica could not report for work lately: see its log for what the database says."
            raise Refused(Code.STORAGE_UNAVAILABLE, words)

    async def resign(self) -> None:
        """Others take over at once."""
        name, self._name = self._name, None
        if name is None:
            return
        try:
            await self._shared.resign(name)
            await self._shared.call_out(written(DutiesFree()))
        except StoreTrouble as trouble:
            log.warning("others take over only when this replica was silent for a while", words=str(trouble))

    async def _present_itself(self) -> Roster:
        begun = self._clock.now()
        if self._name is None:
            name = f"{gethostname()}-{uuid4()}"
            await self._shared.enlist(name, LASTING)
            self._name = name
            self._duties.share(name)
        roster = await self._shared.report(self._name, LASTING)
        if self._duties.lapsed:
            self._duties.set((), self._yard.of_repo)
        self._duties.last_until(later(begun, LASTING))
        return roster

    async def _share(self, roster: Roster) -> Collection[Duty]:
        assert self._name is not None
        share = ceil(roster.repositories / roster.workers)
        if len(roster.duties) == share:
            return roster.duties
        if len(roster.duties) < share:
            names = await asyncio.to_thread(self._git.at_hand)
            at_hand = [repo for repo in map(Repo.parse, names) if repo is not None]
            claimed = await self._shared.claim(self._name, share - len(roster.duties), at_hand, HEAD_START)
            return (*roster.duties, *claimed)
        idle_last = sorted(roster.duties, key=lambda duty: self._is_idle(duty.repo))
        kept, surplus = idle_last[:share], idle_last[share:]
        await self._hold(kept)
        await self._shared.let_go(self._name, [duty.repo for duty in surplus])
        self._others.tell(DutiesFree())
        return kept

    def _is_idle(self, repo: Repo) -> bool:
        return not any(len(keeper.queue.submissions) for keeper in self._yard.of_repo(repo))

    async def _hold(self, duties: Collection[Duty]) -> None:
        """If its queues cannot be read, it holds nothing new yet, and tries again with the next report."""
        new = set(self._duties.missing(duties))
        queues = await self._shared.on_duty(self._duties.replica) if new else ()
        self._duties.set(duties, self._yard.of_repo)
        if new:
            log.info("works for repositories", repos=sorted(map(str, new)))
        for queue in queues:
            if queue.key.repo in new:
                self._background.start(insist(self._clock, partial(self._begin, queue)))

    async def _begin(self, queue: StoredQueue) -> None:
        """As after a restart."""
        keeper = await self._yard.bring(queue)
        await keeper.wake()
