"""One replica's connection to the records that all of them share. No call waits for anything, so each is atomic."""

from collections.abc import Collection, Sequence

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import QueueState
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token
from mergeyard.ports.clock import Clock
from mergeyard.ports.sharing import Duty, Hear, Roster
from mergeyard.ports.store import (
    AuditedEntry,
    AuditPage,
    Changes,
    Figure,
    LoadedQueue,
    Page,
    ResultsPage,
    StoredEntry,
    StoredQueue,
    StoredRun,
    StoreTrouble,
)
from mergeyard.ports.writes import Answer, RecordKey, RecordKind, WebhookRow, Write
from tests.simulation.store.expiry import expired
from tests.simulation.store.queue import QueueRecord
from tests.simulation.store.records import Records
from tests.simulation.store.words import Deliver, Ear, OnDeafEars, deliver_soon
from tests.simulation.store.writing import commit


class MemoryStore:
    def __init__(self, records: Records, clock: Clock) -> None:
        self.deliver: Deliver = deliver_soon
        """How words get here."""
        self._all = records
        self._clock = clock
        self._is_open = False
        self._ear: Ear | None = None

    @property
    def _records(self) -> Records:
        if not self._is_open:
            raise StoreTrouble("The simulated database is not open. Open the store before it is used.")
        return self._all

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """As when the process dies."""
        self._is_open = False
        if self._ear is not None:
            self._all.ears.remove(self._ear)
            self._ear = None

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

    async def changes(self, queue: QueueId, after: int) -> Changes | None:
        record = self._records.queues.get(queue)
        return None if record is None else record.changes(after)

    async def find(self, key: QueueKey) -> StoredQueue | None:
        record = self._records.live.get(key)
        return None if record is None else record.stored

    async def newer(self, known: Collection[tuple[QueueId, int]]) -> Sequence[StoredQueue]:
        found = ((self._records.queues.get(queue), version) for queue, version in sorted(known))
        return tuple(
            record.stored
            for record, version in found
            if record is not None and not record.deleted and record.version != version
        )

    async def of_repo(self, repo: Repo) -> Sequence[StoredQueue]:
        return self._records.of_repos((repo,))

    async def on_duty(self, replica: str) -> Sequence[StoredQueue]:
        return self._records.of_repos(self._records.duties.repos_of(replica))

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None:
        kept = self._of(queue).targets.get((number, head))
        return None if kept is None else kept.body

    async def has_targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bool:
        return (number, head) in self._of(queue).targets

    async def any_targets(self, repo: Repo) -> bool:
        return any(record.targets for key, record in self._records.live.items() if key.repo == repo)

    async def targets_size(self, token: str) -> int:
        kept = (each for record in self._records.queues.values() for each in record.targets.values())
        return sum(len(each.body) for each in kept if each.token == token)

    async def queues_ever(self, repo: Repo) -> Sequence[QueueId]:
        return sorted(queue for queue, record in self._records.queues.items() if record.key.repo == repo)

    # Stays and runs

    async def last_stay(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return next(iter(self._of(queue).stays.of_number(number, 1)), None)

    async def last_stay_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        return self._of(queue).stays.of_branch(branch)

    async def stay(self, queue: QueueId, ticket: Ticket) -> bytes | None:
        return self._of(queue).stays.body(ticket)

    async def stays_of(self, queue: QueueId, number: PrNumber, take: int) -> Sequence[bytes]:
        return self._of(queue).stays.of_number(number, take)

    async def stays(self, queue: QueueId, page: Page) -> Sequence[bytes]:
        return self._of(queue).stays.page(page)

    async def concluded_stays(self, queue: QueueId, take: int) -> Sequence[bytes]:
        ends = map(self._of(queue).stays.body, self._records.journal.ends(queue, take))
        return tuple(body for body in ends if body is not None)

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

    async def expired(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        return expired(self._records, kind, before)[:take]

    # The journal, and who tells of it

    async def timeline(self, queue: QueueId, ticket: Ticket, take: int) -> Sequence[StoredEntry]:
        return self._records.journal.timeline(queue, ticket)[:take]

    async def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[Figure]:
        return self._records.journal.figures(queues, since, until)

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        return self._records.journal.last_change(queue, to)

    async def audit(self, page: AuditPage) -> Sequence[AuditedEntry]:
        return self._records.journal.audit(page, lambda queue: self._of(queue).key)

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        return self._records.journal.behind(queue, after, take)

    async def cursor(self, teller: str, queue: QueueId) -> int:
        return self._records.tellers.cursor(teller, queue).seq

    async def stuck_since(self, teller: str, queue: QueueId) -> Instant | None:
        return self._records.tellers.cursor(teller, queue).stuck_since

    async def behind(self, teller: str) -> Sequence[StoredQueue]:
        return self._records.behind(teller)

    async def conversation(self, queue: QueueId, number: PrNumber) -> bytes | None:
        return self._records.conversations.get((queue, number))

    # What is found by its key

    async def token(self, digest: bytes) -> Token | None:
        return self._records.people.token(digest)

    async def token_of_id(self, token: str) -> Token | None:
        return self._records.people.tokens.get(token)

    async def tokens(self) -> Sequence[Token]:
        return self._records.people.oldest_tokens()

    async def session(self, digest: bytes) -> Session | None:
        return self._records.people.sessions.get(digest)

    async def answer(self, token: str, key: str) -> Answer | None:
        return self._records.answers.get((token, key))

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        return tuple(status for _, status in sorted(self._records.statuses.get((repo, sha), {}).items()))

    async def webhooks(self) -> Sequence[WebhookRow]:
        return self._records.webhooks.in_order()

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        return self._records.webhooks.attempts(webhook, take)

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        return self._records.webhooks.last_attempt(webhook, event)

    # Who works for what, and who hears of it

    async def enlist(self, replica: str, lasting: int) -> None:
        self._records.duties.enlist(replica, lasting, self._clock.now())

    async def report(self, replica: str, lasting: int) -> Roster:
        return self._records.duties.report(replica, lasting, self._clock.now())

    async def claim(self, replica: str, most: int, at_hand: Collection[Repo], patience: int) -> Sequence[Duty]:
        return self._records.duties.claim(replica, most, at_hand, patience, self._clock.now())

    async def let_go(self, replica: str, repos: Collection[Repo]) -> None:
        self._records.duties.let_go(replica, repos, self._clock.now())

    async def resign(self, replica: str) -> None:
        self._records.duties.resign(replica, self._clock.now())

    async def call_out(self, *words: str) -> None:
        self._records.ears.call_out(words)

    async def listen(self, hear: Hear, on_deaf_ears: OnDeafEars) -> None:
        assert self._ear is None, "it listens already"
        self._ear = Ear(hear, on_deaf_ears, self._deliver)
        self._records.ears.add(self._ear)

    def go_deaf(self) -> None:
        """As when the line breaks on which it hears: words get lost until it hears again."""
        if self._ear is not None:
            self._ear.go_deaf()

    async def hear_again(self) -> None:
        if self._ear is not None:
            await self._ear.hear_again()

    def _deliver(self, hear: Hear, word: str) -> None:
        self.deliver(hear, word)

    def _of(self, queue: QueueId) -> QueueRecord:
        return self._records.queues.get(queue, NEVER_THERE)


NEVER_THERE = QueueRecord(QueueId(""), QueueKey(Repo("", "", ""), ""))
"""Nothing is known of it."""


def _by_name(key: QueueKey) -> tuple[str, str, str, str]:
    return key.repo.host, key.repo.owner, key.repo.name, key.branch
