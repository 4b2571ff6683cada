"""Reads the checks of runs from the forges that know them: when a forge has news, and from time to time."""

import asyncio
from collections.abc import Iterable

import structlog
from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Forge
from mergeyard.ports.host import ChecksFrom, HostTrouble
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.others import CommitHeard, Others
from mergeyard.service.site import Sites
from mergeyard.service.statuses import Statuses
from mergeyard.service.turn import Keeper

log = structlog.get_logger()

INTERVAL = 1000
AT_ONCE = 8

Place = tuple[Repo, Sha]


class Reading(Struct, eq=False):
    """One commit whose checks are read."""

    keeper: Keeper
    due: Instant
    busy: bool = False
    known: tuple[Status, ...] = ()


class ForgeChecks:
    def __init__(
        self, sites: Sites, statuses: Statuses, duties: Duties, others: Others, clock: Clock, background: Background
    ) -> None:
        self._sites = sites
        self._statuses = statuses
        self._duties = duties
        self._others = others
        self._clock = clock
        self._background = background
        self._readings: dict[Place, Reading] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        if not keeper.has_other_runs_than(before):
            return
        if self._asked_for(keeper.key.repo) is None:
            return
        under_test = [(keeper.key.repo, run.tip) for run in keeper.queue.runs_in_progress]
        self._drop(keeper, except_for=under_test)
        for place in under_test:
            self._readings.setdefault(place, Reading(keeper, self._clock.now()))

    def leave(self, keeper: Keeper) -> None:
        self._drop(keeper, except_for=())

    async def look_around(self) -> None:
        now = self._clock.now()
        for place, reading in self._readings.items():
            if reading.due <= now and not reading.busy:
                reading.busy, reading.due = True, self._next(place[0], now)
                self._background.start(self._read_in_turn(place, reading))

    def hear(self, repo: Repo, sha: Sha) -> None:
        """Somebody has news of this commit; if it is not read here, perhaps by another replica."""
        if not self.look_soon(repo, sha) and not self._duties.covers(repo):
            self._others.tell(CommitHeard(repo, sha))

    def look_soon(self, repo: Repo, sha: Sha) -> bool:
        reading = self._readings.get((repo, sha))
        if reading is None:
            return False
        reading.due = self._clock.now()
        self._background.start(self.look_around())
        return True

    async def read(self, key: QueueKey, sha: Sha) -> None:
        """Now: somebody is about to decide upon it."""
        forge = self._asked_for(key.repo)
        if forge is not None:
            await self._statuses.report_on_duty(key.repo, sha, *await forge.statuses(key.repo, sha, key.branch))

    def _next(self, repo: Repo, now: Instant) -> Instant:
        return Instant(now + self._sites.host(repo.host).look_every)

    async def _read_in_turn(self, place: Place, reading: Reading) -> None:
        repo, sha = place
        try:
            async with self._places:
                await self._read_what_is_new(reading, repo, sha)
        except (HostTrouble, StoreTrouble, Refused) as trouble:
            log.warning("checks cannot be read", repo=str(repo), sha=sha, words=str(trouble))
        finally:
            reading.busy = False

    async def _read_what_is_new(self, reading: Reading, repo: Repo, sha: Sha) -> None:
        forge = self._asked_for(repo)
        if forge is None or self._readings.get((repo, sha)) is not reading:
            return
        statuses = tuple(await forge.statuses(repo, sha, reading.keeper.key.branch))
        news = [status for status in statuses if status not in reading.known]
        if news:
            await self._statuses.report_on_duty(repo, sha, *news)
            reading.known = statuses

    def _asked_for(self, repo: Repo) -> Forge | None:
        host = self._sites.hosts.get(repo.host)
        return host.forge if host is not None and host.checks_from is ChecksFrom.HOST else None

    def _drop(self, keeper: Keeper, except_for: Iterable[Place]) -> None:
        gone = {place for place, reading in self._readings.items() if reading.keeper is keeper}
        for place in gone.difference(except_for):
            del self._readings[place]
