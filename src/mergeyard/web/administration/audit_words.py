"""Puts an entry of the journal into words: one line for people, one row for programs."""

from typing import assert_never

from msgspec import Struct

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import Deed, PrChanged, QueueChanged, QueueCreated, QueueDeleted, SignedIn
from mergeyard.domain.repositories import QueueKey
from mergeyard.service.auditing import Audited
from mergeyard.service.journaling import name_of
from mergeyard.service.views import sentence
from mergeyard.web import words

KINDS = {
    "PrChanged": "Pull request changed",
    "QueueCreated": "Queue created",
    "QueueChanged": "Queue changed",
    "QueueDeleted": "Queue deleted",
    "TokenCreated": "Token created",
    "TokenRevoked": "Token revoked",
    "WebhookCreated": "Webhook created",
    "WebhookChanged": "Webhook changed",
    "WebhookDeleted": "Webhook deleted",
    "WebhookTested": "Webhook tested",
    "EventResent": "Event sent again",
    "SignedIn": "Signed in",
    "SignedOut": "Everybody signed out",
}


class Line(Struct, frozen=True, kw_only=True):
    seq: int
    at: Instant
    actor: str
    token: str | None
    kind: str
    key: QueueKey | None
    number: PrNumber | None = None
    subject: str = ""
    """What it was done to, where that is no queue."""
    change: str = ""
    details: str = ""


class Row(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """Its members are the columns."""

    seq: int
    time: str
    actor: str
    token: str | None
    kind: str
    repository: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    source: str | None = None
    to: str | None = None
    reason: str | None = None
    subject_id: str | None = None
    subject: str | None = None
    details: str = ""


def line_of(audited: Audited) -> Line:
    record = audited.record
    number, subject, change, details = None, "", "", ""
    match record:
        case PrChanged():
            number = record.number
            change = _from_to(words.PR_STATES.get(record.source or ""), words.PR_STATES[record.to])
            details = sentence(record.reason, record.words, upon=record.upon)
        case QueueChanged():
            changed = record.source is not record.to
            change = (
                _from_to(words.QUEUE_STATES[record.source], words.QUEUE_STATES[record.to]) if changed else "settings"
            )
            details = sentence(record.reason, record.words)
        case QueueCreated() | QueueDeleted() | SignedIn():
            pass
        case Deed():
            subject, details = record.name, record.words
        case _:
            assert_never(record)
    return Line(
        seq=audited.seq,
        at=record.at,
        actor=name_of(record.actor),
        token=audited.token,
        kind=KINDS[type(record).__name__],
        key=audited.key,
        number=number,
        subject=subject,
        change=change,
        details=details,
    )


def row_of(audited: Audited) -> Row:
    record, key = audited.record, audited.key
    entry = record if isinstance(record, PrChanged | QueueChanged) else None
    deed = record if isinstance(record, Deed) else None
    return Row(
        seq=audited.seq,
        time=words.clock(record.at),
        actor=name_of(record.actor),
        token=audited.token,
        kind=type(record).__name__,
        repository=None if key is None else str(key.repo),
        branch=None if key is None else key.branch,
        pull_request=record.number if isinstance(record, PrChanged) else None,
        source=None if entry is None else entry.source,
        to=None if entry is None else entry.to,
        reason=None if entry is None else entry.reason,
        subject_id=None if deed is None else deed.id,
        subject=None if deed is None else deed.name,
        details=deed.words if deed is not None else "" if entry is None else entry.words,
    )


def _from_to(before: str | None, after: str) -> str:
    return after if before is None else f"{before} → {after}"
