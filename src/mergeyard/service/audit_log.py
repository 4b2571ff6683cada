"""The journal as audit log: building its rows, reading them, and logging what operators must know."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from enum import StrEnum
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import journal
from mergeyard.domain.access import Token
from mergeyard.domain.ids import QueueId, QueueKey, RunId, SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState, Reason
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import AuditQuery, Store
from mergeyard.ports.writes import AppendEntries, EntryRow
from mergeyard.service.background import Background
from mergeyard.service.metrics import REFUSED_REQUESTS
from mergeyard.service.persistence import encode

ACTOR_TOKEN_SEPARATOR = "#"
"""Between the name and the id of a token in an actor, as in `ci#4f1c`. No token name contains it."""


def encode_actor(token: Token | None) -> str:
    """Without a token the actor is the operator, who runs commands on the machine itself."""
    return journal.OPERATOR_ACTOR if token is None else f"{token.name}{ACTOR_TOKEN_SEPARATOR}{token.id}"


def decode_actor_name(actor: str) -> str:
    return actor.partition(ACTOR_TOKEN_SEPARATOR)[0]


def build_row(queue: QueueId | None, entry: journal.JournalEntry, **columns: Any) -> EntryRow:
    if isinstance(entry, journal.PullRequestChanged | journal.QueueChanged):
        columns |= {"source": entry.source, "to": entry.to, "reason": entry.reason}
    if isinstance(entry, journal.PullRequestUpdated):
        columns |= {"source": entry.state, "to": entry.state, "reason": entry.reason}
        columns |= {"submission_id": entry.submission_id, "number": entry.number}
    name, _, token_id = entry.actor.partition(ACTOR_TOKEN_SEPARATOR)
    return EntryRow(
        queue=queue,
        at=entry.at,
        kind=type(entry).__name__,
        actor=name,
        token=token_id or None,
        body=encode(entry),
        **columns,
    )


def audit_entry(action: journal.AdminEntry) -> AppendEntries:
    """The journal entry of an administrative action. Commit it with the action, so that none goes unrecorded."""
    return AppendEntries((build_row(None, action),))


def build_decision_rows(before: Queue, decision: Decision) -> tuple[EntryRow, ...]:
    bisected, rows = set(before.bisected_submission_ids), list[EntryRow]()
    clocks = dict[SubmissionId, SubmissionClock]()
    for entry in decision.journal:
        if not isinstance(entry, journal.PullRequestChanged):
            rows.append(build_row(before.id, entry))
            continue
        clock = clocks.setdefault(entry.submission_id, SubmissionClock(before.submissions.get(entry.submission_id)))
        row = build_row(
            before.id,
            entry,
            submission_id=entry.submission_id,
            number=entry.number,
            bisecting=entry.submission_id in bisected or _is_bisection_run((before, decision.queue), entry.run),
            ms_in_state=_elapsed_ms(clock.state_since, entry.at),
            ms_in_queue=_elapsed_ms(clock.admitted_at, entry.at),
            first_run=entry.to is PullRequestState.TESTING and not clock.was_in_run,
        )
        rows.append(row)
        clock.advance(entry)
    return tuple(rows)


class SubmissionClock:
    """Since when a submission has been in its state and in the queue. One decision can make several entries about it,
    so the times are advanced entry by entry."""

    def __init__(self, submission: Submission | None) -> None:
        self.state_since = None if submission is None else submission.state_changed_at
        self.admitted_at = None if submission is None else submission.admitted_at
        self.was_in_run = submission is not None and submission.was_in_run

    def advance(self, entry: journal.PullRequestChanged) -> None:
        self.state_since = entry.at
        if entry.to is PullRequestState.NOT_READY:
            self.admitted_at = None
        elif self.admitted_at is None:
            self.admitted_at = entry.at
        self.was_in_run |= entry.to is PullRequestState.TESTING


def _elapsed_ms(since: Instant | None, at: Instant) -> int | None:
    return None if since is None else at - since


def _is_bisection_run(queues: Iterable[Queue], run: RunId | None) -> bool:
    if run is None:
        return False
    found = (queue.runs.get(run) for queue in queues)
    return any(known is not None and known.kind is RunKind.BISECTION for known in found)


log = structlog.get_logger()

MAX_FIELD_CHARS = 500


def log_decision(key: QueueKey, decision: Decision) -> None:
    """Logs each pull request that left the queue or that a person changed, and each change of the queue itself. The
    journal has all other changes, which are too many for a log. Call it after the decision is stored, and only in the
    process that decided."""
    for entry in decision.journal:
        match entry:
            case journal.QueueChanged():
                _log_queue_change(key, entry)
            case journal.PullRequestUpdated():
                _log_update(key, entry)
            case journal.PullRequestChanged():
                if entry.to in TERMINAL_STATES:
                    _log_conclusion(key, entry, decision.concluded_submissions)


def _log_queue_change(key: QueueKey, entry: journal.QueueChanged) -> None:
    fields = describe_action(key, entry.actor) | {
        "reason": entry.reason.value,
        "detail": entry.detail[:MAX_FIELD_CHARS],
    }
    if entry.source is not entry.to or entry.reason is Reason.STATE_REQUESTED:
        log.info("queue_state_changed", state=entry.to.value, state_before=entry.source.value, **fields)
    elif entry.reason is Reason.SETTINGS_CHANGED:
        log.info("queue_settings_changed", **fields)
    else:
        log.info("queue_problem_found", state=entry.to.value, **fields)


def _log_conclusion(key: QueueKey, entry: journal.PullRequestChanged, concluded: Iterable[Submission]) -> None:
    submission = next((each for each in concluded if each.id == entry.submission_id), None)
    commits = {} if submission is None else {"head": submission.pull_request.head, "commit": submission.merged_sha}
    log.info(
        "pull_request_concluded",
        **describe_action(key, entry.actor),
        number=entry.number,
        state=entry.to.value,
        reason=entry.reason.value,
        run=entry.run,
        **commits,
    )


def _log_update(key: QueueKey, entry: journal.PullRequestUpdated) -> None:
    log.info(
        "pull_request_updated",
        **describe_action(key, entry.actor),
        number=entry.number,
        state=entry.state.value,
        reason=entry.reason.value,
        detail=entry.detail,
    )


def describe_action(key: QueueKey, actor: str) -> dict[str, str]:
    """The fields of a log line about an action on a queue: the queue, the name of the actor, and the token used."""
    name, _, token_id = actor.partition(ACTOR_TOKEN_SEPARATOR)
    return {"queue": str(key), "actor": name} | ({"token_id": token_id} if token_id else {})


EXPORT_CHUNK_ENTRIES = 500
"""Entries that an export reads from the store at once."""
decode_journal_entry = msgspec.json.Decoder[journal.JournalEntry](journal.JournalEntry).decode


class AuditLogEntry(Struct, frozen=True):
    seq: int
    key: QueueKey | None
    """The queue, which may be deleted by now; None for actions on the installation."""
    token_id: str | None
    """The id of the token that was used, if any."""
    entry: journal.JournalEntry


class AuditLogReader:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def read_page(self, reader: Token, page: AuditQuery) -> tuple[list[AuditLogEntry], int | None]:
        """The entries, and the `before` of the next page if there is one."""
        found = await self._store.audit_entries(replace(_restrict_to_reader(reader, page), take=page.take + 1))
        entries = [
            AuditLogEntry(entry.seq, entry.key, entry.token, decode_journal_entry(entry.body))
            for entry in found[: page.take]
        ]
        return entries, entries[-1].seq if len(found) > page.take else None

    async def iterate_chunks(self, reader: Token, page: AuditQuery) -> AsyncIterator[list[AuditLogEntry]]:
        """All entries, in chunks: an export can be larger than memory."""
        before = page.before
        while True:
            entries, before = await self.read_page(reader, replace(page, take=EXPORT_CHUNK_ENTRIES, before=before))
            yield entries
            if before is None:
                return


def _restrict_to_reader(reader: Token, page: AuditQuery) -> AuditQuery:
    """A token that is limited to some repositories sees only entries of those, and none about the installation."""
    if not reader.repos:
        return page
    visible = reader.repos if page.repos is None else reader.repos.intersection(page.repos)
    return replace(page, repos=tuple(sorted(visible, key=str)))


WINDOW_MS = MINUTE
MAX_LINES_PER_ADDRESS = 5
MAX_LINES = 100
MAX_ADDRESS_CHARS = 100
OTHER_ADDRESSES = "others"


class RefusalKind(StrEnum):
    """The event in the log and the label `kind` of the metric."""

    TOKEN_REJECTED = "token_rejected"
    SIGN_IN_FAILED = "sign_in_failed"
    SCOPE_MISSING = "scope_missing"
    WEBHOOK_SIGNATURE_INVALID = "webhook_signature_invalid"


for kind in RefusalKind:
    REFUSED_REQUESTS.labels(kind)


class RefusalLog:
    def __init__(self, clock: Clock, background: Background) -> None:
        self._clock = clock
        self._background = background
        self._window_ends_at = Instant(0)
        self._logged = Counter[tuple[RefusalKind, str]]()
        self._suppressed = Counter[tuple[RefusalKind, str]]()

    def record(self, kind: RefusalKind, address: str, token: Token | None = None, **fields: str) -> None:
        """`token` is the token that the client presented, if it is known. Its secret must not be passed in `fields`."""
        address = address[:MAX_ADDRESS_CHARS]
        REFUSED_REQUESTS.labels(kind).inc()
        if self._clock.now() >= self._window_ends_at:
            self._begin_window()
        key = (kind, address)
        if self._logged[key] < MAX_LINES_PER_ADDRESS and self._logged.total() < MAX_LINES:
            self._logged[key] += 1
            token_fields = {} if token is None else {"token_id": token.id, "token_name": token.name}
            cut_fields = {name: value[:MAX_FIELD_CHARS] for name, value in fields.items()}
            log.warning(kind.value, client=address, **token_fields, **cut_fields)
            return
        if not self._suppressed:
            self._background.start(self._report_later())
        # An address without a log line in this window is counted under "others", so the table stays small.
        self._suppressed[key if key in self._logged else (kind, OTHER_ADDRESSES)] += 1

    def _begin_window(self) -> None:
        self._report()
        self._logged.clear()
        self._window_ends_at = Instant(self._clock.now() + WINDOW_MS)

    async def _report_later(self) -> None:
        await self._clock.sleep(max(0, self._window_ends_at - self._clock.now()))
        self._report()

    def _report(self) -> None:
        for (kind, address), count in self._suppressed.items():
            log.warning("refusals_suppressed", kind=kind.value, client=address, count=count)
        self._suppressed.clear()
