"""Turns a journal entry into the event that webhooks and the event feed send, with a message for users."""

from datetime import UTC, datetime
from typing import assert_never
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId
from mergeyard.domain.journal import (
    SYSTEM_ACTOR,
    PullRequestChanged,
    PullRequestEntry,
    PullRequestUpdated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    QueueEntry,
)
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.domain.webhooks import TEST_EVENT_TYPE, EventType
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.git_names import name_test_branch
from mergeyard.service.views import render_entry, render_reason

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
    actor: str | None = None
    """Who caused the change; None: the queue itself."""
    caused_by: tuple[PullRequestNumber, ...] = ()
    """The pull requests because of which this one is tested again."""
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
        state, reason, message = _describe(record)
        page = f"queues/{key.repo}:{quote(key.branch)}"
        if isinstance(record, PullRequestChanged | PullRequestUpdated):
            page = f"pulls/{key.repo}/{record.number}"
        event = WebhookEvent(
            type=get_event_type(record),
            timestamp=_format_timestamp(record.at),
            repository=str(key.repo),
            target_branch=key.branch,
            state=state,
            reason=reason,
            actor=None if record.actor == SYSTEM_ACTOR else decode_actor_name(record.actor),
            details_url=f"{self._public_url}/{page}",
        )
        if isinstance(record, PullRequestChanged | PullRequestUpdated):
            return await self._add_pull_request(EventPayload(event, message), queue, record)
        return EventPayload(event, message)

    async def _add_pull_request(self, payload: EventPayload, queue: QueueId, record: PullRequestEntry) -> EventPayload:
        submission = await persistence.read_submission(self._store, queue, record.submission_id)
        title = "" if submission is None else submission.pull_request.title
        author = None if submission is None else submission.pull_request.author
        event = replace(payload.event, pr_number=record.number, author=author)
        if isinstance(record, PullRequestChanged):
            event = await self._add_run(event, queue, record)
        return EventPayload(event, payload.message, title)

    async def _add_run(self, event: WebhookEvent, queue: QueueId, record: PullRequestChanged) -> WebhookEvent:
        run = None if record.run is None else await persistence.read_run(self._store, queue, record.run)
        started_run = None if run is None or run.started_at is None else run
        return replace(
            event,
            caused_by=tuple(cause.number for cause in record.causes),
            test_run_id=record.run,
            test_branch=None if started_run is None else name_test_branch(started_run),
            test_branch_sha=None if started_run is None else started_run.tip,
            batched=run is not None and len(run.tested_members) > 1,
            is_bisection=run is not None and run.kind is RunKind.BISECTION,
        )

    def build_test(self, now: Instant) -> EventPayload:
        event = WebhookEvent(type=TEST_EVENT_TYPE, timestamp=_format_timestamp(now), details_url=self._public_url)
        return EventPayload(event, "This is a test. Events will be sent here.")


def get_event_type(record: QueueEntry) -> EventType:
    match record:
        case PullRequestChanged():
            return EVENT_TYPE_BY_STATE[record.to]
        case PullRequestUpdated():
            return EventType.PR_UPDATED
        case QueueChanged():
            return EventType.QUEUE_UPDATED if record.source is record.to else EventType.QUEUE_STATE_CHANGED
        case QueueCreated():
            return EventType.QUEUE_CREATED
        case QueueDeleted():
            return EventType.QUEUE_DELETED
        case _:
            assert_never(record)


def _describe(record: QueueEntry) -> tuple[PullRequestState | QueueState | None, Reason | None, str]:
    match record:
        case PullRequestChanged() | PullRequestUpdated():
            state = record.to if isinstance(record, PullRequestChanged) else record.state
            return state, record.reason, render_entry(record)
        case QueueChanged():
            return record.to, record.reason, render_reason(record.reason, record.detail, actor=record.actor)
        case QueueCreated():
            return QueueState.RUNNING, None, "The queue was created."
        case QueueDeleted():
            return None, None, "The queue was deleted."
        case _:
            assert_never(record)


def _format_timestamp(instant: Instant) -> str:
    """ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
