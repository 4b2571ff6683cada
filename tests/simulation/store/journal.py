"""The journal of all queues, in the order in which it was written."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from mergeyard.domain.ids import QueueId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import TERMINAL, QueueState
from mergeyard.ports.store import AuditedEntry, AuditPage, Figure, StoredEntry
from mergeyard.ports.writes import EntryRow


class QueueJournal:
    """What is about one queue."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.of_stay: dict[Ticket, list[int]] = {}
        self.pull_changes: list[int] = []
        self.ends: list[Ticket | None] = []
        self.queue_changes: list[EntryRow] = []

    def append(self, seq: int, entry: EntryRow) -> None:
        self.seqs.append(seq)
        if entry.ticket is not None:
            self.of_stay.setdefault(entry.ticket, []).append(seq)
        if entry.kind == "QueueChanged":
            self.queue_changes.append(entry)
        if entry.kind == "PrChanged":
            self.pull_changes.append(seq)
            if entry.to in TERMINAL:
                self.ends.append(entry.ticket)

    def remove(self, seq: int, entry: EntryRow) -> None:
        self.seqs.remove(seq)
        if entry.ticket is not None:
            self.of_stay[entry.ticket].remove(seq)
        if entry.kind == "QueueChanged":
            self.queue_changes.remove(entry)
        if entry.kind == "PrChanged":
            self.pull_changes.remove(seq)
            if entry.to in TERMINAL:
                self.ends.remove(entry.ticket)


class Journal:
    def __init__(self) -> None:
        self._entries: dict[int, EntryRow] = {}
        self._last = 0
        self._of_queue = defaultdict[QueueId, QueueJournal](QueueJournal)

    def append(self, entry: EntryRow) -> None:
        self._last += 1
        self._entries[self._last] = entry
        if entry.queue is not None:
            self._of_queue[entry.queue].append(self._last, entry)

    def made_before(self, before: Instant) -> Iterator[tuple[int, EntryRow]]:
        return ((seq, entry) for seq, entry in self._entries.items() if entry.at < before)

    def delete(self, seq: int) -> None:
        entry = self._entries.pop(seq)
        if entry.queue is not None:
            self._of_queue[entry.queue].remove(seq, entry)

    def end(self, queue: QueueId) -> int:
        """The number of its last entry, 0 when there is none."""
        seqs = self._about(queue).seqs
        return seqs[-1] if seqs else 0

    def behind(self, queue: QueueId, after: int, take: int) -> tuple[StoredEntry, ...]:
        seqs = self._about(queue).seqs
        begin = bisect_right(seqs, after)
        return tuple(map(self._stored, seqs[begin : begin + take]))

    def timeline(self, queue: QueueId, ticket: Ticket) -> tuple[StoredEntry, ...]:
        return tuple(map(self._stored, reversed(self._about(queue).of_stay.get(ticket, ()))))

    def ends(self, queue: QueueId, take: int) -> Iterator[Ticket | None]:
        """The tickets of those that left the queue, the latest first."""
        return islice(reversed(self._about(queue).ends), take)

    def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        into = (
            entry.body
            for entry in reversed(self._about(queue).queue_changes)
            if entry.to == to and entry.source not in (None, to)
        )
        return next(into, None)

    def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> tuple[Figure, ...]:
        found = [
            (self._entries[seq].at, seq)
            for queue in dict.fromkeys(queues)
            for seq in self._about(queue).pull_changes
            if since <= self._entries[seq].at < until
        ]
        return tuple(_figure(self._entries[seq]) for _, seq in sorted(found))

    def audit(self, page: AuditPage, key_of: Callable[[QueueId], QueueKey]) -> tuple[AuditedEntry, ...]:
        end = self._last if page.before is None else page.before - 1
        newest = ((seq, entry) for seq, entry in reversed(self._entries.items()) if seq <= end)
        keyed = ((seq, entry, None if entry.queue is None else key_of(entry.queue)) for seq, entry in newest)
        found = (
            AuditedEntry(seq, key, entry.token, entry.body)
            for seq, entry, key in keyed
            if _is_asked_for(entry, key, page)
        )
        return tuple(islice(found, page.take))

    def _about(self, queue: QueueId) -> QueueJournal:
        return self._of_queue.get(queue, NOTHING)

    def _stored(self, seq: int) -> StoredEntry:
        entry = self._entries[seq]
        return StoredEntry(seq, entry.queue, entry.token, entry.body)


NOTHING = QueueJournal()


def _figure(entry: EntryRow) -> Figure:
    assert entry.queue is not None
    assert entry.to is not None
    assert entry.reason is not None
    return Figure(
        entry.queue,
        entry.at,
        entry.source,
        entry.to,
        entry.reason,
        entry.bisecting,
        entry.in_state,
        entry.in_queue,
        entry.first_run,
    )


def _is_asked_for(entry: EntryRow, key: QueueKey | None, page: AuditPage) -> bool:
    return (
        (page.since is None or entry.at >= page.since)
        and (page.until is None or entry.at < page.until)
        and page.number in (None, entry.number)
        and page.actor in (None, entry.actor)
        and page.kind in (None, entry.kind)
        and (page.repos is None or (key is not None and key.repo in page.repos))
        and (page.branch is None or (key is not None and key.branch == page.branch))
    )
