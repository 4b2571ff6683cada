"""Makes out of an entry of the journal what others are told: the event, and the words for people that go with it."""

from datetime import UTC, datetime
from typing import assert_never
from urllib.parse import quote

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged, QueueChanged, QueueCreated, QueueDeleted, Record
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.webhooks import TEST, EventType
from mergeyard.ports.store import Store
from mergeyard.service import recalling
from mergeyard.service.naming_branches import test_branch
from mergeyard.service.views import sentence

OF_STATE = {
    PrState.NOT_READY: EventType.PR_SUBMITTED,
    PrState.PENDING: EventType.PR_QUEUED,
    PrState.TESTING: EventType.PR_TESTING,
    PrState.TESTS_PASSED: EventType.PR_TESTS_PASSED,
    PrState.PENDING_FAILURE: EventType.PR_PENDING_FAILURE,
    PrState.FAILED: EventType.PR_FAILED,
    PrState.CANCELLED: EventType.PR_CANCELLED,
    PrState.MERGED: EventType.PR_MERGED,
}


class Event(Struct, frozen=True, kw_only=True):
    """Its members are those of the payload."""

    type: str
    timestamp: str
    repository: str | None = None
    target_branch: str | None = None
    pr_number: PrNumber | None = None
    author: str | None = None
    state: str | None = None
    reason: str | None = None
    test_run_id: RunId | None = None
    test_branch: str | None = None
    test_branch_sha: str | None = None
    batched: bool = False
    is_bisection: bool = False
    details_url: str


class Story(Struct, frozen=True):
    """An event, and what people want to read about it."""

    event: Event
    message: str
    title: str = ""


class Stories:
    def __init__(self, store: Store, public_url: str) -> None:
        self._store = store
        self._public_url = public_url

    async def of(self, key: QueueKey, queue: QueueId, record: Record) -> Story:
        if isinstance(record, PrChanged):
            return await self._of_pull(key, queue, record)
        state, message = _about_queue(record)
        event = Event(
            type=type_of(record),
            timestamp=written(record.at),
            repository=str(key.repo),
            target_branch=key.branch,
            state=state,
            reason=record.reason if isinstance(record, QueueChanged) else None,
            details_url=f"{self._public_url}/queues/{key.repo}:{quote(key.branch)}",
        )
        return Story(event, message)

    async def _of_pull(self, key: QueueKey, queue: QueueId, record: PrChanged) -> Story:
        pull, run = await self._pull(queue, record.ticket), await self._run(queue, record.run)
        started = run is not None and run.started_at is not None
        event = Event(
            type=type_of(record),
            timestamp=written(record.at),
            repository=str(key.repo),
            target_branch=key.branch,
            pr_number=record.number,
            author=None if pull is None else pull.author,
            state=record.to,
            reason=record.reason,
            test_run_id=record.run,
            test_branch=test_branch(run) if run is not None and started else None,
            test_branch_sha=run.tip if run is not None and started else None,
            batched=run is not None and len(run.tested) > 1,
            is_bisection=run is not None and run.kind is RunKind.BISECTION,
            details_url=f"{self._public_url}/pulls/{key.repo}/{record.number}",
        )
        return Story(event, sentence(record.reason, record.words), "" if pull is None else pull.title)

    def test(self, now: Instant) -> Story:
        event = Event(type=TEST, timestamp=written(now), details_url=self._public_url)
        return Story(event, "This is a test: events will arrive here.")

    async def _pull(self, queue: QueueId, ticket: Ticket) -> PullRequest | None:
        stay = await recalling.stay(self._store, queue, ticket)
        return None if stay is None else stay.pull

    async def _run(self, queue: QueueId, run: RunId | None) -> Run | None:
        return None if run is None else await recalling.run(self._store, queue, run)


def type_of(record: Record) -> EventType:
    match record:
        case PrChanged():
            return OF_STATE[record.to]
        case QueueChanged():
            return EventType.QUEUE_UPDATED if record.source is record.to else EventType.QUEUE_STATE_CHANGED
        case QueueCreated():
            return EventType.QUEUE_CREATED
        case QueueDeleted():
            return EventType.QUEUE_DELETED
        case _:
            assert_never(record)


def _about_queue(record: QueueChanged | QueueCreated | QueueDeleted) -> tuple[QueueState | None, str]:
    match record:
        case QueueChanged():
            return record.to, sentence(record.reason, record.words)
        case QueueCreated():
            return QueueState.RUNNING, "The queue was created."
        case QueueDeleted():
            return None, "The queue was deleted."
        case _:
            assert_never(record)


def written(instant: Instant) -> str:
    """ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
