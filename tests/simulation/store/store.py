"""One replica's connection to the shared records. No call suspends, so each is atomic."""

from collections.abc import Collection, Sequence

from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import (
    AuditedEntry,
    AuditQuery,
    EndedSubmission,
    EndedSubmissionsQuery,
    HintHandler,
    Lease,
    LeaseStatus,
    LoadedQueue,
    QueueChanges,
    ResultsPage,
    StoredEntry,
    StoredQueue,
    StoredRun,
    StoreUnavailable,
    SubmissionsQuery,
    TransitionRow,
)
from mergeyard.ports.writes import RecordKey, RecordKind, StoredResponse, WebhookRow, Write
from tests.simulation.store.expiry import expired
from tests.simulation.store.hints import Deliver, Listener, OnDisconnect, deliver_soon
from tests.simulation.store.queue import QueueRecord
from tests.simulation.store.records import Records
from tests.simulation.store.writes import commit


class MemoryStore:
    def __init__(self, records: Records, clock: Clock) -> None:
        self.deliver: Deliver = deliver_soon
        """How hints are delivered to this replica."""
        self._all = records
        self._clock = clock
        self._is_open = False
        self._listener: Listener | None = None

    @property
    def _records(self) -> Records:
        if not self._is_open:
            raise StoreUnavailable("The simulated database is not open. Open the store before it is used.")
        return self._all

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """As if the process had died."""
        self._is_open = False
        if self._listener is not None:
            self._all.listeners.remove(self._listener)
            self._listener = None

    async def commit(self, *writes: Write) -> None:
        commit(self._records, writes, self._clock.now())

    async def check(self) -> None:
        assert self._records

    # Queues

    async def queues(self) -> Sequence[StoredQueue]:
        live = self._records.live
        return tuple(live[key].stored for key in sorted(live, key=_by_name))

    async def load(self, queue: QueueId) -> LoadedQueue:
        record = self._records.queues.get(queue)
        if record is None or record.deleted:
            raise LookupError(f"There is no queue {queue}.")
        return record.load()

    async def changes(self, queue: QueueId, after: int) -> QueueChanges | None:
        record = self._records.queues.get(queue)
        return None if record is None else record.changes(after)

    async def find_queue(self, key: QueueKey) -> StoredQueue | None:
        record = self._records.live.get(key)
        return None if record is None else record.stored

    async def changed_queues(self, known: Collection[tuple[QueueId, int]]) -> Sequence[StoredQueue]:
        found = ((self._records.queues.get(queue), version) for queue, version in sorted(known))
        return tuple(
            record.stored
            for record, version in found
            if record is not None and not record.deleted and record.version != version
        )

    async def queues_of_repo(self, repo: Repo) -> Sequence[StoredQueue]:
        return self._records.of_repos((repo,))

    async def leased_queues(self, replica: str) -> Sequence[StoredQueue]:
        return self._records.of_repos(self._records.leases.repos_of(replica))

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None:
        saved = self._of(queue).impacted_targets.get((number, head))
        return None if saved is None else saved.body

    async def has_impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bool:
        return (number, head) in self._of(queue).impacted_targets

    async def has_any_impacted_targets(self, repo: Repo) -> bool:
        return any(record.impacted_targets for key, record in self._records.live.items() if key.repo == repo)

    async def impacted_targets_size(self, token: str) -> int:
        saved = (each for record in self._records.queues.values() for each in record.impacted_targets.values())
        return sum(len(each.body) for each in saved if each.token == token)

    async def all_queue_ids(self, repo: Repo) -> Sequence[QueueId]:
        return sorted(queue for queue, record in self._records.queues.items() if record.key.repo == repo)

    # Submissions and runs

    async def last_submission(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return next(iter(self._of(queue).submissions.of_number(number, 1)), None)

    async def last_submission_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return self._of(queue).submissions.of_branch(branch)

    async def submission(self, queue: QueueId, submission_id: SubmissionId) -> bytes | None:
        return self._of(queue).submissions.body(submission_id)

    async def submissions_of(self, queue: QueueId, number: PullRequestNumber, take: int) -> Sequence[bytes]:
        return self._of(queue).submissions.of_number(number, take)

    async def submissions(self, queue: QueueId, query: SubmissionsQuery) -> Sequence[bytes]:
        return self._of(queue).submissions.page(query)

    async def concluded_submissions(self, queue: QueueId, take: int) -> Sequence[bytes]:
        ends = map(self._of(queue).submissions.body, self._records.journal.ends(queue, take))
        return tuple(body for body in ends if body is not None)

    async def ended_submissions(self, query: EndedSubmissionsQuery) -> Sequence[EndedSubmission]:
        after = query.after or EndedSubmission(QueueId(""), query.until, SubmissionId(0), b"")
        found = [
            EndedSubmission(queue, row.ended_at, row.submission_id, row.body)
            for queue in query.queues
            for row in self._of(queue).submissions.rows()
            if row.ended_at is not None and query.since <= row.ended_at and query.state in (None, row.state)
        ]
        found.sort(key=_end_order, reverse=True)
        return tuple(each for each in found if _end_order(each) < _end_order(after))[: query.take]

    async def run(self, queue: QueueId, run: RunId) -> bytes | None:
        return self._of(queue).runs.body(run)

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        return self._of(queue).runs.had(run)

    async def queue_of_run(self, run: RunId) -> StoredQueue | None:
        return next((record.stored for record in self._records.live.values() if record.runs.has(run)), None)

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[StoredRun]:
        return tuple(self._of(queue).runs.decided(since, until, before)[:take])

    async def results(self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        return self._of(queue).runs.results(since, until, offset, take)

    async def expired_keys(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        return expired(self._records, kind, before)[:take]

    # The journal and its consumers

    async def timeline(self, queue: QueueId, submission_id: SubmissionId, take: int) -> Sequence[StoredEntry]:
        return self._records.journal.timeline(queue, submission_id)[:take]

    async def transitions(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[TransitionRow]:
        return self._records.journal.transitions(queues, since, until)

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return self._records.journal.last_change(queue, to)

    async def last_state_entry(self, queue: QueueId) -> bytes | None:
        return self._records.journal.last_state_entry(queue)

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditedEntry]:
        return self._records.journal.audit(query, lambda queue: self._of(queue).key)

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        return self._records.journal.entries_after(queue, after, take)

    async def cursor(self, consumer: str, queue: QueueId) -> int:
        return self._records.consumers.cursor(consumer, queue).seq

    async def stalled_since(self, consumer: str, queue: QueueId) -> Instant | None:
        return self._records.consumers.cursor(consumer, queue).stalled_since

    async def queues_with_unread_entries(self, consumer: str) -> Sequence[StoredQueue]:
        return self._records.with_unread_entries(consumer)

    async def thread_state(self, queue: QueueId, number: PullRequestNumber) -> bytes | None:
        return self._records.thread_states.get((queue, number))

    # Records found by their key

    async def token(self, digest: bytes) -> Token | None:
        return self._records.access.token(digest)

    async def token_by_id(self, token: str) -> Token | None:
        return self._records.access.tokens.get(token)

    async def tokens(self) -> Sequence[Token]:
        return self._records.access.oldest_tokens()

    async def session(self, digest: bytes) -> Session | None:
        return self._records.access.sessions.get(digest)

    async def response(self, token: str, key: str) -> StoredResponse | None:
        return self._records.responses.get((token, key))

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        return tuple(status for _, status in sorted(self._records.statuses.get((repo, sha), {}).items()))

    async def webhooks(self) -> Sequence[WebhookRow]:
        return self._records.webhooks.in_order()

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return self._records.webhooks.deliveries(webhook, take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return self._records.webhooks.last_delivery(webhook, event)

    # Leases and hints

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        self._records.leases.register(replica, ttl_ms, self._clock.now())

    async def renew_leases(self, replica: str, ttl_ms: int) -> LeaseStatus:
        return self._records.leases.renew(replica, ttl_ms, self._clock.now())

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[Lease]:
        return self._records.leases.acquire(replica, limit, mirrored, grace_ms, self._clock.now())

    async def release_leases(self, replica: str, repos: Collection[Repo]) -> None:
        self._records.leases.release(replica, repos, self._clock.now())

    async def unregister_worker(self, replica: str) -> None:
        self._records.leases.unregister(replica, self._clock.now())

    async def notify(self, *hints: str) -> None:
        self._records.listeners.notify(hints)

    async def listen(self, on_hint: HintHandler, on_disconnect: OnDisconnect) -> None:
        assert self._listener is None, "it is already listening"
        self._listener = Listener(on_hint, on_disconnect, self._deliver)
        self._records.listeners.add(self._listener)

    def stop_listening(self) -> None:
        """As if the listening connection broke: hints are lost until it listens again."""
        if self._listener is not None:
            self._listener.stop_listening()

    async def resume_listening(self) -> None:
        if self._listener is not None:
            await self._listener.resume_listening()

    def _deliver(self, on_hint: HintHandler, hint: str) -> None:
        self.deliver(on_hint, hint)

    def _of(self, queue: QueueId) -> QueueRecord:
        return self._records.queues.get(queue, UNKNOWN_QUEUE)


UNKNOWN_QUEUE = QueueRecord(QueueId(""), QueueKey(Repo("", "", ""), ""))
"""Stands for a queue that never existed."""


def _by_name(key: QueueKey) -> tuple[str, str, str, str]:
    return key.repo.host, key.repo.owner, key.repo.name, key.branch


def _end_order(ended: EndedSubmission) -> tuple[Instant, QueueId, SubmissionId]:
    return ended.ended_at, ended.queue, ended.submission_id
