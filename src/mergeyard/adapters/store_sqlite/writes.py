"""Performs each kind of write. The caller holds the transaction."""

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple

from mergeyard.adapters.store_sqlite.connection import SQL, Cursor, Value
from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import Repo
from mergeyard.ports import store, writes

SUBMISSION_COLUMNS = ("submission_id", "number", "head_branch", "state", "submitted_at", "ended_at", "live", "body")
RUN_COLUMNS = ("id", "status", "tested_count", "tip", "started_at", "decided_at", "ended_at", "live", "body")
ENTRY_COLUMNS = (
    *("queue", "at", "kind", "actor", "token", "submission_id", "number", "from_state", "to_state", "reason"),
    *("bisecting", "ms_in_state", "ms_in_queue", "first_run", "body"),
)
"""The columns of the tables, in the order of the fields of `SubmissionRow`, `RunRow` and `EntryRow`."""


class WriteProbe(Struct, frozen=True):
    """Changes nothing that is read. Verifies that the database accepts writes."""


def perform_write(cursor: Cursor, write: writes.Write | WriteProbe) -> None:
    match write:
        case writes.SaveDecision():
            _save_decision(cursor, write)
        case writes.AppendEntries():
            cursor.executemany(SQL["append_entry"], [_bind(ENTRY_COLUMNS, entry) for entry in write.entries])
        case writes.SaveResponse():
            _save_response(cursor, write)
        case writes.SaveStatus():
            _save_status(cursor, write)
        case writes.SaveImpactedTargets():
            cursor.execute(SQL["save_impacted_targets"], asdict(write))
            cursor.execute(
                SQL["delete_targets_of_older_heads"],
                {
                    "queue": write.queue,
                    "number": write.number,
                    "head": write.head,
                    "others": store.MAX_HEADS_WITH_IMPACTED_TARGETS - 1,
                },
            )
        case writes.CreateQueue():
            _create_queue(cursor, write)
        case writes.DeleteQueue():
            _delete_queue(cursor, write)
        case writes.DeleteExpiredResponses():
            cursor.execute(SQL["delete_expired_responses"], asdict(write))
        case writes.AssertLease():
            pass  # The only server of this file holds the leases of all its repositories, and cannot lose them.
        case writes.SaveToken():
            _save_token(cursor, write.token)
        case writes.RecordTokenUse():
            cursor.execute(SQL["record_token_use"], asdict(write))
        case writes.SaveSession():
            _save_session(cursor, write.session)
        case writes.DeleteSession():
            cursor.execute(SQL["delete_session"], asdict(write))
        case writes.DeleteSsoSessions():
            cursor.execute(SQL["delete_sso_sessions"])
        case writes.DeleteExpiredSessions():
            cursor.execute(SQL["delete_expired_sessions"], asdict(write))
        case writes.DeleteExpired():
            _delete_expired(cursor, write)
        case writes.StartConsumer():
            _start_consumer(cursor, write)
        case writes.MoveCursor():
            cursor.execute(SQL["move_cursor"], {"consumer": write.consumer, "queue": write.queue, "seq": write.seq})
        case writes.MarkStalled():
            cursor.execute(SQL["mark_stalled"], {"consumer": write.consumer, "queue": write.queue, "at": write.at})
        case writes.ClearStalled():
            cursor.execute(SQL["clear_stalled"], {"consumer": write.consumer})
        case writes.DeleteConsumer():
            cursor.execute(SQL["delete_consumer"], {"consumer": write.consumer})
            cursor.execute(SQL["delete_cursors"], {"consumer": write.consumer})
        case writes.SaveThreadState():
            cursor.execute(SQL["save_thread_state"], asdict(write))
        case writes.SaveWebhook():
            _save_webhook(cursor, write.webhook)
        case writes.DeleteWebhook():
            cursor.execute(SQL["delete_webhook"], asdict(write))
        case writes.SaveDelivery():
            cursor.execute(SQL["save_delivery"], asdict(write))
            cursor.execute(
                SQL["delete_old_deliveries"], {"webhook": write.webhook, "kept": store.MAX_DELIVERIES_PER_WEBHOOK}
            )
        case WriteProbe():
            cursor.execute(SQL["probe_write"])
        case _:
            assert_never(write)


def _bind(columns: Sequence[str], row: Struct) -> dict[str, Value]:
    """The fields of a struct as values of these columns, in the same order."""
    return dict(zip(columns, astuple(row), strict=True))


