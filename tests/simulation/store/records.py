"""All that a database server would hold, for every replica that is connected to it."""

from collections.abc import Iterable

from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.statuses import Status
from mergeyard.ports.store import StoredQueue
from mergeyard.ports.writes import Answer, CreateQueue
from tests.simulation.store.duties import Duties
from tests.simulation.store.journal import Journal
from tests.simulation.store.people import People
from tests.simulation.store.queue import QueueRecord
from tests.simulation.store.telling import Tellers
from tests.simulation.store.webhooks import Webhooks
from tests.simulation.store.words import Ears


class Records:
    def __init__(self) -> None:
        self.queues: dict[QueueId, QueueRecord] = {}
        self.live: dict[QueueKey, QueueRecord] = {}
        self.journal = Journal()
        self.tellers = Tellers()
        self.duties = Duties()
        self.people = People()
        self.webhooks = Webhooks()
        self.answers: dict[tuple[str, str], Answer] = {}
        self.statuses: dict[tuple[Repo, Sha], dict[str, Status]] = {}
        self.unclaimed: dict[tuple[Repo, Sha, str], str] = {}
        """By which token each status was reported whose commit no run tested then."""
        self.conversations: dict[tuple[QueueId, PrNumber], bytes] = {}
        self.ears = Ears()

    def create_queue(self, queue: CreateQueue) -> None:
        """Somebody will have to work for its repository."""
        self.queues[queue.id] = self.live[queue.key] = QueueRecord(queue.id, queue.key)
        self.duties.add(queue.key.repo)

    def delete_queue(self, queue: QueueId) -> None:
        deleted = self.queues[queue]
        deleted.delete()
        del self.live[deleted.key]

    def of_repos(self, repos: Iterable[Repo]) -> tuple[StoredQueue, ...]:
        """Their live queues, in the order of their ids."""
        wanted = frozenset(repos)
        found = [queue for key, queue in self.live.items() if key.repo in wanted]
        return tuple(queue.stored for queue in sorted(found, key=lambda queue: queue.id))

    def behind(self, teller: str) -> tuple[StoredQueue, ...]:
        """The queues, deleted ones among them, of which a teller has something to tell."""
        return tuple(
            self.queues[queue].stored
            for queue in sorted(self.queues)
            if self.journal.end(queue) > self.tellers.cursor(teller, queue).seq
        )
