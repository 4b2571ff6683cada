"""Stores commit statuses and reports them to the queue whose run tests that commit.

A status counts only for the commit that it names. For each run in progress a `RunStatuses` object remembers which
checks the engine knows. Whenever the statuses of its tip may have changed, they are read from the store and the engine
gets the difference, whichever replica stored them.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from mergeyard.domain.events import ChecksObserved
from mergeyard.domain.ids import Repo, RunId, Sha
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState
from mergeyard.ports.external import Clock
from mergeyard.ports.store import LeaseLost, Store, StoreUnavailable
from mergeyard.ports.writes import SaveStatus, Write
from mergeyard.service.background import Background, retry_until_stored
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest, to_response_writes
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.replica_bus import ReplicaBus, StatusSaved

MAX_CONTEXTS = 1000
"""Contexts of one commit that clients can report; what a Git host reports is not limited here."""
RETRY_AFTER_CONTEXTS_S = 3600

ALWAYS_CURRENT_REVISION = 2**63
"""The statuses of a run are read and reported in order, and only by the replica that holds the lease. So no report can
be older than what the engine has recorded, however late it arrives."""

CommitKey = tuple[Repo, Sha]


class RunStatuses:
    def __init__(self, queue_actor: QueueActor, run_id: RunId, commit_key: CommitKey) -> None:
        self.queue_actor = queue_actor
        self.run_id = run_id
        self.commit_key = commit_key
        self.report_lock = asyncio.Lock()
        self.reported_checks: dict[str, CheckState] = {}


class Statuses:
    def __init__(self, store: Store, clock: Clock, background: Background, leases: Leases, bus: ReplicaBus) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._leases = leases
        self._bus = bus
        self._tracked: dict[CommitKey, RunStatuses] = {}

    async def report(
        self,
        repo: Repo,
        sha: Sha,
        status: Status,
        idempotent_request: IdempotentRequest | None = None,
        response: bytes = b"",
        token: str | None = None,
    ) -> None:
        """Returns once the status is stored. If the engine cannot be reached then, it gets the status later."""
        known = await self._store.statuses(repo, sha)
        if len(known) >= MAX_CONTEXTS and all(status.context != each.context for each in known):
            message = f"{sha} already has statuses in {MAX_CONTEXTS} contexts: report one of those contexts again."
            raise RequestRefused(Code.RATE_LIMITED, message, retry_after=RETRY_AFTER_CONTEXTS_S)
        await self._save(repo, sha, [status], *to_response_writes(idempotent_request, response, status.at), token=token)

    async def report_with_lease(self, repo: Repo, sha: Sha, *statuses: Status) -> None:
        """For statuses that this replica found out itself. Without the lease they are dropped: the replica that holds
        it finds them out too."""
        with suppress(LeaseLost):
            await self._save(repo, sha, statuses, *self._leases.lease_assertion(repo))

    async def _save(
        self, repo: Repo, sha: Sha, statuses: Iterable[Status], *writes: Write, token: str | None = None
    ) -> None:
        await self._store.commit(*writes, *(SaveStatus(repo, sha, status, token) for status in statuses))
        tracked = self._tracked.get((repo, sha))
        if tracked is None:
            self._bus.publish(StatusSaved(repo, sha))
            return
        try:
            await self._report_to_engine(tracked)
        except StoreUnavailable:
            self._report_soon(tracked)
        except LeaseLost:
            self._bus.publish(StatusSaved(repo, sha))

    def on_status_saved(self, repo: Repo, sha: Sha) -> None:
        """Another replica stored a status of this commit."""
        tracked = self._tracked.get((repo, sha))
        if tracked is not None:
            self._report_soon(tracked)

    def recheck_all(self) -> None:
        """Reads all statuses again, because hints from other replicas can be lost."""
        for tracked in self._tracked.values():
            if not tracked.report_lock.locked():
                self._report_soon(tracked)

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        """Tracks every run that is in progress now, and no others.

        A CI system can report before the run is tracked: such statuses are in the store and are read at once.
        """
        if not queue_actor.has_other_runs_than(before):
            return
        runs = {(queue_actor.key.repo, run.tip): run for run in queue_actor.queue.runs_in_progress}
        self._untrack(queue_actor, except_for=runs.keys())
        for commit_key, run in runs.items():
            tracked = self._tracked.get(commit_key)
            if tracked is None or tracked.run_id != run.id or tracked.queue_actor is not queue_actor:
                self._tracked[commit_key] = RunStatuses(queue_actor, run.id, commit_key)
                self._report_soon(self._tracked[commit_key])

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._untrack(queue_actor, except_for=())

    def _untrack(self, queue_actor: QueueActor, except_for: Iterable[CommitKey]) -> None:
        of_queue = {commit_key for commit_key, tracked in self._tracked.items() if tracked.queue_actor is queue_actor}
        for commit_key in of_queue.difference(except_for):
            del self._tracked[commit_key]

    def _report_soon(self, tracked: RunStatuses) -> None:
        self._background.start(retry_until_stored(self._clock, lambda: self._report_to_engine(tracked)))

    async def _report_to_engine(self, tracked: RunStatuses) -> None:
        async with tracked.report_lock:
            now = to_check_states(await self._store.statuses(*tracked.commit_key))
            if now != tracked.reported_checks and self._tracked.get(tracked.commit_key) is tracked:
                observed = ChecksObserved(
                    run=tracked.run_id, checks=now, observed_at_revision=ALWAYS_CURRENT_REVISION, pushed=True
                )
                await tracked.queue_actor.submit(
                    observed, lease_assertion=self._leases.lease_assertion(tracked.queue_actor.key.repo)
                )
                tracked.reported_checks = now


def to_check_states(statuses: Iterable[Status]) -> dict[str, CheckState]:
    return {status.context: status.check_state for status in statuses}
