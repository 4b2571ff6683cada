"""The audit log page: who changed what and when, with filters and an export."""

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import assert_never
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.journal import (
    SYSTEM_ACTOR,
    AdminAction,
    PullRequestChanged,
    PullRequestUpdated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    SignedIn,
)
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import DAY, Instant
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import EXPORT_CHUNK_ENTRIES, AuditLogEntry, AuditLogReader, decode_actor_name
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.repositories import Repositories
from mergeyard.service.views import render_entry, render_reason
from mergeyard.web.admin.fields import parse_topic
from mergeyard.web.formats import (
    PULL_REQUEST_STATE_LABELS,
    QUEUE_STATE_LABELS,
    format_iso_time,
    format_queue_name,
    format_reason,
    parse_integer,
)
from mergeyard.web.rendering import PageRequest

ENTRY_LABELS = {
    "PullRequestChanged": "Pull request changed",
    "PullRequestUpdated": "Pull request updated",
    "QueueCreated": "Queue created",
    "QueueChanged": "Queue changed",
    "QueueDeleted": "Queue deleted",
    "TokenCreated": "Token created",
    "TokenRevoked": "Token revoked",
    "WebhookCreated": "Webhook created",
    "WebhookChanged": "Webhook changed",
    "WebhookDeleted": "Webhook deleted",
    "WebhookTested": "Webhook tested",
    "EventResent": "Event resent",
    "SignedIn": "Signed in",
    "SsoSessionsEnded": "All single sign-on users signed out",
}


