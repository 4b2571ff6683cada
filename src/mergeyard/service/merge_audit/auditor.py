"""Audits the last merges of a queue: reads the records, then the target branch, compares them and reports
mismatches."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from weakref import WeakKeyDictionary

import structlog

from mergeyard.domain.events import AuditMismatchFound, TargetBranchDirty
from mergeyard.domain.ids import QueueId, QueueKey, Sha
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import DAY, MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import HostError, HostUnavailable
from mergeyard.ports.git import GitError
from mergeyard.ports.store import LeaseLost, Store, StoreUnavailable
from mergeyard.ports.writes import MoveCursor, StartConsumer, Write
from mergeyard.service import persistence
from mergeyard.service.background import is_done_before, retry_until_stored
from mergeyard.service.errors import RequestRefused
from mergeyard.service.leases import Leases
from mergeyard.service.merge_audit import compare
from mergeyard.service.merge_audit.records import LANDED_REASONS, MergeClaim, read_branch_history, read_last_merges
from mergeyard.service.merge_audit.wholeness import find_incomplete_merges
from mergeyard.service.metrics import AUDIT_LAST_ROUND, AUDIT_MISMATCHES, LANDINGS_VERIFIED
from mergeyard.service.persistence import decode_record
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories

MAX_SUBMISSIONS = 1000
"""The last ones per pull request."""


async def find_known_commits(
    store: Store, queue: QueueId, other_queue_ids: Iterable[QueueId], claims: Mapping[Sha, MergeClaim]
) -> frozenset[Sha]:
    other_queues = tuple(other_queue_ids)
    known = set[Sha]()
    for commit, claim in claims.items():
        merged = await _read_merged_submissions(store, queue, claim)
        is_recorded = any(submission.merged_sha == commit for submission in merged)
        if is_recorded or any([await _was_merged_elsewhere(store, other, claim) for other in other_queues]):
            known.add(commit)
    return frozenset(known)


async def _was_merged_elsewhere(store: Store, queue: QueueId, claim: MergeClaim) -> bool:
    """Whether another queue merged the pull request, and the commit was cherry-picked or merged from that queue's
    branch."""
    if claim.run is not None:
        return await store.had_run(queue, claim.run)
    return bool(await _read_merged_submissions(store, queue, claim))


async def _read_merged_submissions(store: Store, queue: QueueId, claim: MergeClaim) -> list[Submission]:
    submissions = map(persistence.decode_submission, await store.submissions_of(queue, claim.number, MAX_SUBMISSIONS))
    return [submission for submission in submissions if submission.reason in LANDED_REASONS]


log = structlog.get_logger()

REFRESH_TIMEOUT_MS = 20 * SECOND
"""For the queue to read its target branch again."""


class MergeAuditor:
    def __init__(self, registry: QueueRegistry, repositories: Repositories) -> None:
        self._registry = registry
        self._repositories = repositories
        self._locks = WeakKeyDictionary[QueueActor, asyncio.Lock]()

    async def audit_on_request(self, key: QueueKey, count: int) -> compare.AuditReport:
        """Audits on request. A mismatch pauses the queue, as in a periodic audit."""
        queue_actor = await self._registry.get(key)
        report = await self.audit(queue_actor, count)
        await self.report_mismatches(queue_actor, report)
        return report

    async def audit(self, queue_actor: QueueActor, count: int) -> compare.AuditReport:
        """Compares twice before reporting a mismatch; in between, the queue reads its target branch again."""
        async with self._locks.setdefault(queue_actor, asyncio.Lock()):
            report = await self._compare(queue_actor, count)
            if report.mismatches:
                await self._refresh_target_branch(queue_actor)
                report = (await self._compare(queue_actor, count)).keep_confirmed_by(report)
        LANDINGS_VERIFIED.inc(len(report.landings))
        return report

    async def report_mismatches(self, queue_actor: QueueActor, report: compare.AuditReport, *proof: Write) -> None:
        """Reports new mismatches to the queue. `proof` asserts the lease of a periodic audit."""
        known_names = frozenset(queue_actor.queue.target_branch.reported_mismatches)
        new_mismatches = [mismatch for mismatch in report.mismatches if mismatch.key not in known_names]
        if not new_mismatches:
            return
        await queue_actor.submit(AuditMismatchFound(mismatches=tuple(new_mismatches)), lease_assertion=proof)
        for mismatch in new_mismatches:
            AUDIT_MISMATCHES.labels(mismatch.kind).inc()
            log.error("merge_audit_mismatch", queue=str(queue_actor.key), kind=mismatch.kind, error=mismatch.message)

    async def _compare(self, queue_actor: QueueActor, count: int) -> compare.AuditReport:
        """Reads in this order: first the records, which must be on the target branch; then the branch; then the queue,
        because a commit without a record must belong to a landing in progress, or be recorded by now."""
        store, repo = self._registry.store, queue_actor.key.repo
        landings = await read_last_merges(store, queue_actor.id, repo, count)
        if not landings:
            return compare.AuditReport()
        repository = await self._repositories.open_context(queue_actor)
        history = await read_branch_history(repository, landings)
        incomplete_merges = await find_incomplete_merges(repository, landings, history)
        queue = (await self._registry.get(queue_actor.key)).queue
        landing_members = () if queue.landing is None else queue.landing.members
        claims = compare.find_unrecorded_claims(history, compare.collect_merge_commits(landings, history))
        others = [other for other in await store.all_queue_ids(repo) if other != queue_actor.id] if claims else ()
        context = compare.AuditContext(
            removed_commits=queue.target_branch.removed_commits,
            landing_pull_requests=frozenset(member.number for member in landing_members),
            incomplete_merges=incomplete_merges,
            known_commits=await find_known_commits(store, queue_actor.id, others, claims),
        )
        return compare.compare_merges(landings, history, context)

    async def _refresh_target_branch(self, queue_actor: QueueActor) -> None:
        """Lets the queue observe commits that were removed from the target branch, which are not mismatches."""
        await queue_actor.submit(TargetBranchDirty())
        refreshed = queue_actor.wait_until(lambda queue: not queue.target_branch.refresh_requested)
        if not await is_done_before(refreshed, self._registry.clock.sleep(REFRESH_TIMEOUT_MS)):
            raise HostUnavailable(
                f"The target branch of {queue_actor.key} cannot be read again. Check the Git host, then retry."
            )


CONSUMER_NAME = "audit"
"""The key of the stored cursor: the journal up to there is audited."""
CHECK_INTERVAL_MS = MINUTE
FIRST_AUDIT_DELAY_MS = 2 * MINUTE
"""After a start and after a merge, so that several merges in a row are audited together."""
AUDIT_INTERVAL_MS = 10 * MINUTE
QUIET_FACTOR = 4
"""While the target branch does not move, each interval is this many times as long as the one before."""
MAX_AUDIT_INTERVAL_MS = DAY
DEFAULT_AUDITED_MERGES = 20
"""The minimum per audit; all merges since the last audit are included."""
MAX_AUDITED_MERGES = 500
MAX_CONCURRENT_AUDITS = 4
ENTRIES_PER_READ = 500

EXPECTED_ERRORS = (GitError, HostError, RequestRefused, LeaseLost, StoreUnavailable)


class AuditScheduler:
    def __init__(self, registry: QueueRegistry, auditor: MergeAuditor, leases: Leases) -> None:
        self._registry = registry
        self._auditor = auditor
        self._leases = leases
        self._due: dict[QueueId, Instant] = {}
        self._intervals = WeakKeyDictionary[QueueActor, int]()
        """Until the audit after the next one, if the target branch does not move."""
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_AUDITS)

    async def start(self) -> None:
        """Sets the cursor to the end of the journal at the first start: older merges are not audited, except the last
        ones."""
        await retry_until_stored(
            self._registry.clock, partial(self._registry.store.commit, StartConsumer(CONSUMER_NAME))
        )

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        if before is None or before.target_branch.tip != queue_actor.queue.target_branch.tip:
            due_at = later(self._registry.clock.now(), FIRST_AUDIT_DELAY_MS)
            self._due[queue_actor.id] = min(due_at, self._due.get(queue_actor.id, due_at))
            self._intervals.pop(queue_actor, None)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        self._due.pop(queue_actor.id, None)

    async def audit_due(self) -> None:
        now = self._registry.clock.now()
        due = [
            queue_actor
            for queue_actor in self._registry
            if queue_actor.id in self._due and self._due[queue_actor.id] <= now
        ]
        await asyncio.gather(
            *(self._audit_queue(queue_actor) for queue_actor in due if self._leases.has_lease(queue_actor.key.repo))
        )
        AUDIT_LAST_ROUND.set(self._registry.clock.now() / SECOND)

    async def _audit_queue(self, queue_actor: QueueActor) -> None:
        """A merge during the audit makes the queue due again soon; after an error it is due at the next check."""
        due = self._due.pop(queue_actor.id)
        try:
            async with self._slots:
                await self._audit(queue_actor)
            due = later(self._registry.clock.now(), self._next_interval_ms(queue_actor))
        except EXPECTED_ERRORS as error:
            log.warning("merge_audit_failed", queue=str(queue_actor.key), error=str(error))
        if not queue_actor.is_closed:
            self._due[queue_actor.id] = min(due, self._due.get(queue_actor.id, due))

    def _next_interval_ms(self, queue_actor: QueueActor) -> int:
        interval_ms = self._intervals.get(queue_actor, AUDIT_INTERVAL_MS)
        self._intervals[queue_actor] = min(QUIET_FACTOR * interval_ms, MAX_AUDIT_INTERVAL_MS)
        return interval_ms

    async def _audit(self, queue_actor: QueueActor) -> None:
        cursor = await self._registry.store.cursor(CONSUMER_NAME, queue_actor.id)
        unaudited, seq = await self._count_unaudited(queue_actor, cursor)
        count = min(max(DEFAULT_AUDITED_MERGES, unaudited), MAX_AUDITED_MERGES)
        report = await self._auditor.audit(queue_actor, count)
        proof = self._leases.lease_assertion(queue_actor.key.repo)
        await self._auditor.report_mismatches(queue_actor, report, *proof)
        if seq != cursor:
            await self._registry.store.commit(*proof, MoveCursor(CONSUMER_NAME, queue_actor.id, seq))

    async def _count_unaudited(self, queue_actor: QueueActor, cursor: int) -> tuple[int, int]:
        """How many merges the journal has after the cursor, and the last entry of the journal."""
        seq, landings = cursor, 0
        while entries := await self._registry.store.entries(queue_actor.id, seq, ENTRIES_PER_READ):
            records = [decode_record(entry.body) for entry in entries]
            landings += sum(
                isinstance(record, PullRequestChanged) and record.reason in LANDED_REASONS for record in records
            )
            seq = entries[-1].seq
        return landings, seq
