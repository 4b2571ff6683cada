"""Everything a database server would store, shared by all connected replicas."""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from msgspec.structs import replace

from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, Sha
from mergeyard.domain.pull_requests import Status
from mergeyard.ports.store import MAX_DELIVERIES_PER_WEBHOOK, StoredQueue
from mergeyard.ports.writes import CreateQueue, RecordTokenUse, SaveDelivery, StoredResponse, WebhookRow
from tests.simulation.store.hints import Listeners
from tests.simulation.store.journal import Consumers, Journal
from tests.simulation.store.leases import LeaseTable
from tests.simulation.store.queue import QueueRecord


class AccessRecords:
    def __init__(self) -> None:
        self.tokens: dict[str, Token] = {}
        self.sessions: dict[bytes, Session] = {}
        self._of_digest: dict[bytes, str] = {}

    def save_token(self, token: Token) -> None:
        before = self.tokens.get(token.id)
        if before is not None:
            del self._of_digest[before.digest]
            token = replace(token, last_used_at=before.last_used_at, last_used_from=before.last_used_from)
        self.tokens[token.id] = token
        self._of_digest[token.digest] = token.id

    def record_use(self, use: RecordTokenUse) -> None:
        token = self.tokens.get(use.id)
        if token is not None and (token.last_used_at is None or token.last_used_at < use.at):
            self.tokens[use.id] = replace(token, last_used_at=use.at, last_used_from=use.address)

    def token(self, digest: bytes) -> Token | None:
        found = self._of_digest.get(digest)
        return None if found is None else self.tokens[found]

    def oldest_tokens(self) -> tuple[Token, ...]:
        return tuple(sorted(self.tokens.values(), key=lambda token: (token.created_at, token.id)))

    def save_session(self, session: Session) -> None:
        self.sessions[session.digest] = session

    def delete_session(self, digest: bytes) -> None:
        self.sessions.pop(digest, None)

    def keep_sessions(self, predicate: Callable[[Session], bool]) -> None:
        self.sessions = {digest: session for digest, session in self.sessions.items() if predicate(session)}


class Webhooks:
    def __init__(self) -> None:
        self.rows: dict[str, WebhookRow] = {}
        self._deliveries: dict[str, deque[SaveDelivery]] = {}

    def save(self, webhook: WebhookRow) -> None:
        self.rows[webhook.id] = webhook

    def delete(self, webhook: str) -> None:
        self.rows.pop(webhook, None)
        self._deliveries.pop(webhook, None)

    def save_delivery(self, delivery: SaveDelivery) -> None:
        if delivery.webhook in self.rows:
            self._deliveries.setdefault(delivery.webhook, deque(maxlen=MAX_DELIVERIES_PER_WEBHOOK)).append(delivery)

    def in_order(self) -> tuple[WebhookRow, ...]:
        return tuple(webhook for _, webhook in sorted(self.rows.items()))

    def deliveries(self, webhook: str, take: int) -> tuple[bytes, ...]:
        newest = reversed(self._deliveries.get(webhook, ()))
        return tuple(delivery.body for delivery in islice(newest, take))

    def last_delivery(self, webhook: str, event: str) -> bytes | None:
        newest = reversed(self._deliveries.get(webhook, ()))
        return next((delivery.body for delivery in newest if delivery.event == event), None)


class Records:
    def __init__(self) -> None:
        self.queues: dict[QueueId, QueueRecord] = {}
        self.live: dict[QueueKey, QueueRecord] = {}
        self.journal = Journal()
        self.consumers = Consumers()
        self.leases = LeaseTable()
        self.access = AccessRecords()
        self.webhooks = Webhooks()
        self.responses: dict[tuple[str, str], StoredResponse] = {}
        self.statuses: dict[tuple[Repo, Sha], dict[str, Status]] = {}
        self.unclaimed: dict[tuple[Repo, Sha, str], str] = {}
        """The token that reported each status whose commit no run had tested at that time."""
        self.thread_states: dict[tuple[QueueId, PullRequestNumber], bytes] = {}
        self.listeners = Listeners()

    def create_queue(self, queue: CreateQueue) -> None:
        """Also adds the lease of its repository."""
        self.queues[queue.id] = self.live[queue.key] = QueueRecord(queue.id, queue.key)
        self.leases.add(queue.key.repo)

    def delete_queue(self, queue: QueueId) -> None:
        deleted = self.queues[queue]
        deleted.delete()
        del self.live[deleted.key]

    def of_repos(self, repos: Iterable[Repo]) -> tuple[StoredQueue, ...]:
        """Their live queues, in the order of their ids."""
        wanted = frozenset(repos)
        found = [queue for key, queue in self.live.items() if key.repo in wanted]
        return tuple(queue.stored for queue in sorted(found, key=lambda queue: queue.id))

    def with_unread_entries(self, consumer: str) -> tuple[StoredQueue, ...]:
        """The queues, including deleted ones, with entries that the consumer has not read."""
        return tuple(
            self.queues[queue].stored
            for queue in sorted(self.queues)
            if self.journal.end(queue) > self.consumers.cursor(consumer, queue).seq
        )
