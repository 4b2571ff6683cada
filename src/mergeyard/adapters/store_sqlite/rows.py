"""Makes values out of rows, in the order in which the queries name their columns."""

from functools import lru_cache

import msgspec

from mergeyard.adapters.store_sqlite.handles import Row
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.store import AuditedEntry, Figure, StoredEntry, StoredQueue, StoredRun
from mergeyard.ports.writes import Answer, Fact, WebhookRow

SCOPES = msgspec.json.Decoder(frozenset[Scope])
GROUPS = msgspec.json.Decoder(frozenset[str])
REPOS = msgspec.json.Decoder(frozenset[Repo])


def queue_of(row: Row) -> StoredQueue:
    queue, host, owner, name, branch, version = row
    return StoredQueue(queue, QueueKey(Repo(host, owner, name), branch), version)


def fact_of(row: Row) -> Fact:
    shelf, key, body = row
    return Fact(shelf, key, body)


def run_of(row: Row) -> StoredRun:
    decided_at, place, body = row
    return StoredRun(decided_at, place, body)


def entry_of(row: Row) -> StoredEntry:
    seq, queue, token, body = row
    return StoredEntry(seq, queue, token, body)


def figure_of(row: Row) -> Figure:
    queue, at, source, to, reason, bisecting, in_state, in_queue, first_run = row
    return Figure(queue, at, source, to, reason, bool(bisecting), in_state, in_queue, bool(first_run))


def audited_of(row: Row) -> AuditedEntry:
    seq, host, owner, name, branch, token, body = row
    key = None if host is None else QueueKey(Repo(host, owner, name), branch)
    return AuditedEntry(seq, key, token, body)


def session_of(row: Row) -> Session:
    digest, token, name, subject, groups, created_at, expires_at = row
    return Session(
        digest=digest,
        token=token,
        name=name,
        subject=subject,
        groups=GROUPS.decode(groups),
        created_at=created_at,
        expires_at=expires_at,
    )


def status_of(row: Row) -> Status:
    context, state, at, url, description, suite = row
    return Status(context=context, state=StatusState(state), at=at, url=url, description=description, suite=suite)


def answer_of(row: Row) -> Answer:
    token, key, digest, body, at = row
    return Answer(token, key, digest, body, at)


def webhook_of(row: Row) -> WebhookRow:
    webhook, version, body = row
    return WebhookRow(webhook, version, body)


@lru_cache(maxsize=256)
def token_of(row: Row) -> Token:
    """Remembered by all that the row says: whatever is changed in it makes another token."""
    token, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from = row
    return Token(
        id=token,
        name=name,
        digest=digest,
        scopes=SCOPES.decode(scopes),
        repos=REPOS.decode(repos),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        last_used_from=last_used_from,
    )
