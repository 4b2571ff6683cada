"""The whole service, put together from its parts and started or stopped as one."""

from collections.abc import Mapping

from mergeyard.domain.instants import HOUR, MINUTE
from mergeyard.domain.sessions import NOTHING_GRANTED, Grants
from mergeyard.ports.clock import Clock
from mergeyard.ports.foretelling import Foreteller
from mergeyard.ports.git import Git
from mergeyard.ports.host import Host
from mergeyard.ports.runner import Runner
from mergeyard.ports.scribe import Scribe
from mergeyard.ports.sealing import Seals
from mergeyard.ports.sending import Sender
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Store
from mergeyard.service import forge_checks, replica, sweeping, watch
from mergeyard.service.alarm import Alarms
from mergeyard.service.background import Background
from mergeyard.service.checking import Checking
from mergeyard.service.dossiers import Dossiers
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Code, Refused
from mergeyard.service.examining import BranchWarnings
from mergeyard.service.figures import Counting
from mergeyard.service.foretelling import foretelling
from mergeyard.service.foretelling.calibration import Calibration
from mergeyard.service.foretelling.foretelling import Foretelling
from mergeyard.service.forge_checks import ForgeChecks
from mergeyard.service.hearing import Hearing
from mergeyard.service.listing import Listing
from mergeyard.service.live import Live
from mergeyard.service.news import NewsRoom
from mergeyard.service.others import Others
from mergeyard.service.queues import Queues
from mergeyard.service.refusal_log import RefusalLog
from mergeyard.service.repeating import Repeating
from mergeyard.service.replaying.replays import Replays
from mergeyard.service.replica import Replica
from mergeyard.service.retention import DELETE_EVERY, KEEP_FOREVER, Retention, RetentionJob
from mergeyard.service.runs import Runs
from mergeyard.service.sessions import FORGET_EVERY, Sessions
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.statuses import Statuses
from mergeyard.service.stays import Stays
from mergeyard.service.submissions import Submissions
from mergeyard.service.sweeping import Sweeper
from mergeyard.service.talking.commenting import Commenting
from mergeyard.service.talking.conversation import Conversations
from mergeyard.service.talking.desk import Desk
from mergeyard.service.telling import marking, tellers
from mergeyard.service.telling.marking import Marking
from mergeyard.service.telling.office import Office
from mergeyard.service.telling.retelling import Retelling
from mergeyard.service.telling.subscribing import Subscriptions
from mergeyard.service.telling.tellers import Tellers
from mergeyard.service.tokens import Tokens, TokenUses
from mergeyard.service.uploads import DEFAULT_QUOTA_BYTES, Uploads
from mergeyard.service.verifying import rounds
from mergeyard.service.verifying.rounds import Rounds
from mergeyard.service.verifying.verifier import Verifier
from mergeyard.service.watch import Watch
from mergeyard.service.worker import Worker
from mergeyard.service.yard import Yard

REFRESH_EVERY_LOOKS = 5
"""Webhooks change seldom; whoever changes them through this process need not wait."""
TIDY_EVERY = MINUTE


