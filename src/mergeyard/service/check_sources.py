"""Where checks come from: a poller that reads them from forges, and a runner on this machine."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

import structlog
from msgspec import Struct

from mergeyard.domain.events import Event
from mergeyard.domain.ids import QueueKey, Repo, RunId, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.timestamps import SECOND, Instant, later
from mergeyard.ports.external import CheckJob, CheckRunner, Clock
from mergeyard.ports.forge import (
    ChecksFrom,
    Forge,
    HostAccessLost,
    HostError,
    HostRefused,
    RequestPurpose,
    requests_for,
)
from mergeyard.ports.git import GitError
from mergeyard.ports.store import LeaseLost, StoreUnavailable
from mergeyard.service.background import Background, retry_until_stored
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import name_test_branch
from mergeyard.service.leases import Leases
from mergeyard.service.obstacles import Obstacles
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.replica_bus import CommitNoticeReceived, ReplicaBus
from mergeyard.service.repo_config import CONFIG_FILE, InvalidConfig, parse_config, read_config_file
from mergeyard.service.repositories import Repositories
from mergeyard.service.statuses import Statuses

log = structlog.get_logger()

CHECK_POLL_INTERVAL_MS = 1000
CHECKS = "checks"
"""This poller as the source of an obstacle. It reports only refusals: whether the Git host responds, the others see."""
MAX_PROMPT_READS = 5
"""Between two regular reads of a commit, this many notices cause a read at once."""
MIN_READ_INTERVAL_MS = 5 * SECOND
"""Between further reads that notices cause: hundreds of jobs report each start and each end."""
RUNS_PER_READ_INTERVAL = 4
MAX_CONCURRENT_READS = 8

CommitKey = tuple[Repo, Sha]


class PolledCommit(Struct, eq=False):
    queue_actor: QueueActor
    due: Instant
    test_branch: str
    """Its tip is this commit."""
    busy: bool = False
    """A read is scheduled or in progress."""
    reported: tuple[Status, ...] = ()
    """The statuses of the last read; only others are reported to the queue."""
    noticed: bool = False
    """The next read is due because of a notice."""
    prompt_reads: int = 0
    """Reads because of a notice since the last regular one."""


@dataclass(eq=False)
class ForgeCheckPoller:
    repositories: Repositories
    statuses: Statuses
    leases: Leases
    replica_bus: ReplicaBus
    clock: Clock
    background: Background
    obstacles: Obstacles
    _commits: dict[CommitKey, PolledCommit] = field(default_factory=dict[CommitKey, PolledCommit], init=False)
    _read_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_READS), init=False)

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        """Polls the tips of all runs in progress, and no other commit of this queue."""
        if not queue_actor.has_other_runs_than(before):
            return
        if self._find_forge(queue_actor.key.repo) is None:
            return
        repo = queue_actor.key.repo
        under_test = {(repo, run.tip): run for run in queue_actor.queue.runs_in_progress}
        self._forget_commits(queue_actor, except_for=under_test)
        if not under_test:
            self.obstacles.forget(queue_actor, CHECKS)
        for key, run in under_test.items():
            commit = PolledCommit(queue_actor, self.clock.now(), name_test_branch(run))
            self._commits.setdefault(key, commit)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._forget_commits(queue_actor, except_for=())

    async def poll_due(self) -> None:
        now = self.clock.now()
        for key, commit in self._commits.items():
            if commit.due <= now and not commit.busy:
                interval_ms = self.repositories.get_host(key[0].host).poll_interval_ms
                commit.prompt_reads = commit.prompt_reads + 1 if commit.noticed else 0
                commit.busy, commit.noticed, commit.due = True, False, later(now, interval_ms)
                self.background.start(self._read_in_slot(key, commit))

    def on_commit_notice(self, repo: Repo, sha: Sha, check: str | None) -> None:
        """This check of the commit, or any of them, may have changed. If another replica polls it, that replica gets a
        hint."""
        commit = self._commits.get((repo, sha))
        if commit is not None:
            if check is None or self._is_required(commit, sha, check):
                self._read_soon(commit)
        elif not self.leases.has_lease(repo):
            self.replica_bus.publish(CommitNoticeReceived(repo, sha, check))

    def _is_required(self, commit: PolledCommit, sha: Sha, check: str) -> bool:
        """GitHub ignores the case of these names."""
        runs = [run for run in commit.queue_actor.queue.runs_in_progress if run.tip == sha]
        return check.casefold() in {name.casefold() for run in runs for name in run.required_statuses}

    @property
    def _read_interval_ms(self) -> int:
        """Longer with many runs: all of them share one budget of requests."""
        return MIN_READ_INTERVAL_MS * (1 + len(self._commits) // RUNS_PER_READ_INTERVAL)

    def _read_soon(self, commit: PolledCommit) -> None:
        now = self.clock.now()
        delay_ms = 0 if commit.prompt_reads < MAX_PROMPT_READS else self._read_interval_ms
        commit.noticed, commit.due = True, min(commit.due, later(now, delay_ms))
        self.background.start(self.poll_due())

    async def refresh_checks(self, key: QueueKey, run: Run) -> None:
        """Reads the checks right now, for a decision that depends on them."""
        forge = self._find_forge(key.repo)
        if forge is None:
            return
        found = await forge.statuses(key.repo, run.tip, key.branch, name_test_branch(run))
        await self.statuses.report_with_lease(key.repo, run.tip, *found)

    async def _read_in_slot(self, key: CommitKey, commit: PolledCommit) -> None:
        repo, sha = key
        try:
            async with self._read_slots:
                await self._report_changed(commit, repo, sha)
                await self._report_obstacle(commit.queue_actor, *self.obstacles.clear(commit.queue_actor, CHECKS))
        except (HostRefused, HostAccessLost) as error:
            event = self.obstacles.record(commit.queue_actor, CHECKS, error, sha=sha)
            await self._report_obstacle(commit.queue_actor, event)
        except (HostError, StoreUnavailable, RequestRefused) as error:
            log.warning("checks_not_read", repo=str(repo), sha=sha, error=str(error))
        finally:
            commit.busy = False

    async def _report_obstacle(self, queue_actor: QueueActor, *events: Event) -> None:
        if not events or queue_actor.is_closed:
            return
        try:
            lease_assertion = self.leases.lease_assertion(queue_actor.key.repo)
            await queue_actor.submit(*events, lease_assertion=lease_assertion)
        except (LeaseLost, RequestRefused, StoreUnavailable) as error:
            log.warning("queue_event_not_stored", queue=str(queue_actor.key), error=str(error))

    async def _report_changed(self, commit: PolledCommit, repo: Repo, sha: Sha) -> None:
        forge = self._find_forge(repo)
        # While the read waited for a slot, the run may have ended and another one may poll the same commit.
        if forge is None or self._commits.get((repo, sha)) is not commit:
            return
        branch = commit.queue_actor.key.branch
        with requests_for(RequestPurpose.MERGING):
            statuses = tuple(await forge.statuses(repo, sha, branch, commit.test_branch))
        changed = [status for status in statuses if status not in commit.reported]
        if changed:
            await self.statuses.report_with_lease(repo, sha, *changed)
            commit.reported = statuses

    def _find_forge(self, repo: Repo) -> Forge | None:
        """The forge that the checks of this repository come from; None if they come from elsewhere."""
        host = self.repositories.hosts.get(repo.host)
        return host.forge if host is not None and host.checks_from is ChecksFrom.HOST else None

    def _forget_commits(self, queue_actor: QueueActor, except_for: Iterable[CommitKey]) -> None:
        known = {key for key, commit in self._commits.items() if commit.queue_actor is queue_actor}
        for key in known.difference(except_for):
            del self._commits[key]


JOB_START_RETRY_DELAY_MS = 1000


@dataclass(eq=False)
class LocalCheckRunner:
    runner: CheckRunner
    repositories: Repositories
    statuses: Statuses
    clock: Clock
    background: Background
    public_url: str
    _actor_by_run: dict[RunId, QueueActor] = field(default_factory=dict[RunId, QueueActor], init=False)
    """The runs that were given to the runner, each with the actor of its queue."""

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        if not queue_actor.has_other_runs_than(before):
            return
        host = self.repositories.hosts.get(queue_actor.key.repo.host)
        if host is None or host.checks_from is not ChecksFrom.RUN:
            return
        for run in queue_actor.queue.runs_in_progress:
            if run.id not in self._actor_by_run:
                self._actor_by_run[run.id] = queue_actor
                self.background.start(self._start(queue_actor, run))
        self._stop(
            [run for run, owner in self._actor_by_run.items() if owner is queue_actor and _is_over(queue_actor, run)]
        )

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._stop([run for run, owner in self._actor_by_run.items() if owner is queue_actor])

    def _stop(self, runs: list[RunId]) -> None:
        for run in runs:
            del self._actor_by_run[run]
            self.background.start(self.runner.stop(run))

    async def report_next_result(self) -> None:
        """Waits for the next result of the runner and reports it as a status, unless its run was stopped."""
        result = await self.runner.next_result()
        queue_actor = self._actor_by_run.get(result.run)
        if queue_actor is not None:
            repo, description = queue_actor.key.repo, result.description
            await self._report(repo, result.run, result.commit, result.check, result.state, description)

    async def _start(self, queue_actor: QueueActor, run: Run) -> None:
        while not _is_over(queue_actor, run.id) and run.id in self._actor_by_run:
            try:
                await self._start_job(queue_actor, run)
                break
            except (GitError, HostError) as error:
                log.warning("checks_not_started", run=run.id, error=str(error))
                await self.clock.sleep(JOB_START_RETRY_DELAY_MS)

    async def _start_job(self, queue_actor: QueueActor, run: Run) -> None:
        """The commands come from commits of the target branch, so that no pull request chooses how it is checked. The
        current tip wins; the base of the run serves checks that were removed from the tip after the run was planned.
        Only a check that a pull request ahead adds has its command from there."""
        repo, tip = queue_actor.key.repo, queue_actor.queue.target_branch.tip
        commands = dict[str, str]()
        if tip is not None:
            for commit in (*(step.commit for step in run.chain[-2:-1]), run.base, tip):
                commands |= await self._read_commands(repo, commit)
        for name in run.required_statuses:
            if name not in commands:
                description = f"[checks] in {CONFIG_FILE} on the target branch has no command for this check"
                await self._report(repo, run.id, run.tip, name, StatusState.ERROR, description)
        required = {name: command for name, command in commands.items() if name in run.required_statuses}
        if required and not _is_over(queue_actor, run.id):
            job = CheckJob(run=run.id, repo=repo, commit=run.tip, commands=required, timeout_ms=run.timeout_ms)
            await self.runner.start(job)

    async def _read_commands(self, repo: Repo, commit: Sha) -> dict[str, str]:
        mirror = await self.repositories.open_mirror(repo)
        config = parse_config(await read_config_file(mirror, commit))
        return {} if isinstance(config, InvalidConfig) else config.checks

    async def _report(
        self, repo: Repo, run: RunId, commit: Sha, check: str, state: StatusState, description: str
    ) -> None:
        url = f"{self.public_url}/runs/{run}/checks/{quote(check, safe='')}"
        status = Status(context=check, state=state, at=self.clock.now(), url=url, description=description)
        await retry_until_stored(self.clock, lambda: self.statuses.report_with_lease(repo, commit, status))


def _is_over(queue_actor: QueueActor, run: RunId) -> bool:
    known = queue_actor.queue.runs.get(run)
    return known is None or known.status is not RunStatus.IN_PROGRESS
