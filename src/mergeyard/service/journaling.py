"""Writes the journal: every change with its actor, token, reason and time, and with what figures will be asked for."""

from collections.abc import Iterable, Iterator

from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import QueueId, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import OPERATOR, Administered, PrChanged, QueueChanged, QueueCreated, QueueDeleted
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState
from mergeyard.domain.tokens import Token
from mergeyard.ports.writes import AppendEntries, EntryRow
from mergeyard.service.shelving import encode

SEPARATOR = "#"
"""Between a token's name and its id, where one word must carry both; no name holds it."""


def actor_of(token: Token | None) -> str:
    """Without a token it is whoever gives commands on the machine itself."""
    return OPERATOR if token is None else f"{token.name}{SEPARATOR}{token.id}"


def name_of(actor: str) -> str:
    return actor.partition(SEPARATOR)[0]


def token_of(actor: str) -> str | None:
    return actor.partition(SEPARATOR)[2] or None


def entries(before: Queue, decision: Decision) -> tuple[EntryRow, ...]:
    return tuple(_entries(before, decision))


def entry_about_queue(queue: QueueId, entry: QueueChanged | QueueCreated | QueueDeleted) -> EntryRow:
    changed = isinstance(entry, QueueChanged)
    return EntryRow(
        queue=queue,
        at=entry.at,
        kind=type(entry).__name__,
        actor=name_of(entry.actor),
        token=token_of(entry.actor),
        source=entry.source if changed else None,
        to=entry.to if changed else None,
        reason=entry.reason if changed else None,
        body=encode(entry),
    )


def noted(deed: Administered) -> AppendEntries:
    """To be written together with what was done, so that nothing is done that is not noted."""
    entry = EntryRow(
        queue=None,
        at=deed.at,
        kind=type(deed).__name__,
        actor=name_of(deed.actor),
        token=token_of(deed.actor),
        body=encode(deed),
    )
    return AppendEntries((entry,))


def _entries(before: Queue, decision: Decision) -> Iterator[EntryRow]:
    bisected = set(before.bisected)
    clocks = dict[Ticket, StayClock]()
    for entry in decision.journal:
        if isinstance(entry, QueueChanged):
            yield entry_about_queue(before.id, entry)
            continue
        clock = clocks.setdefault(entry.ticket, StayClock(before.submissions.get(entry.ticket)))
        beside = entry.ticket in bisected or _tested_in_bisection((before, decision.queue), entry.run)
        yield _entry_about_pr(before.id, entry, clock, bisecting=beside)
        clock.pass_(entry)


class StayClock:
    """How long a pull request has been where it is, entry by entry of one turn."""

    def __init__(self, stay: Submission | None) -> None:
        self.since = None if stay is None else stay.state_changed_at
        self.admitted_at = None if stay is None else stay.admitted_at
        self.was_in_run = stay is not None and stay.was_in_run

    def pass_(self, entry: PrChanged) -> None:
        self.since = entry.at
        if entry.to is PrState.NOT_READY:
            self.admitted_at = None
        elif self.admitted_at is None:
            self.admitted_at = entry.at
        self.was_in_run |= entry.to is PrState.TESTING

    def elapsed(self, at: Instant, since: Instant | None) -> int | None:
        return None if since is None else at - since


def _entry_about_pr(queue: QueueId, entry: PrChanged, clock: StayClock, *, bisecting: bool) -> EntryRow:
    return EntryRow(
        queue=queue,
        at=entry.at,
        kind=type(entry).__name__,
        actor=name_of(entry.actor),
        token=token_of(entry.actor),
        ticket=entry.ticket,
        number=entry.number,
        source=entry.source,
        to=entry.to,
        reason=entry.reason,
        bisecting=bisecting,
        in_state=clock.elapsed(entry.at, clock.since),
        in_queue=clock.elapsed(entry.at, clock.admitted_at),
        first_run=entry.to is PrState.TESTING and not clock.was_in_run,
        body=encode(entry),
    )


def _tested_in_bisection(queues: Iterable[Queue], run: RunId | None) -> bool:
    if run is None:
        return False
    known = (queue.runs.get(run) for queue in queues)
    return any(found is not None and found.kind is RunKind.BISECTION for found in known)
