"""Makes values out of rows, in the order in which the queries name their columns."""

from functools import lru_cache

import msgspec

from mergeyard.adapters.store_postgres.handles import Row
from mergeyard.adapters.store_postgres.text import restored
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import AuditedEntry, Figure, StoredEntry, StoredQueue, StoredRun
from mergeyard.ports.writes import Answer, Fact, RecordKey, WebhookRow

SCOPES = msgspec.json.Decoder(frozenset[Scope])
GROUPS = msgspec.json.Decoder(frozenset[str])
REPOS = msgspec.json.Decoder(frozenset[Repo])


def queue_of(row: Row) -> StoredQueue:
    queue, host, owner, name, branch, version = row
    return StoredQueue(queue, QueueKey(repo_of((host, owner, name)), restored(branch)), version)


def repo_of(row: Row) -> Repo:
    host, owner, name = map(restored, row)
    return Repo(host, owner, name)


def fact_of(row: Row) -> Fact:
    shelf, key, body = row
    return Fact(restored(shelf), restored(key), body)


def run_of(row: Row) -> StoredRun:
    decided_at, place, body = row
    return StoredRun(decided_at, place, body)


def key_of(row: Row) -> RecordKey:
    return tuple(restored(cell) if isinstance(cell, str) else cell for cell in row)


def entry_of(row: Row) -> StoredEntry:
    seq, queue, token, body = row
    return StoredEntry(seq, queue, token, body)


def figure_of(row: Row) -> Figure:
    queue, at, source, to, reason, bisecting, in_state, in_queue, first_run = row
    return Figure(queue, at, source, to, reason, bisecting, in_state, in_queue, first_run)


def audited_of(row: Row) -> AuditedEntry:
    seq, host, owner, name, branch, token, body = row
    key = None if host is None else QueueKey(repo_of((host, owner, name)), restored(branch))
    return AuditedEntry(seq, key, token, body)


def session_of(row: Row) -> Session:
    digest, token, name, subject, groups, created_at, expires_at = row
    return Session(
        digest=digest,
        token=token,
        name=restored(name),
        subject=restored(subject),
        groups=GROUPS.decode(groups),
        created_at=created_at,
        expires_at=expires_at,
    )


def status_of(row: Row) -> Status:
    context, state, at, url, description, suite = row
    return Status(
        context=restored(context),
        state=StatusState(state),
        at=at,
        url=restored(url),
        description=restored(description),
        suite=restored(suite),
    )


def answer_of(row: Row) -> Answer:
    token, key, digest, body, at = row
    return Answer(restored(token), restored(key), digest, body, at)


def webhook_of(row: Row) -> WebhookRow:
    webhook, version, body = row
    return WebhookRow(restored(webhook), version, body)


def duty_of(row: Row) -> Duty:
    *repo, fence = row
    return Duty(repo_of(tuple(repo)), fence)


@lru_cache(maxsize=256)
def token_of(row: Row) -> Token:
    """Remembered by all that the row says: whatever is changed in it makes another token."""
    token, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from = row
    return Token(
        id=restored(token),
        name=restored(name),
        digest=digest,
        scopes=SCOPES.decode(scopes),
        repos=REPOS.decode(repos),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
        last_used_from=restored(last_used_from),
    )
