"""Decodes rows into values. Each function expects the columns in the order in which the queries select them."""

from collections import defaultdict
from functools import lru_cache
from typing import Any

import msgspec

from mergeyard.adapters.store_postgres.connection import (
    ConnectionPool,
    Row,
    Value,
    decode_text,
    fetch_bodies,
    fetch_row,
    fetch_rows,
    fetch_value,
)
from mergeyard.adapters.store_postgres.writes import MAX_REMEMBERED_DECISIONS
from mergeyard.domain.access import Scope, Session, Token
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.ports import store
from mergeyard.ports.writes import QueuePart, RecordKey, StoredResponse, WebhookRow

SCOPES_DECODER = msgspec.json.Decoder(frozenset[Scope])
GROUPS_DECODER = msgspec.json.Decoder(frozenset[str])
REPOS_DECODER = msgspec.json.Decoder(frozenset[Repo])


def decode_queue(row: Row) -> store.StoredQueue:
    queue, host, owner, name, target_branch, version = row
    return store.StoredQueue(queue, QueueKey(_decode_repo((host, owner, name)), decode_text(target_branch)), version)


def _decode_repo(row: Row) -> Repo:
    host, owner, name = map(decode_text, row)
    return Repo(host, owner, name)


def decode_queue_part(row: Row) -> QueuePart:
    kind, key, body = row
    return QueuePart(decode_text(kind), decode_text(key), body)


def decode_run(row: Row) -> store.StoredRun:
    decided_at, row_id, body = row
    return store.StoredRun(decided_at, row_id, body)


def decode_record_key(row: Row) -> RecordKey:
    return tuple(decode_text(cell) if isinstance(cell, str) else cell for cell in row)


def decode_entry(row: Row) -> store.StoredEntry:
    seq, queue, token, body = row
    return store.StoredEntry(seq, queue, token, body)


def decode_transition(row: Row) -> store.TransitionRow:
    queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run = row
    return store.TransitionRow(queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run)


def decode_audited_entry(row: Row) -> store.AuditedEntry:
    seq, host, owner, name, target_branch, token, body = row
    key = None if host is None else QueueKey(_decode_repo((host, owner, name)), decode_text(target_branch))
    return store.AuditedEntry(seq, key, token, body)


def decode_session(row: Row) -> Session:
    digest, token, name, subject, groups, created_at, expires_at = row
    return Session(
        digest=digest,
        token=token,
        name=decode_text(name),
        subject=decode_text(subject),
        groups=GROUPS_DECODER.decode(groups),
        created_at=created_at,
        expires_at=expires_at,
    )


def decode_status(row: Row) -> Status:
    context, state, at, url, description, suite = row
    return Status(
        context=decode_text(context),
        state=StatusState(state),
        at=at,
        url=decode_text(url),
        description=decode_text(description),
        suite=decode_text(suite),
    )


def decode_response(row: Row) -> StoredResponse:
    token, key, digest, body, at = row
    return StoredResponse(decode_text(token), decode_text(key), digest, body, at)


def decode_webhook(row: Row) -> WebhookRow:
    webhook, version, body = row
    return WebhookRow(decode_text(webhook), version, body)


def decode_lease(row: Row) -> store.Lease:
    *repo, fence = row
    return store.Lease(_decode_repo(tuple(repo)), fence)


@lru_cache(maxsize=256)
def decode_token(row: Row) -> Token:
    """Cached by the whole row, so a changed row gives a new token."""
    token, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from = row
    return Token(
        id=decode_text(token),
        name=decode_text(name),
        digest=digest,
        scopes=SCOPES_DECODER.decode(scopes),
        repos=REPOS_DECODER.decode(repos),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        last_used_from=decode_text(last_used_from),
    )


class Reader:
    def __init__(self, lines: ConnectionPool) -> None:
        self._lines = lines

    async def fetch_rows(self, query: str, /, **values: Value) -> list[Row]:
        async with self._lines.acquire() as connection:
            return await fetch_rows(connection, query, **values)

    async def fetch_row(self, query: str, /, **values: Value) -> Row | None:
        async with self._lines.acquire() as connection:
            return await fetch_row(connection, query, **values)

    async def fetch_value(self, query: str, /, **values: Value) -> Any:
        async with self._lines.acquire() as connection:
            return await fetch_value(connection, query, **values)

    async def fetch_bodies(self, query: str, /, **values: Value) -> tuple[bytes, ...]:
        async with self._lines.acquire() as connection:
            return await fetch_bodies(connection, query, **values)

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        async with self._lines.acquire_snapshot() as connection:
            version = await fetch_value(connection, "version", queue=queue)
            if version is None:
                raise LookupError(f"There is no queue {queue}.")
            return store.LoadedQueue(
                version=version,
                parts=tuple(map(decode_queue_part, await fetch_rows(connection, "queue_parts", queue=queue))),
                submissions=await fetch_bodies(connection, "live_submissions", queue=queue),
                runs=await fetch_bodies(connection, "live_runs", queue=queue),
            )

    async def changes(self, queue: QueueId, after: int) -> store.QueueChanges | None:
        found = defaultdict[str, list[Row]](list)
        for row_kind, *row in await self.fetch_rows("changes", queue=queue, after=after):
            found[row_kind].append(tuple(row))
        version, _, _, deleted_up_to, *_ = found["queue"][0] if found["queue"] else (None, None, None, 0)
        if version is None or not max(version - MAX_REMEMBERED_DECISIONS, deleted_up_to) <= after <= version:
            return None
        return store.QueueChanges(
            version=version,
            parts=tuple(decode_queue_part((kind, key, body)) for _, kind, key, *_, body in found["part"]),
            submissions=tuple(store.ChangedRow(live, body) for *_, live, body in found["submission"]),
            runs=tuple(store.ChangedRow(live, body) for *_, live, body in found["run"]),
        )
