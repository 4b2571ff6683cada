"""The whole service, put together from its parts and started or stopped as one."""

from collections.abc import Mapping

from mergeyard.domain.instants import HOUR
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import Git
from mergeyard.ports.host import Host
from mergeyard.ports.runner import Runner
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Store
from mergeyard.service import replica, sweeping, watch
from mergeyard.service.alarm import Alarms
from mergeyard.service.background import Background
from mergeyard.service.checking import Checking
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Code, Refused
from mergeyard.service.figures import Counting
from mergeyard.service.hearing import Hearing
from mergeyard.service.listing import Listing
from mergeyard.service.others import Others
from mergeyard.service.queues import Queues
from mergeyard.service.repeating import Repeating
from mergeyard.service.replica import Replica
from mergeyard.service.runs import Runs
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.statuses import Statuses
from mergeyard.service.submissions import Submissions
from mergeyard.service.sweeping import Sweeper
from mergeyard.service.tokens import Tokens
from mergeyard.service.watch import Watch
from mergeyard.service.worker import Worker
from mergeyard.service.yard import Yard


class Service:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        git: Git,
        hosts: Mapping[str, Host],
        runner: Runner,
        public_url: str,
        shared: SharedStore | None = None,
        works: bool = True,
        look_every: int = watch.INTERVAL,
    ) -> None:
        """`shared` is the store, where others write to it as well; one that does not work only answers."""
        self.store = store
        self.clock = clock
        self.git = git
        self.runner = runner
        self.background = Background(clock)
        self.yard = Yard(store, clock, shared)
        self.sites = Sites(hosts, git)
        self.duties = Duties(clock)
        self.others = Others(shared, self.background)
        sight = Sight()
        self.tokens = Tokens(store, clock)
        self.repeating = Repeating(store, clock)
        self.submissions = Submissions(self.yard, self.sites, sight)
        self.listing = Listing(self.yard, self.submissions)
        self.queues = Queues(self.yard, self.sites, self.others)
        self.runs = Runs(self.yard, self.sites)
        self.counting = Counting(self.yard)
        self.statuses = Statuses(store, clock, self.background, self.duties, self.others)
        self.checking = Checking(runner, self.sites, self.statuses, clock, self.background, public_url)
        self.worker = Worker(self.sites, sight, store, clock, self.background, self.duties)
        self.watch = Watch(self.yard, self.sites, sight, self.background, self.duties)
        self.sweeper = Sweeper(self.yard, self.sites, self.duties)
        self._alarms = Alarms(clock)
        self._shared = shared
        self._works = works
        self._look_every = look_every
        self._replica = (
            None
            if shared is None or not works
            else Replica(shared, self.yard, self.duties, self.others, git, clock, self.background)
        )

    async def start(self) -> None:
        await self.git.check()
        await self.store.open()
        self.duties.followers += (
            self._alarms,
            self.statuses,
            self.checking,
            self.worker,
            self.watch,
            self.sweeper,
        )
        self.yard.listeners += (self.others.follow, self.duties.follow)
        self.yard.farewells.append(self.duties.leave)
        if self._shared is None:
            await self._take_up_everything()
        else:
            await self._join(self._shared)
        if self._works:
            self.background.go_on("watch", self.watch.look_around, self._look_every)
            self.background.go_on("sweeping", self.sweeper.sweep_all, sweeping.INTERVAL)
            self.background.go_on("checking", self.checking.pass_a_result_on, 0)
            self.background.go_on("forgetting", self.repeating.forget_old_answers, HOUR)

    async def ready(self) -> None:
        """Raises what is in the way of working."""
        await self.store.check()
        if self._replica is not None:
            self._replica.ready()
        stopped = self.background.stopped()
        if stopped:
            raise Refused(Code.INTERNAL_ERROR, f"{', '.join(stopped)} has stopped: restart the server.")

    async def stop(self) -> None:
        """What is under way is dropped where it stands: the facts say what is left to do."""
        await self.background.close()
        self._alarms.stop()
        await self.yard.close()
        if self._replica is not None:
            await self._replica.resign()
        await self.runner.close()
        for host in self.sites.hosts.values():
            await host.close()
        await self.store.close()

    async def _take_up_everything(self) -> None:
        await self.yard.open()
        for keeper in self.yard:
            await keeper.wake()

    async def _join(self, shared: SharedStore) -> None:
        """One that only answers is given no duties, and so works for nobody."""
        hearing = Hearing(shared, self.yard, self.duties, self.others, self.statuses, self.background)
        if self._replica is None:
            self.duties.share("")
            await hearing.start(None)
        else:
            await self._replica.report()
            await hearing.start(self._replica.hurry)
            self.background.go_on("reporting", self._replica.report, replica.REPORT_EVERY)
