"""Turns a journal entry into the event that webhooks and the event feed send, with a message for users."""

from datetime import UTC, datetime
from typing import assert_never
from urllib.parse import quote

from msgspec import Struct

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId, SubmissionId
from mergeyard.domain.journal import PullRequestChanged, QueueChanged, QueueCreated, QueueDeleted, QueueEntry
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.domain.webhooks import TEST_EVENT_TYPE, EventType
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.git_names import name_test_branch
from mergeyard.service.views import render_reason

EVENT_TYPE_BY_STATE = {
    PullRequestState.NOT_READY: EventType.PR_SUBMITTED,
    PullRequestState.PENDING: EventType.PR_QUEUED,
    PullRequestState.TESTING: EventType.PR_TESTING,
    PullRequestState.TESTS_PASSED: EventType.PR_TESTS_PASSED,
    PullRequestState.PENDING_FAILURE: EventType.PR_PENDING_FAILURE,
    PullRequestState.FAILED: EventType.PR_FAILED,
    PullRequestState.CANCELLED: EventType.PR_CANCELLED,
    PullRequestState.MERGED: EventType.PR_MERGED,
}


class WebhookEvent(Struct, frozen=True, kw_only=True):
    """The fields are those of the payload."""

    type: str
    timestamp: str
    repository: str | None = None
    target_branch: str | None = None
    pr_number: PullRequestNumber | None = None
    author: str | None = None
    state: str | None = None
    reason: str | None = None
    test_run_id: RunId | None = None
    test_branch: str | None = None
    test_branch_sha: str | None = None
    batched: bool = False
    is_bisection: bool = False
    details_url: str


class EventPayload(Struct, frozen=True):
    """An event with a message and a title for users."""

    event: WebhookEvent
    message: str
    title: str = ""


class EventPayloadBuilder:
    def __init__(self, store: Store, public_url: str) -> None:
        self._store = store
        self._public_url = public_url

    async def build(self, key: QueueKey, queue: QueueId, record: QueueEntry) -> EventPayload:
        if isinstance(record, PullRequestChanged):
            return await self._build_for_pull_request(key, queue, record)
        state, message = _describe_queue_change(record)
        event = WebhookEvent(
            type=get_event_type(record),
            timestamp=_format_timestamp(record.at),
            repository=str(key.repo),
            target_branch=key.branch,
            state=state,
            reason=record.reason if isinstance(record, QueueChanged) else None,
            details_url=f"{self._public_url}/queues/{key.repo}:{quote(key.branch)}",
        )
        return EventPayload(event, message)

    async def _build_for_pull_request(self, key: QueueKey, queue: QueueId, record: PullRequestChanged) -> EventPayload:
        pull_request, run = (
            await self._find_pull_request(queue, record.submission_id),
            await self._find_run(queue, record.run),
        )
        started = run is not None and run.started_at is not None
        event = WebhookEvent(
            type=get_event_type(record),
            timestamp=_format_timestamp(record.at),
            repository=str(key.repo),
            target_branch=key.branch,
            pr_number=record.number,
            author=None if pull_request is None else pull_request.author,
            state=record.to,
            reason=record.reason,
            test_run_id=record.run,
            test_branch=name_test_branch(run) if run is not None and started else None,
            test_branch_sha=run.tip if run is not None and started else None,
            batched=run is not None and len(run.tested_members) > 1,
            is_bisection=run is not None and run.kind is RunKind.BISECTION,
            details_url=f"{self._public_url}/pulls/{key.repo}/{record.number}",
        )
        return EventPayload(
            event, render_reason(record.reason, record.detail), "" if pull_request is None else pull_request.title
        )

    def build_test(self, now: Instant) -> EventPayload:
        event = WebhookEvent(type=TEST_EVENT_TYPE, timestamp=_format_timestamp(now), details_url=self._public_url)
        return EventPayload(event, "This is a test. Events will be sent here.")

    async def _find_pull_request(self, queue: QueueId, submission_id: SubmissionId) -> PullRequest | None:
        submission = await persistence.read_submission(self._store, queue, submission_id)
        return None if submission is None else submission.pull_request

    async def _find_run(self, queue: QueueId, run: RunId | None) -> Run | None:
        return None if run is None else await persistence.read_run(self._store, queue, run)


def get_event_type(record: QueueEntry) -> EventType:
    match record:
        case PullRequestChanged():
            return EVENT_TYPE_BY_STATE[record.to]
        case QueueChanged():
            return EventType.QUEUE_UPDATED if record.source is record.to else EventType.QUEUE_STATE_CHANGED
        case QueueCreated():
            return EventType.QUEUE_CREATED
        case QueueDeleted():
            return EventType.QUEUE_DELETED
        case _:
            assert_never(record)


def _describe_queue_change(record: QueueChanged | QueueCreated | QueueDeleted) -> tuple[QueueState | None, str]:
    match record:
        case QueueChanged():
            return record.to, render_reason(record.reason, record.detail)
        case QueueCreated():
            return QueueState.RUNNING, "The queue was created."
        case QueueDeleted():
            return None, "The queue was deleted."
        case _:
            assert_never(record)


def _format_timestamp(instant: Instant) -> str:
    """ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
