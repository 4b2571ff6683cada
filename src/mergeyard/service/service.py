"""The whole service, put together from its parts and started or stopped as one."""

from collections.abc import Mapping

from mergeyard.domain.instants import HOUR
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import Git
from mergeyard.ports.host import Host
from mergeyard.ports.runner import Runner
from mergeyard.ports.store import Store
from mergeyard.service import sweeping, watch
from mergeyard.service.background import Background
from mergeyard.service.checking import Checking
from mergeyard.service.errors import Code, Refused
from mergeyard.service.figures import Counting
from mergeyard.service.listing import Listing
from mergeyard.service.queues import Queues
from mergeyard.service.repeating import Repeating
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
        look_every: int = watch.INTERVAL,
    ) -> None:
        self.store = store
        self.clock = clock
        self.git = git
        self.runner = runner
        self.background = Background(clock)
        self.yard = Yard(store, clock)
        self.sites = Sites(hosts, git)
        sight = Sight()
        self.tokens = Tokens(store, clock)
        self.repeating = Repeating(store, clock)
        self.submissions = Submissions(self.yard, self.sites, sight)
        self.listing = Listing(self.yard, self.submissions)
        self.queues = Queues(self.yard, self.sites)
        self.runs = Runs(self.yard, self.sites)
        self.counting = Counting(self.yard)
        self.statuses = Statuses(store, clock, self.background)
        self.checking = Checking(runner, self.sites, self.statuses, clock, self.background, public_url)
        self.worker = Worker(self.sites, sight, store, clock, self.background)
        self.watch = Watch(self.yard, self.sites, sight, self.background)
        self._look_every = look_every
        self.sweeper = Sweeper(self.yard, self.sites)

    async def start(self) -> None:
        await self.git.check()
        await self.store.open()
        await self.yard.open()
        self.yard.listeners += (self.statuses.follow, self.checking.follow, self.worker.follow, self.sweeper.follow)
        for keeper in self.yard:
            await keeper.wake()
        self.background.go_on("watch", self.watch.look_around, self._look_every)
        self.background.go_on("sweeping", self.sweeper.sweep_all, sweeping.INTERVAL)
        self.background.go_on("checking", self.checking.pass_a_result_on, 0)
        self.background.go_on("forgetting", self.repeating.forget_old_answers, HOUR)

    async def ready(self) -> None:
        """Raises what is in the way of working."""
        await self.store.check()
        stopped = self.background.stopped()
        if stopped:
            raise Refused(Code.INTERNAL_ERROR, f"{', '.join(stopped)} has stopped: restart the server.")

    async def stop(self) -> None:
        """What is under way is dropped where it stands: the facts say what is left to do."""
        await self.background.close()
        await self.yard.close()
        await self.runner.close()
        for host in self.sites.hosts.values():
            await host.close()
        await self.store.close()
