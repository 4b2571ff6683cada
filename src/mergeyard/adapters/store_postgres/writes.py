"""Performs each kind of write, and commits them with the lease and version checks of several replicas."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec
from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Struct
from msgspec.structs import asdict, astuple

from mergeyard.adapters.store_postgres.connection import Connection, ConnectionPool, Value, fetch_rows, fetch_value
from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import QueueId, Repo
from mergeyard.ports import store
from mergeyard.ports import writes as w

MAX_REMEMBERED_DECISIONS = 1000
"""For how many decisions the ids of deleted queue parts are kept. A replica further behind loads the whole queue."""
SUBMISSION_COLUMNS = (
    *("submission_id", "submission_number", "submission_head_branch", "submission_state", "submission_submitted_at"),
    *("submission_ended_at", "submission_live", "submission_body"),
)
RUN_COLUMNS = (
    *("run_id", "run_status", "run_tested_count", "run_tip", "run_started_at", "run_decided_at", "run_ended_at"),
    *("run_live", "run_body"),
)
ENTRY_COLUMNS = (
    *("queue", "at", "kind", "actor", "token", "submission_id", "number", "from_state", "to_state", "reason"),
    *("bisecting", "ms_in_state", "ms_in_queue", "first_run", "body"),
)
"""The parameters of the statements, in the order of the fields of `SubmissionRow`, `RunRow` and `EntryRow`."""


class DecisionWithEntries(Struct, frozen=True):
    """A decision and its journal entries: one statement writes both."""

    decision: w.SaveDecision
    entries: tuple[w.EntryRow, ...]


def combine_writes(writes: Sequence[w.Write]) -> list[w.Write | DecisionWithEntries]:
    """Combines each decision with the journal entries of the same queue that follow it."""
    combined = list[w.Write | DecisionWithEntries]()
    for write in writes:
        last = combined[-1] if combined else None
        if isinstance(write, w.AppendEntries) and isinstance(last, w.SaveDecision) and _has_same_queue(write, last):
            combined[-1] = DecisionWithEntries(last, write.entries)
        else:
            combined.append(write)
    return combined


def _has_same_queue(entries: w.AppendEntries, decision: w.SaveDecision) -> bool:
    return all(entry.queue == decision.queue for entry in entries.entries)


async def perform_write(connection: Connection, write: w.Write | DecisionWithEntries) -> None:
    match write:
        case DecisionWithEntries():
            await _save_decision(connection, write.decision, write.entries)
        case w.SaveDecision():
            await _save_decision(connection, write, ())
        case w.AppendEntries():
            await fetch_rows(connection, "append_entries", **_to_columns(ENTRY_COLUMNS, write.entries))
        case w.AssertLease():
            await _assert_lease(connection, write)
        case w.SaveResponse():
            await _save_response(connection, write)
        case w.SaveStatus():
            await _save_status(connection, write)
        case w.SaveImpactedTargets():
            await fetch_rows(
                connection, "save_impacted_targets", **asdict(write), others=store.MAX_HEADS_WITH_IMPACTED_TARGETS - 1
            )
        case w.CreateQueue():
            await _create_queue(connection, write)
        case w.DeleteQueue():
            await _delete_queue(connection, write)
        case w.DeleteExpiredResponses():
            await fetch_rows(connection, "delete_expired_responses", **asdict(write))
        case w.SaveToken():
            await _save_token(connection, write.token)
        case w.RecordTokenUse():
            await fetch_rows(connection, "record_token_use", **asdict(write))
        case w.SaveSession():
            await _save_session(connection, write.session)
        case w.DeleteSession():
            await fetch_rows(connection, "delete_session", **asdict(write))
        case w.DeleteSsoSessions():
            await fetch_rows(connection, "delete_sso_sessions")
        case w.DeleteExpiredSessions():
            await fetch_rows(connection, "delete_expired_sessions", **asdict(write))
        case w.DeleteExpired():
            await _delete_expired(connection, write)
        case w.StartConsumer():
            await fetch_rows(connection, "start_consumer", consumer=write.consumer)
        case w.MoveCursor():
            await fetch_rows(connection, "move_cursor", consumer=write.consumer, queue=write.queue, seq=write.seq)
        case w.MarkStalled():
            await fetch_rows(connection, "mark_stalled", consumer=write.consumer, queue=write.queue, at=write.at)
        case w.ClearStalled():
            await fetch_rows(connection, "clear_stalled", consumer=write.consumer)
        case w.DeleteConsumer():
            await fetch_rows(connection, "delete_consumer", consumer=write.consumer)
        case w.SaveThreadState():
            await fetch_rows(connection, "save_thread_state", **asdict(write))
        case w.SaveWebhook():
            await _save_webhook(connection, write.webhook)
        case w.DeleteWebhook():
            await fetch_rows(connection, "delete_webhook", **asdict(write))
        case w.SaveDelivery():
            await fetch_rows(connection, "save_delivery", **asdict(write), kept=store.MAX_DELIVERIES_PER_WEBHOOK)
        case _:
            assert_never(write)


async def _save_decision(connection: Connection, decision: w.SaveDecision, entries: Iterable[w.EntryRow]) -> None:
    parts = {(part.kind, part.key): part.body for part in decision.parts}
    saved = [(*key, body) for key, body in parts.items() if body is not None]
    deleted = [key for key, body in parts.items() if body is None]
    submissions = {row.submission_id: row for row in decision.submissions}
    runs = {row.id: row for row in decision.runs}
    is_saved = await fetch_value(
        connection,
        "save_decision",
        queue=decision.queue,
        version=decision.version,
        oldest_version=decision.version - MAX_REMEMBERED_DECISIONS,
        part_kind=[kind for kind, _, _ in saved],
        part_key=[key for _, key, _ in saved],
        part_body=[body for _, _, body in saved],
        deleted_kind=[kind for kind, _ in deleted],
        deleted_key=[key for _, key in deleted],
        **_to_columns(SUBMISSION_COLUMNS, submissions.values()),
        **_to_columns(RUN_COLUMNS, runs.values()),
        **_to_columns([f"entry_{column}" for column in ENTRY_COLUMNS], entries),
    )
    if not is_saved:
        raise store.VersionConflict(
            f"Version {decision.version} of queue {decision.queue} does not follow the stored one."
        )


def _to_columns(names: Sequence[str], parts: Iterable[Struct]) -> dict[str, Sequence[Value]]:
    """The fields of all structs as one array per column, because one statement inserts many rows."""
    given = [astuple(part) for part in parts]
    return {name: [row[position] for row in given] for position, name in enumerate(names)}


async def _create_queue(connection: Connection, queue: w.CreateQueue) -> None:
    repo, branch = queue.key.repo, queue.key.branch
    if not await fetch_value(
        connection, "create_queue", **asdict(repo), id=queue.id, target_branch=branch, at=queue.at
    ):
        raise store.AlreadyExists(f"A queue for {queue.key} already exists.")


async def _delete_queue(connection: Connection, queue: w.DeleteQueue) -> None:
    if not await fetch_value(connection, "delete_queue", **asdict(queue)):
        raise store.VersionConflict(
            f"Queue {queue.id} does not exist any longer, or is not at version {queue.version}."
        )


async def _assert_lease(connection: Connection, lease: w.AssertLease) -> None:
    if not await fetch_value(
        connection, "assert_lease", **asdict(lease.repo), replica=lease.replica, fence=lease.fence
    ):
        raise store.LeaseLost(
            f"Replica {lease.replica} does not hold the lease of {lease.repo} with fence {lease.fence}."
        )


async def _save_status(connection: Connection, report: w.SaveStatus) -> None:
    values = {**asdict(report.repo), "sha": report.sha, **asdict(report.status), "token": report.token}
    await fetch_rows(connection, "save_status", **values)
    if report.token is not None:
        await fetch_rows(
            connection, "delete_oldest_unclaimed_statuses", token=report.token, kept=store.MAX_UNCLAIMED_STATUSES
        )


async def _delete_expired(connection: Connection, expired: w.DeleteExpired) -> None:
    match expired.kind:
        case w.RecordKind.SUBMISSIONS:
            await fetch_rows(connection, "delete_submissions", **_bind_keys(expired, "queue", "submission_id"))
        case w.RecordKind.RUNS:
            await fetch_rows(connection, "delete_runs", **_bind_keys(expired, "queue", "id"))
        case w.RecordKind.JOURNAL:
            await fetch_rows(connection, "delete_entries", **_bind_keys(expired, "seq"))
        case w.RecordKind.IMPACTED_TARGETS:
            uploads = _bind_keys(expired, "queue", "number", "head")
            await fetch_rows(connection, "delete_impacted_targets", **uploads, before=expired.before)
        case w.RecordKind.STATUSES:
            statuses = _bind_keys(expired, "host", "owner", "name", "sha", "context")
            await fetch_rows(connection, "delete_statuses", **statuses, before=expired.before)


def _bind_keys(expired: w.DeleteExpired, *names: str) -> dict[str, list[str | int]]:
    """The keys as one array per column, because one statement deletes many rows."""
    return {name: [key[position] for key in expired.keys] for position, name in enumerate(names)}


async def _save_response(connection: Connection, save: w.SaveResponse) -> None:
    if not await fetch_value(
        connection, "save_response", **asdict(save.response), unless_saved_since=save.unless_saved_since
    ):
        raise store.DuplicateRequest(
            f"Request {save.response.key} of token {save.response.token} already has a response."
        )


async def _save_token(connection: Connection, token: Token) -> None:
    scopes = msgspec.json.encode(sorted(token.scopes)).decode()
    repos = msgspec.json.encode(sorted(token.repos, key=Repo.__str__)).decode()
    await fetch_rows(connection, "save_token", **{**asdict(token), "scopes": scopes, "repos": repos})


async def _save_session(connection: Connection, session: Session) -> None:
    groups = msgspec.json.encode(sorted(session.groups)).decode()
    await fetch_rows(connection, "save_session", **{**asdict(session), "groups": groups})


async def _save_webhook(connection: Connection, webhook: w.WebhookRow) -> None:
    if webhook.version == 1:
        saved = await fetch_value(connection, "create_webhook", **asdict(webhook))
    else:
        saved = await fetch_value(connection, "update_webhook", **asdict(webhook))
    if not saved:
        raise store.VersionConflict(
            f"Version {webhook.version} of webhook {webhook.id} does not follow the stored one."
        )


MAX_ATTEMPTS = 5
RETRYABLE_ERRORS = (e.TransactionRollbackError, e.InvalidCachedStatementError)
"""A conflict with another transaction, or another replica migrated the schema. Nothing was written."""


class Committer:
    def __init__(self, lines: ConnectionPool) -> None:
        self._lines = lines
        self._running = set[asyncio.Task[None]]()

    async def commit(self, writes: Sequence[w.Write]) -> None:
        """Completes even if the caller is cancelled.

        If the connection is lost during the commit, the outcome is unknown. That raises `StoreUnavailable` too; the
        next decision of the queue learns the outcome from the version.
        """
        task = asyncio.create_task(self._write_with_retries(writes))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Waits for the running commits."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _write_with_retries(self, writes: Sequence[w.Write]) -> None:
        last_error = None
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._write(writes)
            except RETRYABLE_ERRORS as error:
                last_error = error
        raise store.StoreUnavailable(
            f"{self._lines.location} is too busy: {MAX_ATTEMPTS} attempts to commit "
            f"conflicted with other transactions. "
            "Look for long transactions on its server."
        ) from last_error

    async def _write(self, writes: Sequence[w.Write]) -> None:
        """A single statement is a transaction by itself and saves two round trips."""
        combined, locked = combine_writes(writes), _queues_to_lock(writes)
        if len(combined) == 1 and not locked:
            async with self._lines.acquire() as connection:
                await perform_write(connection, combined[0])
            return
        async with self._lines.acquire() as connection, connection.transaction():
            if locked:
                await fetch_rows(connection, "lock_queues", queues=locked)
            for write in combined:
                await perform_write(connection, write)


def _queues_to_lock(writes: Sequence[w.Write]) -> tuple[QueueId, ...]:
    """The queues whose rows must be locked before anything is written, in the order of locking.

    None when there is only one queue and its first write locks the row by itself.
    """
    touched = [queue for write in writes for queue in _queues_of(write)]
    first = next((write for write in writes if any(_queues_of(write))), None)
    if len(set(touched)) == 1 and not isinstance(first, w.AppendEntries):
        return ()
    return tuple(sorted(set(touched)))


def _queues_of(write: w.Write) -> Iterable[QueueId]:
    """The queues whose rows must be locked while this is written."""
    match write:
        case w.SaveDecision():
            return (write.queue,)
        case w.CreateQueue() | w.DeleteQueue():
            return (write.id,)
        case w.AppendEntries():
            return (entry.queue for entry in write.entries if entry.queue is not None)
        case w.DeleteExpired(kind=w.RecordKind.SUBMISSIONS | w.RecordKind.RUNS):
            return (QueueId(str(queue)) for queue, _ in write.keys)
        case w.DeleteExpired():
            return ()
        case (
            w.SaveImpactedTargets()
            | w.SaveStatus()
            | w.SaveResponse()
            | w.DeleteExpiredResponses()
            | w.AssertLease()
            | w.SaveToken()
        ):
            return ()
        case (
            w.RecordTokenUse() | w.SaveSession() | w.DeleteSession() | w.DeleteSsoSessions() | w.DeleteExpiredSessions()
        ):
            return ()
        case (
            w.StartConsumer()
            | w.MoveCursor()
            | w.MarkStalled()
            | w.ClearStalled()
            | w.DeleteConsumer()
            | w.SaveThreadState()
        ):
            return ()
        case w.SaveWebhook() | w.DeleteWebhook() | w.SaveDelivery():
            return ()
        case _:
            assert_never(write)
