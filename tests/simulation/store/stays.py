"""The stays of one queue, and the ways in which they are found."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.ports.store import Changed, Page
from mergeyard.ports.writes import StayRow


class Stays:
    def __init__(self) -> None:
        self._rows: dict[Ticket, StayRow] = {}
        self._tickets: list[Ticket] = []
        self._live: set[Ticket] = set()
        self._of_number: dict[PrNumber, list[Ticket]] = {}
        self._of_branch: dict[str, set[Ticket]] = {}

    def put(self, row: StayRow) -> None:
        """Whose stay it is and when it was submitted are written once; all else is as it is now."""
        ticket, before = row.ticket, self._rows.get(row.ticket)
        if before is None:
            insort(self._tickets, ticket)
            insort(self._of_number.setdefault(row.number, []), ticket)
        else:
            self._of_branch[before.branch].discard(ticket)
            row = replace(row, number=before.number, submitted_at=before.submitted_at)
        self._rows[ticket] = row
        self._of_branch.setdefault(row.branch, set()).add(ticket)
        if row.live:
            self._live.add(ticket)
        else:
            self._live.discard(ticket)

    def body(self, ticket: Ticket | None) -> bytes | None:
        row = None if ticket is None else self._rows.get(ticket)
        return None if row is None else row.body

    def live(self) -> tuple[bytes, ...]:
        return tuple(self._rows[ticket].body for ticket in sorted(self._live))

    def changed(self, tickets: set[Ticket]) -> tuple[Changed, ...]:
        rows = (self._rows[ticket] for ticket in sorted(tickets))
        return tuple(Changed(row.live, row.body) for row in rows)

    def of_number(self, number: PrNumber, take: int) -> tuple[bytes, ...]:
        latest = islice(reversed(self._of_number.get(number, ())), take)
        return tuple(self._rows[ticket].body for ticket in latest)

    def is_live(self, ticket: Ticket | None) -> bool:
        return ticket in self._live

    def has_live(self, number: PrNumber) -> bool:
        return any(ticket in self._live for ticket in self._of_number.get(number, ()))

    def ended(self, before: Instant) -> Iterator[tuple[Instant, Ticket]]:
        for row in self._rows.values():
            if row.ended_at is not None and row.ended_at < before:
                yield row.ended_at, row.ticket

    def delete(self, ticket: Ticket) -> None:
        row = self._rows.pop(ticket)
        self._tickets.remove(ticket)
        self._of_number[row.number].remove(ticket)
        self._of_branch[row.branch].discard(ticket)

    def of_branch(self, branch: str) -> bytes | None:
        """The live one, else the latest."""
        tickets = self._of_branch.get(branch)
        return self._rows[max(tickets, key=lambda ticket: (ticket in self._live, ticket))].body if tickets else None

    def page(self, page: Page) -> tuple[bytes, ...]:
        found = (row.body for row in self._newest(page.before) if _is_asked_for(row, page))
        return tuple(islice(found, page.take))

    def _newest(self, before: Ticket | None) -> Iterator[StayRow]:
        end = len(self._tickets) if before is None else bisect_left(self._tickets, before)
        return (self._rows[self._tickets[at]] for at in range(end - 1, -1, -1))


def _is_asked_for(row: StayRow, page: Page) -> bool:
    return (
        (page.state is None or row.state is page.state)
        and (page.since is None or row.submitted_at >= page.since)
        and (page.until is None or row.submitted_at < page.until)
    )