def _save_decision(cursor: Cursor, decision: writes.SaveDecision) -> None:
    queue = {"queue": decision.queue}
    cursor.execute(SQL["advance_version"], {**queue, "version": decision.version})
    if not cursor.connection.changes():
        raise store.VersionConflict(
            f"Version {decision.version} of queue {decision.queue} does not follow the stored one."
        )
    for part in decision.parts:
        values = {**queue, "kind": part.kind, "key": part.key, "body": part.body}
        cursor.execute(SQL["delete_queue_part" if part.body is None else "save_queue_part"], values)
    for submission in decision.submissions:
        values = {**queue, **_bind(SUBMISSION_COLUMNS, submission)}
        cursor.execute(SQL["save_submission"], values)
        if not cursor.connection.changes():
            cursor.execute(SQL["move_submission"], values)
    for run in decision.runs:
        cursor.execute(SQL["save_run"], {**queue, **_bind(RUN_COLUMNS, run)})


def _create_queue(cursor: Cursor, queue: writes.CreateQueue) -> None:
    repo, branch = queue.key.repo, queue.key.branch
    cursor.execute(SQL["create_queue"], {**asdict(repo), "id": queue.id, "target_branch": branch, "at": queue.at})
    if not cursor.connection.changes():
        raise store.AlreadyExists(f"A queue for {queue.key} already exists.")


def _delete_queue(cursor: Cursor, queue: writes.DeleteQueue) -> None:
    cursor.execute(SQL["delete_queue"], asdict(queue))
    if not cursor.connection.changes():
        raise store.VersionConflict(
            f"Queue {queue.id} does not exist any longer, or is not at version {queue.version}."
        )
    cursor.execute(SQL["delete_parts_of_queue"], {"id": queue.id})
    cursor.execute(SQL["delete_impacted_targets_of_queue"], {"id": queue.id})


def _save_status(cursor: Cursor, report: writes.SaveStatus) -> None:
    values = {**asdict(report.repo), "sha": report.sha, **asdict(report.status), "token": report.token}
    cursor.execute(SQL["save_status"], values)
    if report.token is not None:
        cursor.execute(
            SQL["delete_oldest_unclaimed_statuses"], {"token": report.token, "kept": store.MAX_UNCLAIMED_STATUSES}
        )


def _delete_expired(cursor: Cursor, expired: writes.DeleteExpired) -> None:
    match expired.kind:
        case writes.RecordKind.SUBMISSIONS:
            cursor.executemany(SQL["delete_submission"], _bind_keys(expired, "queue", "submission_id"))
        case writes.RecordKind.RUNS:
            runs = _bind_keys(expired, "queue", "id")
            cursor.executemany(SQL["record_deleted_run"], runs)
            cursor.executemany(SQL["delete_statuses_of_run"], runs)
            cursor.executemany(SQL["delete_run"], runs)
        case writes.RecordKind.JOURNAL:
            cursor.executemany(SQL["delete_entry"], _bind_keys(expired, "seq"))
        case writes.RecordKind.IMPACTED_TARGETS:
            uploads = [{**key, "before": expired.before} for key in _bind_keys(expired, "queue", "number", "head")]
            cursor.executemany(SQL["delete_impacted_targets"], uploads)
        case writes.RecordKind.STATUSES:
            statuses = _bind_keys(expired, "host", "owner", "name", "sha", "context")
            cursor.executemany(SQL["claim_status"], statuses)
            cursor.executemany(SQL["delete_status"], [{**key, "before": expired.before} for key in statuses])


def _bind_keys(expired: writes.DeleteExpired, *columns: str) -> list[dict[str, str | int]]:
    return [dict(zip(columns, key, strict=True)) for key in expired.keys]


def _save_response(cursor: Cursor, save: writes.SaveResponse) -> None:
    cursor.execute(SQL["save_response"], {**asdict(save.response), "unless_saved_since": save.unless_saved_since})
    if not cursor.connection.changes():
        raise store.DuplicateRequest(
            f"Request {save.response.key} of token {save.response.token} already has a response."
        )


def _save_token(cursor: Cursor, token: Token) -> None:
    scopes = msgspec.json.encode(sorted(token.scopes)).decode()
    repos = msgspec.json.encode(sorted(token.repos, key=Repo.__str__)).decode()
    cursor.execute(SQL["save_token"], {**asdict(token), "scopes": scopes, "repos": repos})


def _save_session(cursor: Cursor, session: Session) -> None:
    groups = msgspec.json.encode(sorted(session.groups)).decode()
    cursor.execute(SQL["save_session"], {**asdict(session), "groups": groups})


def _start_consumer(cursor: Cursor, start: writes.StartConsumer) -> None:
    values = {"consumer": start.consumer}
    cursor.execute(SQL["start_consumer"], values)
    if cursor.connection.changes():
        cursor.execute(SQL["start_at_end"], values)


def _save_webhook(cursor: Cursor, webhook: writes.WebhookRow) -> None:
    cursor.execute(SQL["create_webhook" if webhook.version == 1 else "update_webhook"], asdict(webhook))
    if not cursor.connection.changes():
        raise store.VersionConflict(
            f"Version {webhook.version} of webhook {webhook.id} does not follow the stored one."
        )
