"""The whole service: builds its parts, starts them and stops them."""

from collections.abc import Collection, Mapping

from mergeyard.domain.access import NO_GRANTS, Grants
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.ports.external import CheckRunner, Clock, Forecaster, SecretBox, Sender
from mergeyard.ports.forge import Host
from mergeyard.ports.git import Git, Identity
from mergeyard.ports.store import SharedStore, Store
from mergeyard.service import check_sources, forecasts, merge_marker, poller, provenance
from mergeyard.service.analytics import QueueMetricsReader
from mergeyard.service.audit_log import RefusalLog
from mergeyard.service.background import Background
from mergeyard.service.check_sources import ForgeCheckPoller, LocalCheckRunner
from mergeyard.service.comments.commands import CommandExecutor, ThreadStates
from mergeyard.service.comments.listener import CommentListener, CommentPublisher, CommentRefresher
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.forecasts import Calibration, Forecasts
from mergeyard.service.forge_events import ForgeEventDispatcher
from mergeyard.service.host_lists import OpenPullRequests, RecentChecks
from mergeyard.service.idempotency import Idempotency
from mergeyard.service.leases import HEARTBEAT_INTERVAL_MS, Leases, Replica
from mergeyard.service.merge_audit import auditor
from mergeyard.service.merge_audit.auditor import AuditScheduler, MergeAuditor
from mergeyard.service.obstacles import Obstacles
from mergeyard.service.poller import Poller
from mergeyard.service.previews import Previews
from mergeyard.service.pull_request_details import PullRequestDetailsReader
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_overview import OverviewReader
from mergeyard.service.queues import Queues
from mergeyard.service.registry import ChangeWaiter, QueueRegistry
from mergeyard.service.replica import ReplicaListener
from mergeyard.service.replica_bus import ReplicaBus
from mergeyard.service.repositories import BranchWarnings, Repositories
from mergeyard.service.retention import DELETE_INTERVAL_MS, KEEP_FOREVER, Retention, RetentionJob
from mergeyard.service.runs import Runs
from mergeyard.service.sessions import DELETE_EXPIRED_INTERVAL_MS, Sessions
from mergeyard.service.statuses import Statuses
from mergeyard.service.submission_queries import SubmissionQueries
from mergeyard.service.submissions import DEFAULT_TARGETS_QUOTA_BYTES, ImpactedTargetsUploads, Submissions
from mergeyard.service.tasks import test_branches
from mergeyard.service.tasks.test_branches import BranchCleanup
from mergeyard.service.tokens import Tokens, TokenUses
from mergeyard.service.webhooks import journal_consumers
from mergeyard.service.webhooks.dispatch import EventFeed, WebhookSubscriptions
from mergeyard.service.webhooks.journal_consumers import JournalConsumers
from mergeyard.service.webhooks.webhooks import Webhooks
from mergeyard.service.whatif import Replayer, Replays, replay_in_this_process
from mergeyard.service.worker import Wakeups, Worker

WEBHOOK_REFRESH_POLLS = 5
"""Webhooks are read again every so many poll intervals, for changes by other processes; own changes apply at once."""
MIRROR_MAINTENANCE_INTERVAL_MS = MINUTE


