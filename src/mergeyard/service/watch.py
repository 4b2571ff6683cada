"""Watches repositories: whatever differs from the last reading is news, and news is only a reason to look."""

import asyncio
from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakSet

import structlog

from mergeyard.domain.events import Event, HostFound, HostLost, PullTouched, TargetTouched
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability, PrState
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import Host, HostTrouble
from mergeyard.ports.store import Relieved, StoreTrouble
from mergeyard.service import readings
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.naming_branches import branch_ref
from mergeyard.service.readings import Reading, Refs
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.talking.desk import Desk
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

log = structlog.get_logger()

INTERVAL = 1000
RESTLESS = 2000
"""Milliseconds, while a host is still finding out whether something can be merged."""
LAPS_OF_DOUBT = 3
"""So seldom a host is asked again of whom it denied: most that changes its mind is news."""
IDLE = 3
"""Where nobody waits, a host is asked so many times less often."""
MOST_VISITS = 8
"""At once: with many repositories a lap takes longer, and nothing else waits for it."""


class Watch:
    def __init__(
        self, yard: Yard, sites: Sites, sight: Sight, desk: Desk, background: Background, duties: Duties
    ) -> None:
        self._yard = yard
        self._sites = sites
        self._sight = sight
        self._desk = desk
        self._background = background
        self._duties = duties
        self._seen: dict[Repo, Reading] = {}
        self._due: dict[Repo, int] = {}
        """When each is to be looked at again, at the earliest."""
        self._failures: dict[Repo, int] = {}
        """How often in a row that did not work."""
        self._places = asyncio.Semaphore(MOST_VISITS)
        self._visited = set[Repo]()
        """Those where somebody still is: a slow host keeps nobody from the others."""
        self._anew = WeakSet[Keeper]()
        """Of these everything is to be looked at."""
        self._tips = WeakKeyDictionary[Keeper, Sha | None]()
        """Upon which tip each queue's pull requests were last looked at."""
        self._laps = WeakKeyDictionary[Keeper, int]()
        self._rules_due = WeakKeyDictionary[Keeper, int]()

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        """Of a queue that is new here anything may have changed since somebody last looked."""
        if before is None:
            self._anew.add(keeper)

    def leave(self, keeper: Keeper) -> None:
        self._anew.discard(keeper)
        self._tips.pop(keeper, None)

    async def look_around(self) -> None:
        repos = {keeper.key.repo for keeper in self._yard if self._duties.covers(keeper.key.repo)}
        for memory in (self._seen, self._due, self._failures):
            for forgotten in memory.keys() - repos:
                del memory[forgotten]
        now = self._yard.clock.now()
        for repo in repos - self._visited:
            if self._due.get(repo, now) <= now:
                self._visited.add(repo)
                self._background.start(self._visit(repo))

    async def _visit(self, repo: Repo) -> None:
        keepers = self._yard.of_repo(repo)
        try:
            async with self._places:
                await self._look_at(repo, keepers)
            self._failures.pop(repo, None)
        except (HostTrouble, GitTrouble) as trouble:
            log.warning("the host is in trouble", repo=str(repo), words=str(trouble))
            self._failures[repo] = self._failures.get(repo, 0) + 1
            await _tell_all(keepers, HostLost())
        except (Refused, Relieved, StoreTrouble) as trouble:
            log.warning("a repository cannot be watched", repo=str(repo), words=str(trouble))
        finally:
            self._visited.discard(repo)
            self._due[repo] = self._yard.clock.now() + self._pause(repo, keepers)

    def _pause(self, repo: Repo, keepers: tuple[Keeper, ...]) -> int:
        host = self._sites.hosts.get(repo.host)
        usual = 0 if host is None else host.look_every
        if not usual:
            return 0
        if repo in self._failures:
            return min(usual * 2 ** min(self._failures[repo], 10), max(usual, MINUTE))
        stays = [stay for keeper in keepers for stay in keeper.queue.submissions.values()]
        if any(stay.state is PrState.NOT_READY and stay.pull.mergeability is Mergeability.CHECKING for stay in stays):
            return min(usual, RESTLESS)
        return usual if stays else min(IDLE * usual, max(usual, MINUTE))

    async def _look_at(self, repo: Repo, keepers: tuple[Keeper, ...]) -> None:
        """It counts as seen when everybody was told of it."""
        host = self._sites.host(repo.host)
        refs = await host.refs(repo, {keeper.key.branch for keeper in keepers})
        before = self._seen.get(repo)
        changed = None if before is None else readings.differing(refs, before.refs)
        for keeper in keepers:
            await self._tell_news(keeper, host, refs, changed)
        seen = Reading(refs, readings.heads(host, refs, changed, {} if before is None else before.heads))
        if changed is None or any(readings.moves_a_commit(host, ref) for ref in changed):
            await self._survey(keepers, seen)
        if host.forge is not None:
            for number, trace in readings.traces(host, refs, changed).items():
                self._desk.attend(repo, number, trace)
        self._seen[repo] = seen

    async def _tell_news(self, keeper: Keeper, host: Host, refs: Refs, changed: set[str] | None) -> None:
        tip, everything = keeper.queue.target.tip, keeper in self._anew or keeper not in self._tips
        self._anew.discard(keeper)
        try:
            news = readings.news(keeper, host, refs, None if everything else changed)
            await _tell(keeper, (*news, *self._second_chances(keeper, host), *self._other_rules(keeper, host)))
        except BaseException:
            self._tips.pop(keeper, None)
            raise
        self._tips[keeper] = tip

    def _second_chances(self, keeper: Keeper, host: Host) -> Iterator[Event]:
        """When another tip is recorded: who could not be merged may be mergeable now, or be part of the target, and the
        target may guard other paths from forks.
        A host with an opinion of its own may change it at any time, and tells nobody."""
        tip = keeper.queue.target.tip
        if tip is None or (self._tips.get(keeper) == tip and not host.judges_mergeability):
            return
        moved = self._tips.get(keeper) != tip
        self._laps[keeper] = self._laps.get(keeper, 0) + 1
        seldom = self._laps[keeper] % LAPS_OF_DOUBT == 0
        for stay in keeper.queue.submissions.values():
            doubtful = stay.state is PrState.NOT_READY and stay.pull.mergeability is not Mergeability.MERGEABLE
            if host.judges_mergeability and stay.pull.mergeability is Mergeability.NOT_MERGEABLE:
                doubtful = doubtful and seldom
            # Another tip can guard other paths.
            guards_differ = moved and stay.pull.fork and not stay.by_maintainer
            if doubtful or guards_differ or self._sight.knows_contained(keeper, stay.number, stay.pull.head):
                yield PullTouched(number=stay.number)

    def _other_rules(self, keeper: Keeper, host: Host) -> Iterator[Event]:
        """Nobody tells when other statuses become required at a forge, so it is asked; but not while something lands,
        which waits for every look at the target."""
        now = self._yard.clock.now()
        if host.forge is None or keeper.queue.landing is not None or now < self._rules_due.get(keeper, 0):
            return
        self._rules_due[keeper] = now + MINUTE
        yield TargetTouched()

    async def _survey(self, keepers: tuple[Keeper, ...], seen: Reading) -> None:
        targets = {branch_ref(keeper.key.branch) for keeper in keepers} & seen.refs.keys()
        if targets:
            await self._sight.survey(await self._sites.of(keepers[0]), targets, seen.heads)


async def _tell_all(keepers: tuple[Keeper, ...], event: Event) -> None:
    for keeper in keepers:
        try:
            await keeper.tell(event)
        except (Refused, StoreTrouble) as trouble:
            log.warning("a queue cannot be told", queue=str(keeper.key), words=str(trouble))


async def _tell(keeper: Keeper, news: tuple[Event, ...]) -> None:
    found = (HostFound(),) if keeper.queue.host_lost_at is not None else ()
    if not keeper.closed and (found or news):
        await keeper.tell(*found, *news)
