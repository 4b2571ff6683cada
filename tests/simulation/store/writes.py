"""Commits: all writes of one call are applied, or none."""

from collections.abc import Sequence
from typing import assert_never

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AlreadyExists, DuplicateRequest, LeaseLost, VersionConflict
from mergeyard.ports.writes import (
    AppendEntries,
    AssertLease,
    ClearStalled,
    CreateQueue,
    DeleteConsumer,
    DeleteExpired,
    DeleteExpiredResponses,
    DeleteExpiredSessions,
    DeleteQueue,
    DeleteSession,
    DeleteSsoSessions,
    DeleteWebhook,
    MarkStalled,
    MoveCursor,
    RecordTokenUse,
    SaveDecision,
    SaveDelivery,
    SaveImpactedTargets,
    SaveResponse,
    SaveSession,
    SaveStatus,
    SaveThreadState,
    SaveToken,
    SaveWebhook,
    StartConsumer,
    WebhookRow,
    Write,
)
from tests.simulation.store.expiry import delete_expired, save_status
from tests.simulation.store.records import Records


class InvalidWrite(Exception):
    """A write violates a constraint that callers must never violate, such as a foreign key. Nothing was written."""


class CommitValidator:
    """The state after the writes that were checked; None stands for deleted rows."""

    def __init__(self, records: Records, now: Instant) -> None:
        self._records = records
        self._now = now
        self._versions: dict[QueueId, int | None] = {}
        self._created: dict[QueueKey, QueueId] = {}
        self._responses: dict[tuple[str, str], Instant | None] = {}
        self._webhooks: dict[str, int | None] = {}
        self._tokens: set[str] = set()

    def check(self, write: Write) -> None:
        match write:
            case AssertLease():
                self._check_lease(write)
            case SaveDecision():
                self._check_decision(write)
            case AppendEntries():
                for entry in write.entries:
                    if entry.queue is not None:
                        self._check_queue(entry.queue)
            case CreateQueue():
                self._check_creation(write)
            case DeleteQueue():
                self._check_deletion(write)
            case SaveResponse():
                self._check_response(write)
            case DeleteExpiredResponses():
                self._expire_responses(write.before)
            case SaveToken():
                self._tokens.add(write.token.id)
            case SaveSession():
                self._check_session(write.session.token)
            case SaveWebhook():
                self._check_webhook(write.webhook)
            case DeleteWebhook():
                self._webhooks[write.id] = None
            case SaveImpactedTargets() | SaveThreadState() | MoveCursor() | MarkStalled():
                self._check_queue(write.queue)
            case (
                RecordTokenUse()
                | SaveStatus()
                | SaveDelivery()
                | DeleteSession()
                | DeleteSsoSessions()
                | DeleteExpiredSessions()
            ):
                pass
            case StartConsumer() | ClearStalled() | DeleteConsumer() | DeleteExpired():
                pass
            case _:
                assert_never(write)

    # Leases and queues

    def _check_lease(self, assertion: AssertLease) -> None:
        if not self._records.leases.is_held(assertion, self._now):
            raise LeaseLost(
                f"{assertion.replica} no longer holds the lease of {assertion.repo} with fence {assertion.fence}."
            )

    def _check_decision(self, decision: SaveDecision) -> None:
        if self._version(decision.queue) != decision.version - 1:
            raise VersionConflict(
                f"Version {decision.version} of queue {decision.queue} does not follow the one that is stored."
            )
        self._versions[decision.queue] = decision.version

    def _check_creation(self, queue: CreateQueue) -> None:
        holder = self._created.get(queue.key) or self._holder(queue.key)
        if holder is not None and self._version(holder) is not None:
            raise AlreadyExists(f"A queue for {queue.key} already exists.")
        if queue.id in self._versions or queue.id in self._records.queues:
            raise InvalidWrite(f"The id of queue {queue.id} was already used.")
        self._versions[queue.id], self._created[queue.key] = 0, queue.id

    def _check_deletion(self, queue: DeleteQueue) -> None:
        if self._version(queue.id) != queue.version:
            raise VersionConflict(f"Queue {queue.id} was deleted, or is not at version {queue.version}.")
        self._versions[queue.id] = None

    def _version(self, queue: QueueId) -> int | None:
        if queue in self._versions:
            return self._versions[queue]
        record = self._records.queues.get(queue)
        return None if record is None or record.deleted else record.version

    def _holder(self, key: QueueKey) -> QueueId | None:
        record = self._records.live.get(key)
        return None if record is None else record.id

    def _check_queue(self, queue: QueueId) -> None:
        """Also true for a deleted queue."""
        if queue not in self._records.queues and queue not in self._versions:
            raise InvalidWrite(f"Foreign key violation: there never was a queue {queue}.")

    # Other records

    def _check_response(self, saved: SaveResponse) -> None:
        key = (saved.response.token, saved.response.key)
        stored = self._records.responses.get(key)
        at = self._responses.get(key, stored and stored.at)
        if at is not None and at >= saved.unless_saved_since:
            raise DuplicateRequest(
                f"Request {saved.response.key} of token {saved.response.token} was answered already."
            )
        self._responses[key] = saved.response.at

    def _expire_responses(self, before: Instant) -> None:
        stored = {key: response.at for key, response in self._records.responses.items()}
        for key, at in (stored | self._responses).items():
            if at is not None and at < before:
                self._responses[key] = None

    def _check_session(self, token: str | None) -> None:
        if token is not None and token not in self._tokens and token not in self._records.access.tokens:
            raise InvalidWrite(f"Foreign key violation: there is no token {token}.")

    def _check_webhook(self, webhook: WebhookRow) -> None:
        stored = self._records.webhooks.rows.get(webhook.id)
        version = self._webhooks.get(webhook.id, stored and stored.version)
        if version != (None if webhook.version == 1 else webhook.version - 1):
            raise VersionConflict(
                f"Version {webhook.version} of webhook {webhook.id} does not follow the one that is stored."
            )
        self._webhooks[webhook.id] = webhook.version


