"""The journal of all queues, in the order in which it was written."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from mergeyard.domain.ids import QueueId, QueueKey, SubmissionId
from mergeyard.domain.states import TERMINAL_STATES, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AuditedEntry, AuditQuery, StoredEntry, TransitionRow
from mergeyard.ports.writes import EntryRow


class QueueJournal:
    """The entries of one queue."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.of_submission: dict[SubmissionId, list[int]] = {}
        self.pull_request_changes: list[int] = []
        self.ends: list[SubmissionId | None] = []
        self.queue_changes: list[EntryRow] = []

    def append(self, seq: int, entry: EntryRow) -> None:
        self.seqs.append(seq)
        if entry.submission_id is not None:
            self.of_submission.setdefault(entry.submission_id, []).append(seq)
        if entry.kind == "QueueChanged":
            self.queue_changes.append(entry)
        if entry.kind == "PullRequestChanged":
            self.pull_request_changes.append(seq)
            if entry.to in TERMINAL_STATES:
                self.ends.append(entry.submission_id)

    def remove(self, seq: int, entry: EntryRow) -> None:
        self.seqs.remove(seq)
        if entry.submission_id is not None:
            self.of_submission[entry.submission_id].remove(seq)
        if entry.kind == "QueueChanged":
            self.queue_changes.remove(entry)
        if entry.kind == "PullRequestChanged":
            self.pull_request_changes.remove(seq)
            if entry.to in TERMINAL_STATES:
                self.ends.remove(entry.submission_id)


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

    def entries_before(self, before: Instant) -> Iterator[tuple[int, EntryRow]]:
        return ((seq, entry) for seq, entry in self._entries.items() if entry.at < before)

    def delete(self, seq: int) -> None:
        entry = self._entries.pop(seq)
        if entry.queue is not None:
            self._of_queue[entry.queue].remove(seq, entry)

    def end(self, queue: QueueId) -> int:
        """The number of its last entry, 0 when there is none."""
        seqs = self._journal_of(queue).seqs
        return seqs[-1] if seqs else 0

    def entries_after(self, queue: QueueId, after: int, take: int) -> tuple[StoredEntry, ...]:
        seqs = self._journal_of(queue).seqs
        begin = bisect_right(seqs, after)
        return tuple(map(self._stored, seqs[begin : begin + take]))

    def timeline(self, queue: QueueId, submission_id: SubmissionId) -> tuple[StoredEntry, ...]:
        return tuple(map(self._stored, reversed(self._journal_of(queue).of_submission.get(submission_id, ()))))

    def ends(self, queue: QueueId, take: int) -> Iterator[SubmissionId | None]:
        """The ids of submissions that ended, the latest first."""
        return islice(reversed(self._journal_of(queue).ends), take)

    def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        changes = (
            entry.body
            for entry in reversed(self._journal_of(queue).queue_changes)
            if entry.to == to and entry.source not in (None, to)
        )
        return next(changes, None)

    def last_state_entry(self, queue: QueueId) -> bytes | None:
        changes = reversed(self._journal_of(queue).queue_changes)
        return next((entry.body for entry in changes if entry.reason != Reason.SETTINGS_CHANGED), None)

    def transitions(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> tuple[TransitionRow, ...]:
        found = [
            (self._entries[seq].at, seq)
            for queue in dict.fromkeys(queues)
            for seq in self._journal_of(queue).pull_request_changes
            if since <= self._entries[seq].at < until
        ]
        return tuple(_to_transition_row(self._entries[seq]) for _, seq in sorted(found))

    def audit(self, query: AuditQuery, key_of: Callable[[QueueId], QueueKey]) -> tuple[AuditedEntry, ...]:
        end = self._last if query.before is None else query.before - 1
        newest = ((seq, entry) for seq, entry in reversed(self._entries.items()) if seq <= end)
        keyed = ((seq, entry, None if entry.queue is None else key_of(entry.queue)) for seq, entry in newest)
        found = (
            AuditedEntry(seq, key, entry.token, entry.body)
            for seq, entry, key in keyed
            if _matches_audit_query(entry, key, query)
        )
        return tuple(islice(found, query.take))

    def _journal_of(self, queue: QueueId) -> QueueJournal:
        return self._of_queue.get(queue, EMPTY)

    def _stored(self, seq: int) -> StoredEntry:
        entry = self._entries[seq]
        return StoredEntry(seq, entry.queue, entry.token, entry.body)


EMPTY = QueueJournal()


def _to_transition_row(entry: EntryRow) -> TransitionRow:
    assert entry.queue is not None
    assert entry.to is not None
    assert entry.reason is not None
    return TransitionRow(
        entry.queue,
        entry.at,
        entry.source,
        entry.to,
        entry.reason,
        entry.bisecting,
        entry.ms_in_state,
        entry.ms_in_queue,
        entry.first_run,
    )


def _matches_audit_query(entry: EntryRow, key: QueueKey | None, query: AuditQuery) -> bool:
    return (
        (query.since is None or entry.at >= query.since)
        and (query.until is None or entry.at < query.until)
        and query.number in (None, entry.number)
        and query.actor in (None, entry.actor)
        and query.without_actor != entry.actor
        and query.kind in (None, entry.kind)
        and (query.repos is None or (key is not None and key.repo in query.repos))
        and (query.branch is None or (key is not None and key.branch == query.branch))
    )


class Cursor(Struct):
    seq: int = 0
    stalled_since: Instant | None = None


AT_START = Cursor()


class Consumers:
    def __init__(self) -> None:
        self._started: set[str] = set()
        self._cursors: dict[str, dict[QueueId, Cursor]] = {}

    def cursor(self, consumer: str, queue: QueueId) -> Cursor:
        return self._cursors.get(consumer, {}).get(queue, AT_START)

    def start(self, consumer: str, ends: Iterable[tuple[QueueId, int]]) -> None:
        """A consumer that has started, or has a cursor in a queue, keeps its position."""
        if consumer in self._started:
            return
        self._started.add(consumer)
        cursors = self._cursors.setdefault(consumer, {})
        for queue, end in ends:
            cursors.setdefault(queue, Cursor(end))

    def move_cursor(self, consumer: str, queue: QueueId, seq: int) -> None:
        cursors = self._cursors.setdefault(consumer, {})
        if queue not in cursors or seq > cursors[queue].seq:
            cursors[queue] = Cursor(seq)

    def has_all_read(self, queue: QueueId, seq: int) -> bool:
        return all(self.cursor(consumer, queue).seq >= seq for consumer in self._started)

    def mark_stalled(self, consumer: str, queue: QueueId, at: Instant) -> None:
        cursor = self._cursors.setdefault(consumer, {}).setdefault(queue, Cursor())
        if cursor.stalled_since is None:
            cursor.stalled_since = at

    def clear_stalled(self, consumer: str) -> None:
        for cursor in self._cursors.get(consumer, {}).values():
            cursor.stalled_since = None

    def delete(self, consumer: str) -> None:
        self._started.discard(consumer)
        self._cursors.pop(consumer, None)
