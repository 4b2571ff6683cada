"""Decodes rows into values. Each function expects the columns in the order in which the queries select them."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from mergeyard.adapters.store_sqlite import connection
from mergeyard.domain.access import Scope, Session, Token
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.ports.store import AuditedEntry, LoadedQueue, StoredEntry, StoredQueue, StoredRun, TransitionRow
from mergeyard.ports.writes import QueuePart, StoredResponse, WebhookRow

SCOPES_DECODER = msgspec.json.Decoder(frozenset[Scope])
GROUPS_DECODER = msgspec.json.Decoder(frozenset[str])
REPOS_DECODER = msgspec.json.Decoder(frozenset[Repo])


def decode_queue(row: connection.Row) -> StoredQueue:
    queue, host, owner, name, target_branch, version = row
    return StoredQueue(queue, QueueKey(Repo(host, owner, name), target_branch), version)


def decode_queue_part(row: connection.Row) -> QueuePart:
    kind, key, body = row
    return QueuePart(kind, key, body)


def decode_run(row: connection.Row) -> StoredRun:
    decided_at, row_id, body = row
    return StoredRun(decided_at, row_id, body)


def decode_entry(row: connection.Row) -> StoredEntry:
    seq, queue, token, body = row
    return StoredEntry(seq, queue, token, body)


def decode_transition(row: connection.Row) -> TransitionRow:
    queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run = row
    return TransitionRow(
        queue, at, from_state, to_state, reason, bool(bisecting), ms_in_state, ms_in_queue, bool(first_run)
    )


def decode_audited_entry(row: connection.Row) -> AuditedEntry:
    seq, host, owner, name, target_branch, token, body = row
    key = None if host is None else QueueKey(Repo(host, owner, name), target_branch)
    return AuditedEntry(seq, key, token, body)


def decode_session(row: connection.Row) -> Session:
    digest, token, name, subject, groups, created_at, expires_at = row
    return Session(
        digest=digest,
        token=token,
        name=name,
        subject=subject,
        groups=GROUPS_DECODER.decode(groups),
        created_at=created_at,
        expires_at=expires_at,
    )


def decode_status(row: connection.Row) -> Status:
    context, state, at, url, description, suite = row
    return Status(context=context, state=StatusState(state), at=at, url=url, description=description, suite=suite)


def decode_response(row: connection.Row) -> StoredResponse:
    token, key, digest, body, at = row
    return StoredResponse(token, key, digest, body, at)


def decode_webhook(row: connection.Row) -> WebhookRow:
    webhook, version, body = row
    return WebhookRow(webhook, version, body)


@lru_cache(maxsize=256)
def decode_token(row: connection.Row) -> Token:
    """Cached by the whole row, so a changed row gives a new token."""
    token, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from = row
    return Token(
        id=token,
        name=name,
        digest=digest,
        scopes=SCOPES_DECODER.decode(scopes),
        repos=REPOS_DECODER.decode(repos),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        last_used_from=last_used_from,
    )


class Reader:
    def __init__(self, path: Path, condition: connection.CorruptionState) -> None:
        self._condition = condition
        self._connection = connection.open_for_reading(path)
        self._cursor = self._connection.cursor()

    def close(self) -> None:
        self._connection.close()

    def fetch_rows(self, query: str, **values: connection.Value) -> list[connection.Row]:
        """Fetches all rows at once: a query that is not read to its end would hold its snapshot open."""
        try:
            return self._cursor.execute(connection.SQL[query], values).fetchall()
        except connection.DATABASE_ERRORS as error:
            raise self._condition.translate_error(error) from error

    def fetch_row(self, query: str, **values: connection.Value) -> connection.Row | None:
        found = self.fetch_rows(query, **values)
        return found[0] if found else None

    def fetch_value(self, query: str, **values: connection.Value) -> Any:
        found = self.fetch_rows(query, **values)
        return found[0][0] if found else None

    def fetch_bodies(self, query: str, **values: connection.Value) -> tuple[bytes, ...]:
        return tuple(body for (body,) in self.fetch_rows(query, **values))

    def load(self, queue: QueueId) -> LoadedQueue:
        self.fetch_rows("begin_reading")
        try:
            version = self.fetch_value("version", queue=queue)
            if version is None:
                raise LookupError(f"There is no queue {queue}.")
            return LoadedQueue(
                version=version,
                parts=tuple(map(decode_queue_part, self.fetch_rows("queue_parts", queue=queue))),
                submissions=self.fetch_bodies("live_submissions", queue=queue),
                runs=self.fetch_bodies("live_runs", queue=queue),
            )
        finally:
            self.fetch_rows("commit")