class AuditRow(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """The fields are the columns of the export, described in docs/operate/audit-log.md."""

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
    caused_by: str | None = None
    subject_id: str | None = None
    subject: str | None = None
    details: str = ""


class AuditLine(Struct, frozen=True, kw_only=True):
    """An entry as the page shows it."""

    audited: AuditLogEntry
    actor: str
    kind: str
    number: PullRequestNumber | None = None
    subject: str = ""
    """The token or webhook that was changed."""
    change: str = ""
    details: str = ""


def to_audit_line(audited: AuditLogEntry) -> AuditLine:
    record = audited.entry
    line = AuditLine(audited=audited, actor=decode_actor_name(record.actor), kind=ENTRY_LABELS[type(record).__name__])
    match record:
        case PullRequestChanged():
            before, after = PULL_REQUEST_STATE_LABELS.get(record.source or ""), PULL_REQUEST_STATE_LABELS[record.to]
            change = "Submitted" if before is None else f"{before} → {after}"
            return replace(line, number=record.number, change=change, details=render_entry(record))
        case PullRequestUpdated():
            change = format_reason(record.reason).capitalize()
            return replace(line, number=record.number, change=change, details=render_entry(record))
        case QueueChanged():
            before, after = QUEUE_STATE_LABELS[record.source], QUEUE_STATE_LABELS[record.to]
            same = "settings" if record.reason is Reason.SETTINGS_CHANGED else f"{after}, another reason"
            change = same if record.source is record.to else f"{before} → {after}"
            return replace(line, change=change, details=render_reason(record.reason, record.detail, actor=record.actor))
        case QueueCreated() | QueueDeleted() | SignedIn():
            return line
        case AdminAction():
            return replace(line, subject=record.name, details=record.detail)
        case _:
            assert_never(record)


def to_audit_row(audited: AuditLogEntry) -> AuditRow:
    record, key = audited.entry, audited.key
    entry = record if isinstance(record, PullRequestChanged | PullRequestUpdated | QueueChanged) else None
    causes = record.causes if isinstance(record, PullRequestChanged) else ()
    action = record if isinstance(record, AdminAction) else None
    return AuditRow(
        seq=audited.seq,
        time=format_iso_time(record.at),
        actor=decode_actor_name(record.actor),
        token=audited.token_id,
        kind=type(record).__name__,
        repository=None if key is None else str(key.repo),
        branch=None if key is None else key.branch,
        pull_request=record.number if isinstance(record, PullRequestChanged | PullRequestUpdated) else None,
        source=None if entry is None else _state_before(entry),
        to=None if entry is None else _state_after(entry),
        reason=None if entry is None else entry.reason,
        caused_by=" ".join(str(cause.number) for cause in causes) or None,
        subject_id=None if action is None else action.id,
        subject=None if action is None else action.name,
        details=action.detail if action is not None else "" if entry is None else entry.detail,
    )


def _state_before(entry: PullRequestChanged | PullRequestUpdated | QueueChanged) -> str | None:
    return entry.state if isinstance(entry, PullRequestUpdated) else entry.source


def _state_after(entry: PullRequestChanged | PullRequestUpdated | QueueChanged) -> str:
    return entry.state if isinstance(entry, PullRequestUpdated) else entry.to


MAX_INT64 = 2**63 - 1


class AuditFilter(Struct, frozen=True):
    """The fields are the query parameters of the page."""

    queue: str = ""
    number: str = ""
    actor: str = ""
    kind: str = ""
    since: str = ""
    until: str = ""
    automatic: str = ""
    """Not empty: the queue's own changes too."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "AuditFilter":
        return cls(*(query.get(name, "").strip() for name in cls.__struct_fields__))

    def to_audit_query(self, sites: Repositories, take: int, before: str = "") -> AuditQuery:
        topic = parse_topic(self.queue) if self.queue else None
        return AuditQuery(
            take=take,
            before=_parse_positive(before, "Follow the links from page to page") if before else None,
            repos=None if topic is None else (_canonicalize_repo(topic.repo, sites),),
            branch=None if topic is None else topic.branch,
            number=PullRequestNumber(_parse_positive(self.number, "Write the number of a pull request, such as 12"))
            if self.number
            else None,
            actor=self.actor or None,
            # A user who filters by an actor wants that actor, also if it is the queue itself.
            without_actor=None if self.automatic or self.actor else SYSTEM_ACTOR,
            kind=_parse_kind(self.kind) if self.kind else None,
            since=_parse_day(self.since) if self.since else None,
            until=Instant(_parse_day(self.until) + DAY) if self.until else None,
        )

    def to_query_string(self, **more: str) -> str:
        """The query string of the filter, without the question mark."""
        parameters = {name: getattr(self, name) for name in self.__struct_fields__} | more
        return urlencode({name: value for name, value in parameters.items() if value})

    def __bool__(self) -> bool:
        return self != AuditFilter()


def _canonicalize_repo(repo: Repo, sites: Repositories) -> Repo:
    """A host that is no longer configured is kept as typed: the journal still has its entries."""
    return sites.canonical_repo(repo) if repo.host in sites.hosts else repo


def _parse_positive(text: str, advice: str) -> int:
    number = parse_integer(text, 1, MAX_INT64)
    if number is None:
        raise RequestRefused(Code.INVALID_REQUEST, f"“{text[:100]}” is not a valid number. {advice}.")
    return number


def _parse_kind(text: str) -> str:
    if text not in ENTRY_LABELS:
        raise RequestRefused(Code.INVALID_REQUEST, "This kind of entry does not exist. Choose one from the list.")
    return text


def _parse_day(text: str) -> Instant:
    """Midnight UTC of the day."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise RequestRefused(Code.INVALID_REQUEST, f"“{text[:100]}” is not a date. Write it as 2026-11-15.") from None
    return Instant(int(day.timestamp()) * 1000)


AUDIT_URL = "/administration/audit"
ENTRIES_PER_PAGE = 50


async def show(page: PageRequest) -> Response:
    filter_, error, entries, next_before = AuditFilter.from_query(page.query), "", list[AuditLogEntry](), None
    try:
        query = filter_.to_audit_query(page.service.repositories, ENTRIES_PER_PAGE, page.query.get("before", ""))
        entries, next_before = await AuditLogReader(page.service.store).read_page(page.user.token, query)
    except RequestRefused as refused:
        error = refused.detail
    older = "" if next_before is None else filter_.to_query_string(before=str(next_before))
    queue_actors = await page.service.registry.list_visible(page.user.token)
    return page.render_form(
        "admin/audit.html",
        error,
        filter=filter_,
        lines=[to_audit_line(entry) for entry in entries],
        older_url=f"{AUDIT_URL}?{older}" if older else None,
        automatic_url=f"{AUDIT_URL}?{replace(filter_, automatic='1').to_query_string()}",
        newest_url=f"{AUDIT_URL}?{filter_.to_query_string()}" if "before" in page.query else None,
        error=error,
        kinds=ENTRY_LABELS,
        queues=sorted(format_queue_name(queue_actor.key) for queue_actor in queue_actors),
    )


FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001
"""Spreadsheets evaluate a cell that starts with one of these characters (CSV injection)."""
encode_json_lines = msgspec.json.Encoder().encode_lines


async def export_csv(page: PageRequest) -> Response:
    return _export(page, "csv", "text/csv; charset=utf-8", encode_csv_rows, encode_csv_header())


async def export_json_lines(page: PageRequest) -> Response:
    return _export(page, "jsonl", "application/jsonl", encode_json_lines, b"")


def _export(
    page: PageRequest,
    extension: str,
    media_type: str,
    encode: Callable[[Iterable[AuditRow]], bytes],
    header: bytes,
) -> Response:
    filter_ = AuditFilter.from_query(page.query)
    query = filter_.to_audit_query(page.service.repositories, EXPORT_CHUNK_ENTRIES)
    day = format_iso_time(page.service.clock.now())[:10]
    disposition = f'attachment; filename="mergeyard-audit-{day}.{extension}"'
    chunks = AuditLogReader(page.service.store).iterate_chunks(page.user.token, query)
    contents = _encode_chunks(chunks, encode, header)
    return StreamingResponse(contents, media_type=media_type, headers={"content-disposition": disposition})


async def _encode_chunks(
    chunks: AsyncIterator[list[AuditLogEntry]],
    encode: Callable[[Iterable[AuditRow]], bytes],
    header: bytes,
) -> AsyncIterator[bytes]:
    yield header
    async for chunk in chunks:
        yield encode([to_audit_row(entry) for entry in chunk])


def encode_csv_header() -> bytes:
    return _encode_csv([AuditRow.__struct_encode_fields__])


def encode_csv_rows(rows: Iterable[AuditRow]) -> bytes:
    return _encode_csv([escape_formula(value) for value in msgspec.structs.astuple(row)] for row in rows)


def escape_formula(value: object) -> object:
    """Prefixes text that a spreadsheet would evaluate as a formula with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA_STARTS else value


def _encode_csv(lines: Iterable[Iterable[object]]) -> bytes:
    buffer = StringIO()
    csv.writer(buffer).writerows(lines)
    return buffer.getvalue().encode()