class Service:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wall: Clock | None = None,
        git: Git,
        hosts: Mapping[str, Host],
        runner: Runner,
        sender: Sender,
        seals: Seals,
        public_url: str,
        grants: Grants = NOTHING_GRANTED,
        shared: SharedStore | None = None,
        foreteller: Foreteller | None = None,
        scribe: Scribe | None = None,
        works: bool = True,
        look_every: int = watch.INTERVAL,
        retention: Retention = KEEP_FOREVER,
        targets_quota_bytes: int = DEFAULT_QUOTA_BYTES,
    ) -> None:
        """`shared` is the store, where others write to it as well; one that does not work only answers. What others
        sign or verify, and what expires, goes by the wall, where that is another clock."""
        self.store = store
        self.clock = clock
        self.wall = wall or clock
        self.git = git
        self.runner = runner
        self.scribe = scribe
        self.background = Background(clock)
        self.yard = Yard(store, clock, shared)
        self.sites = Sites(hosts, git)
        self.duties = Duties(clock)
        self.others = Others(shared, self.background)
        sight = Sight()
        self.tokens = Tokens(store, self.wall)
        self.token_uses = TokenUses(store, self.wall, self.background)
        self.refusals = RefusalLog(clock, self.background)
        self.sessions = Sessions(store, self.wall, self.tokens, grants)
        self.live = Live(clock)
        self.repeating = Repeating(store, clock)
        self.stays = Stays(self.yard)
        self.submissions = Submissions(self.yard, self.sites, sight, self.stays, self.background)
        self.uploads = Uploads(self.yard, self.sites, targets_quota_bytes)
        self.listing = Listing(self.yard, self.stays)
        self.queues = Queues(self.yard, self.sites, self.others)
        self.branch_warnings = BranchWarnings(self.sites, clock, self.background)
        self.runs = Runs(self.yard, self.sites)
        self.dossiers = Dossiers(self.yard, self.sites, self.stays, self.listing, self.runs)
        self.counting = Counting(self.yard)
        self.statuses = Statuses(store, clock, self.background, self.duties, self.others)
        self.forge_checks = ForgeChecks(self.sites, self.statuses, self.duties, self.others, clock, self.background)
        conversations = Conversations(self.yard, self.duties)
        self.desk = Desk(
            self.yard,
            self.sites,
            self.submissions,
            self.stays,
            self.repeating,
            conversations,
            self.duties,
            self.others,
            self.background,
        )
        self.commenting = Commenting(self.yard, self.sites, conversations, public_url)
        self.news = NewsRoom(self.yard, self.sites, self.desk, self.forge_checks, self.background)
        self.checking = Checking(runner, self.sites, self.statuses, clock, self.background, public_url)
        self.worker = Worker(self.sites, sight, store, self.forge_checks, clock, self.background, self.duties)
        self.watch = Watch(self.yard, self.sites, sight, self.desk, self.background, self.duties)
        self.sweeper = Sweeper(self.yard, self.sites, sight, self.duties)
        self.verifier = Verifier(self.yard, self.sites)
        self.replays = Replays(self.yard)
        self.calibration = Calibration(store)
        self._foretelling = None if foreteller is None else Foretelling(self.yard, foreteller, self.calibration)
        self.rounds = Rounds(self.yard, self.verifier, self.duties)
        self.marking = Marking(store, clock, self.sites)
        self.tellers = Tellers(store, clock, self.background, self.duties)
        self.office = Office(store, self.wall, sender, seals, public_url)
        self.subscriptions = Subscriptions(self.office, self.tellers)
        self.retelling = Retelling(self.yard, self.office.stories, clock, self.live)
        self._retention_job = None if retention == KEEP_FOREVER else RetentionJob(store, runner, clock, retention)
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
        self._let_all_follow()
        self._begin_foretelling()
        if self._shared is None:
            await self._take_up_everything()
        else:
            await self._join(self._shared)
        if self._works:
            await self._begin_telling()
            self._go_on_working()

    def _let_all_follow(self) -> None:
        self.duties.followers += (
            self._alarms,
            self.statuses,
            self.forge_checks,
            self.checking,
            self.worker,
            self.watch,
            self.sweeper,
            self.rounds,
            self.tellers,
        )
        self.yard.listeners += (self.others.follow, self.duties.follow)
        self.yard.farewells.append(self.duties.leave)

    async def _begin_telling(self) -> None:
        await self.rounds.begin()
        await self.tellers.begin(self.marking, marking.PACE)
        if any(host.forge for host in self.sites.hosts.values()):
            await self.tellers.begin(self.commenting)
            self.background.go_on("reading checks", self.forge_checks.look_around, forge_checks.INTERVAL)

    def _begin_foretelling(self) -> None:
        if self._foretelling is not None:
            self.yard.listeners.append(self._foretelling.follow)
            self.background.go_on("foretelling", self._foretelling.look_around, foretelling.INTERVAL)

    def _go_on_working(self) -> None:
        for name, step, pause in (
            ("watch", self.watch.look_around, self._look_every),
            ("webhooks", self.subscriptions.refresh, REFRESH_EVERY_LOOKS * self._look_every),
            ("telling", self.tellers.remind, tellers.REMIND_EVERY),
            ("sweeping", self.sweeper.sweep_all, sweeping.INTERVAL),
            ("verifying", self.rounds.look_around, rounds.INTERVAL),
            ("checking", self.checking.pass_a_result_on, 0),
            ("forgetting", self.repeating.forget_old_answers, HOUR),
            ("tidying", self.git.tidy, TIDY_EVERY),
            ("signing out", self.sessions.forget_ended, FORGET_EVERY),
        ):
            self.background.go_on(name, step, pause)
        if self._retention_job is not None:
            self.background.go_on("retention", self._retention_job.delete_expired, DELETE_EVERY)

    async def ready(self) -> None:
        """Raises what is in the way of working."""
        await self.store.check()
        await self.git.check()
        if self._replica is not None:
            self._replica.ready()
        stopped = self.background.stopped()
        if stopped:
            raise Refused(Code.INTERNAL_ERROR, f"{', '.join(stopped)} has stopped: restart the server.")

    async def stop(self) -> None:
        """What is under way is dropped where it stands: the facts say what is left to do."""
        await self.background.close()
        if self._foretelling is not None:
            await self._foretelling.close()
        if self.scribe is not None:
            await self.scribe.close()
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
        hearing = Hearing(shared, self.yard, self.duties, self.others, self.statuses, self.news, self.background)
        if self._replica is None:
            self.duties.share("")
            await hearing.start(None)
        else:
            await self._replica.report()
            await hearing.start(self._replica.hurry)
            self.background.go_on("reporting", self._replica.report, replica.REPORT_EVERY)