class Service:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wall_clock: Clock | None = None,
        git: Git,
        hosts: Mapping[str, Host],
        identities: Mapping[str, Identity] = {},
        runner: CheckRunner,
        sender: Sender,
        secret_box: SecretBox,
        public_url: str,
        hosts_with_urgent_writers: Collection[str] = (),
        grants: Grants = NO_GRANTS,
        shared_store: SharedStore | None = None,
        forecaster: Forecaster | None = None,
        replayer: Replayer = replay_in_this_process,
        is_worker: bool = True,
        poll_interval_ms: int = poller.POLL_INTERVAL_MS,
        retention: Retention = KEEP_FOREVER,
        targets_quota_bytes: int = DEFAULT_TARGETS_QUOTA_BYTES,
    ) -> None:
        """`shared_store` is the store if several replicas write to it. Without `is_worker` the process only serves
        requests. `wall_clock` is for what other systems sign or verify and for what expires; the default is `clock`.
        """
        self.store = store
        self.clock = clock
        self.retention = retention
        self.wall_clock = wall_clock or clock
        self.git = git
        self.runner = runner
        self.background = Background(clock)
        self.registry = QueueRegistry(store, clock, shared_store)
        self.repositories = Repositories(hosts, git, identities)
        self.leases = Leases(clock)
        self._bus = ReplicaBus(shared_store, self.background)
        reader = PullRequestReader(self.registry)
        self.tokens = Tokens(store, self.wall_clock)
        self.token_uses = TokenUses(store, self.wall_clock, self.background)
        self.refusal_log = RefusalLog(clock, self.background)
        self.sessions = Sessions(store, self.wall_clock, self.tokens, grants)
        self.change_waiter = ChangeWaiter(clock)
        self.idempotency = Idempotency(store, clock)
        self.submission_queries = SubmissionQueries(self.registry)
        self.submissions = Submissions(
            self.registry, self.repositories, reader, self.submission_queries, self.background
        )
        self.previews = Previews(self.registry, self.repositories, reader)
        self.impacted_targets_uploads = ImpactedTargetsUploads(self.registry, self.repositories, targets_quota_bytes)
        overviews = OverviewReader(store, clock, hosts)
        self.queues = Queues(self.registry, self.repositories, self._bus, overviews)
        self.branch_warnings = BranchWarnings(self.repositories, clock, self.background)
        self.open_pull_requests = OpenPullRequests(self.repositories, clock)
        self.recent_checks = RecentChecks(self.repositories, self.open_pull_requests, store, clock)
        self.runs = Runs(self.registry, self.repositories)
        self.pull_request_details = PullRequestDetailsReader(
            self.registry, self.repositories, self.submission_queries, self.runs
        )
        self.queue_metrics = QueueMetricsReader(self.registry)
        self.statuses = Statuses(store, clock, self.background, self.leases, self._bus)
        obstacles = Obstacles()
        self._forge_checks = ForgeCheckPoller(
            self.repositories, self.statuses, self.leases, self._bus, clock, self.background, obstacles
        )
        threads = ThreadStates(self.registry, self.leases)
        self._comment_listener = CommentListener(
            self.registry,
            self.repositories,
            CommandExecutor(
                self.submissions, self.submission_queries, self.idempotency, clock, hosts_with_urgent_writers
            ),
            threads,
            self.leases,
            self._bus,
            self.background,
        )
        self._comment_publisher = CommentPublisher(self.registry, self.repositories, threads, public_url)
        self._comment_refresher = CommentRefresher(
            self._comment_publisher, self.repositories, self.leases, clock, self.background
        )
        schedule_comments = self._comment_listener.schedule
        self._poller = Poller(
            self.registry, self.repositories, reader, schedule_comments, self.background, self.leases, obstacles
        )
        self.forge_events = ForgeEventDispatcher(
            self.registry,
            self.repositories,
            schedule_comments,
            self._forge_checks,
            self.background,
            self._poller.wake,
        )
        self._local_checks = LocalCheckRunner(
            runner, self.repositories, self.statuses, clock, self.background, public_url
        )
        self._worker = Worker(
            self.repositories, reader, store, self._forge_checks, clock, self.background, self.leases, obstacles
        )
        self._branch_cleanup = BranchCleanup(self.registry, self.repositories, reader, self.leases)
        self.merge_auditor = MergeAuditor(self.registry, self.repositories)
        self.provenance = provenance.Provenance(self.registry, self.repositories, self.submission_queries)
        self._provenance_writer = provenance.ProvenanceWriter(store, clock, self.repositories)
        self.replays = Replays(self.registry, replayer)
        self.calibration = Calibration(store)
        self._forecasts = None if forecaster is None else Forecasts(self.registry, forecaster, self.calibration)
        self._audit_scheduler = AuditScheduler(self.registry, self.merge_auditor, self.leases)
        self._merge_marker = merge_marker.MergeMarker(store, clock, self.repositories, self.registry)
        self.journal_consumers = JournalConsumers(store, clock, self.background, self.leases)
        self.webhooks = Webhooks(store, self.wall_clock, sender, secret_box, public_url)
        self.webhook_subscriptions = WebhookSubscriptions(self.webhooks, self.journal_consumers)
        self.event_feed = EventFeed(self.registry, self.webhooks.payload_builder, self.change_waiter)
        self._retention_job = None if retention == KEEP_FOREVER else RetentionJob(store, runner, clock, retention)
        self._wakeups = Wakeups(clock)
        self._shared_store = shared_store
        self._is_worker = is_worker
        self._poll_interval_ms = poll_interval_ms
        self._replica = (
            None
            if shared_store is None or not is_worker
            else Replica(shared_store, self.registry, self.leases, self._bus, git, clock, self.background)
        )

    async def start(self) -> None:
        await self.git.check()
        await self.store.open()
        self._add_listeners()
        if self._forecasts is not None:
            self.registry.listeners.append(self._forecasts.on_change)
            self.background.run_periodically("forecasts", self._forecasts.refresh_due, forecasts.FORECAST_INTERVAL_MS)
        if self._shared_store is None:
            await self.registry.load_all()
            for queue_actor in self.registry:
                await queue_actor.resume()
        else:
            await self._join_replicas(self._shared_store)
        if self._is_worker:
            await self._start_consumers()
            self._start_periodic_jobs()

    def _add_listeners(self) -> None:
        self.leases.listeners += (
            self._wakeups,
            self.statuses,
            self._forge_checks,
            self._local_checks,
            self._worker,
            self._poller,
            self._branch_cleanup,
            self._audit_scheduler,
            self.journal_consumers,
            self._comment_refresher,
        )
        self.registry.listeners += (self._bus.on_change, self.leases.on_change)
        self.registry.on_evicted.append(self.leases.on_lease_lost)

    async def _start_consumers(self) -> None:
        await self._audit_scheduler.start()
        await self.journal_consumers.start_at_end(self._merge_marker, merge_marker.MERGE_MARKER_OPTIONS)
        await self.journal_consumers.start_at_end(self._provenance_writer, provenance.CONSUMER_OPTIONS)
        if any(host.forge for host in self.repositories.hosts.values()):
            await self.journal_consumers.start_at_end(self._comment_publisher)
            self.background.run_periodically(
                "check_poller", self._forge_checks.poll_due, check_sources.CHECK_POLL_INTERVAL_MS
            )

    def _start_periodic_jobs(self) -> None:
        for name, step, pause_ms in (
            ("poller", self._poller.poll_due, self._poll_interval_ms),
            ("webhook_refresh", self.webhook_subscriptions.refresh, WEBHOOK_REFRESH_POLLS * self._poll_interval_ms),
            ("journal_consumers", self.journal_consumers.wake_lagging, journal_consumers.WAKE_INTERVAL_MS),
            ("branch_cleanup", self._branch_cleanup.clean_up_all, test_branches.CLEANUP_INTERVAL_MS),
            ("merge_audit", self._audit_scheduler.audit_due, auditor.CHECK_INTERVAL_MS),
            ("local_checks", self._local_checks.report_next_result, 0),
            ("idempotency_cleanup", self.idempotency.delete_expired_responses, HOUR),
            ("mirror_maintenance", self.git.run_maintenance, MIRROR_MAINTENANCE_INTERVAL_MS),
            ("session_cleanup", self.sessions.delete_expired, DELETE_EXPIRED_INTERVAL_MS),
        ):
            self.background.run_periodically(name, step, pause_ms)
        if self._retention_job is not None:
            self.background.run_periodically("retention", self._retention_job.delete_expired, DELETE_INTERVAL_MS)

    async def check_ready(self) -> None:
        """Raises an error that says why the process cannot work."""
        await self.store.check()
        await self.git.check()
        if self._replica is not None:
            self._replica.check_ready()
        stopped = self.background.list_stopped()
        if stopped:
            raise RequestRefused(
                Code.INTERNAL_ERROR, f"Background job stopped: {', '.join(stopped)}. Restart the server."
            )

    async def stop(self) -> None:
        """Cancels tasks at any point: after the next start they are derived from the stored queues again."""
        await self.background.close()
        if self._forecasts is not None:
            await self._forecasts.close()
        self._wakeups.stop()
        await self.registry.close()
        if self._replica is not None:
            await self._replica.unregister()
        await self.runner.close()
        for host in self.repositories.hosts.values():
            await host.close()
        await self.store.close()

    async def _join_replicas(self, shared: SharedStore) -> None:
        """A process that is no worker gets no leases, so it processes no queue."""
        listener = ReplicaListener(
            shared, self.registry, self.leases, self._bus, self.statuses, self.forge_events.dispatch, self.background
        )
        if self._replica is None:
            self.leases.require_leases("")
            await listener.start(None)
        else:
            await self._replica.send_heartbeat()
            await listener.start(self._replica.claim_released_leases)
            self.background.run_periodically("heartbeat", self._replica.send_heartbeat, HEARTBEAT_INTERVAL_MS)