def commit(records: Records, writes: Sequence[Write], now: Instant) -> None:
    """All writes are validated before anything is written."""
    validator = CommitValidator(records, now)
    for write in writes:
        validator.check(write)
    for write in writes:
        apply_write(records, write)


def apply_write(records: Records, write: Write) -> None:
    match write:
        case AssertLease():
            pass
        case SaveDecision():
            records.queues[write.queue].save_decision(write)
        case AppendEntries():
            for entry in write.entries:
                records.journal.append(entry)
        case CreateQueue():
            records.create_queue(write)
        case DeleteQueue():
            records.delete_queue(write.id)
        case SaveImpactedTargets():
            records.queues[write.queue].save_impacted_targets(write)
        case SaveStatus():
            save_status(records, write)
        case DeleteExpired():
            delete_expired(records, write)
        case SaveThreadState():
            records.thread_states[write.queue, write.number] = write.body
        case SaveResponse():
            records.responses[write.response.token, write.response.key] = write.response
        case DeleteExpiredResponses():
            delete_expired_responses(records, write.before)
        case SaveToken():
            records.access.save_token(write.token)
        case RecordTokenUse():
            records.access.record_use(write)
        case SaveSession() | DeleteSession() | DeleteSsoSessions() | DeleteExpiredSessions():
            write_sessions(records, write)
        case StartConsumer() | MoveCursor() | MarkStalled() | ClearStalled() | DeleteConsumer():
            write_consumers(records, write)
        case SaveWebhook():
            records.webhooks.save(write.webhook)
        case DeleteWebhook():
            records.webhooks.delete(write.id)
        case SaveDelivery():
            records.webhooks.save_delivery(write)
        case _:
            assert_never(write)


def delete_expired_responses(records: Records, before: Instant) -> None:
    records.responses = {key: response for key, response in records.responses.items() if response.at >= before}


def write_sessions(
    records: Records, write: SaveSession | DeleteSession | DeleteSsoSessions | DeleteExpiredSessions
) -> None:
    match write:
        case SaveSession():
            records.access.save_session(write.session)
        case DeleteSession():
            records.access.delete_session(write.digest)
        case DeleteSsoSessions():
            records.access.keep_sessions(lambda session: session.token is not None)
        case DeleteExpiredSessions():
            records.access.keep_sessions(lambda session: session.expires_at > write.before)
        case _:
            assert_never(write)


def write_consumers(
    records: Records, write: StartConsumer | MoveCursor | MarkStalled | ClearStalled | DeleteConsumer
) -> None:
    match write:
        case StartConsumer():
            records.consumers.start(write.consumer, ((queue, records.journal.end(queue)) for queue in records.queues))
        case MoveCursor():
            records.consumers.move_cursor(write.consumer, write.queue, write.seq)
        case MarkStalled():
            records.consumers.mark_stalled(write.consumer, write.queue, write.at)
        case ClearStalled():
            records.consumers.clear_stalled(write.consumer)
        case DeleteConsumer():
            records.consumers.delete(write.consumer)
        case _:
            assert_never(write)
