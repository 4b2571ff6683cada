"""One queue as it is stored: what its decisions wrote, and which of them wrote what."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId, Sha, SubmissionId
from mergeyard.domain.states import RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import (
    MAX_HEADS_WITH_IMPACTED_TARGETS,
    ChangedRow,
    LoadedQueue,
    QueueChanges,
    ResultsPage,
    StoredQueue,
    StoredRun,
    SubmissionsQuery,
)
from mergeyard.ports.writes import QueuePart, RunRow, SaveDecision, SaveImpactedTargets, SubmissionRow


class Runs:
    def __init__(self) -> None:
        self._rows: dict[RunId, RunRow] = {}
        self._positions: dict[RunId, int] = {}
        self._live: dict[RunId, None] = {}
        self._deleted_passed: set[RunId] = set()

    def put(self, row: RunRow) -> None:
        self._rows[row.id] = row
        self._positions.setdefault(row.id, len(self._positions) + 1)
        if row.live:
            self._live[row.id] = None
        else:
            self._live.pop(row.id, None)

    def body(self, run: RunId) -> bytes | None:
        row = self._rows.get(run)
        return None if row is None else row.body

    def live(self) -> tuple[bytes, ...]:
        return tuple(self._rows[run].body for run in sorted(self._live, key=self._position))

    def changed(self, runs: set[RunId]) -> tuple[ChangedRow, ...]:
        rows = (self._rows[run] for run in sorted(runs, key=self._position))
        return tuple(ChangedRow(row.live, row.body) for row in rows)

    def decided(self, since: Instant, until: Instant, before: int = 0) -> list[StoredRun]:
        """Runs that were started and decided in this time, the latest first."""
        found = [
            (row.decided_at, self._positions[row.id], row.body)
            for row in self._rows.values()
            if row.started_at is not None and row.decided_at is not None and since <= row.decided_at
        ]
        return [StoredRun(*each) for each in sorted(found, reverse=True) if each[:2] < (until, before)]

    def results(self, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        tested = {row.body: row.tested_count for row in self._rows.values()}
        end, skipped, page = 0, 0, list[bytes]()
        for run in self.decided(since, until):
            begin, end = end, end + tested[run.body]
            if begin < end and begin < offset + take and end > offset:
                skipped = skipped if page else offset - begin
                page.append(run.body)
        return ResultsPage(end, skipped, tuple(page))

    def has(self, run: RunId) -> bool:
        return run in self._rows

    def had(self, run: RunId) -> bool:
        return run in self._rows or run in self._deleted_passed

    def has_tip(self, sha: Sha) -> bool:
        return any(row.tip == sha for row in self._rows.values())

    def ended(self, before: Instant) -> Iterator[tuple[Instant, RunId]]:
        for row in self._rows.values():
            if row.ended_at is not None and row.ended_at < before:
                yield row.ended_at, row.id

    def delete(self, run: RunId) -> Sha | None:
        """Returns the commit that it tested."""
        row = self._rows.pop(run)
        if row.status is RunStatus.SUCCEEDED:
            self._deleted_passed.add(run)
        return row.tip

    def _position(self, run: RunId) -> int:
        return self._positions[run]


class Submissions:
    def __init__(self) -> None:
        self._rows: dict[SubmissionId, SubmissionRow] = {}
        self._ids: list[SubmissionId] = []
        self._live: set[SubmissionId] = set()
        self._of_number: dict[PullRequestNumber, list[SubmissionId]] = {}
        self._of_branch: dict[str, set[SubmissionId]] = {}

    def put(self, row: SubmissionRow) -> None:
        """The number and the submission time are written once; all other columns are overwritten."""
        submission_id, before = row.submission_id, self._rows.get(row.submission_id)
        if before is None:
            insort(self._ids, submission_id)
            insort(self._of_number.setdefault(row.number, []), submission_id)
        else:
            self._of_branch[before.branch].discard(submission_id)
            row = replace(row, number=before.number, submitted_at=before.submitted_at)
        self._rows[submission_id] = row
        self._of_branch.setdefault(row.branch, set()).add(submission_id)
        if row.live:
            self._live.add(submission_id)
        else:
            self._live.discard(submission_id)

    def body(self, submission_id: SubmissionId | None) -> bytes | None:
        row = None if submission_id is None else self._rows.get(submission_id)
        return None if row is None else row.body

    def rows(self) -> Iterator[SubmissionRow]:
        return iter(self._rows.values())

    def live(self) -> tuple[bytes, ...]:
        return tuple(self._rows[submission_id].body for submission_id in sorted(self._live))

    def changed(self, ids: set[SubmissionId]) -> tuple[ChangedRow, ...]:
        rows = (self._rows[submission_id] for submission_id in sorted(ids))
        return tuple(ChangedRow(row.live, row.body) for row in rows)

    def of_number(self, number: PullRequestNumber, take: int) -> tuple[bytes, ...]:
        latest = islice(reversed(self._of_number.get(number, ())), take)
        return tuple(self._rows[submission_id].body for submission_id in latest)

    def is_live(self, submission_id: SubmissionId | None) -> bool:
        return submission_id in self._live

    def has_live(self, number: PullRequestNumber) -> bool:
        return any(submission_id in self._live for submission_id in self._of_number.get(number, ()))

    def ended(self, before: Instant) -> Iterator[tuple[Instant, SubmissionId]]:
        for row in self._rows.values():
            if row.ended_at is not None and row.ended_at < before:
                yield row.ended_at, row.submission_id

    def delete(self, submission_id: SubmissionId) -> None:
        row = self._rows.pop(submission_id)
        self._ids.remove(submission_id)
        self._of_number[row.number].remove(submission_id)
        self._of_branch[row.branch].discard(submission_id)

    def of_branch(self, branch: str) -> bytes | None:
        """The live one, else the latest."""
        ids = self._of_branch.get(branch)
        return (
            self._rows[max(ids, key=lambda submission_id: (submission_id in self._live, submission_id))].body
            if ids
            else None
        )

    def page(self, query: SubmissionsQuery) -> tuple[bytes, ...]:
        found = (row.body for row in self._newest(query.before) if _matches_query(row, query))
        return tuple(islice(found, query.take))

    def _newest(self, before: SubmissionId | None) -> Iterator[SubmissionRow]:
        end = len(self._ids) if before is None else bisect_left(self._ids, before)
        return (self._rows[self._ids[at]] for at in range(end - 1, -1, -1))


def _matches_query(row: SubmissionRow, query: SubmissionsQuery) -> bool:
    return (
        (query.state is None or row.state is query.state)
        and (query.since is None or row.submitted_at >= query.since)
        and (query.until is None or row.submitted_at < query.until)
        and (query.concluded_since is None or (row.ended_at is not None and row.ended_at >= query.concluded_since))
    )


MAX_REMEMBERED_DECISIONS = 1000
"""Changes are available for this many decisions."""

PartKey = tuple[str, str]
"""Kind and key of a queue part."""


class ChangedKeys(Struct, frozen=True):
    """What one decision wrote."""

    parts: set[PartKey]
    submissions: set[SubmissionId]
    runs: set[RunId]


class QueueRecord:
    """A deleted queue is no longer found, but its runs, submissions and journal remain."""

    def __init__(self, queue: QueueId, key: QueueKey) -> None:
        self.id = queue
        self.key = key
        self.deleted = False
        self.submissions = Submissions()
        self.runs = Runs()
        self.impacted_targets: dict[tuple[PullRequestNumber, Sha], SaveImpactedTargets] = {}
        self._deleted_up_to = 0
        self._parts: dict[PartKey, bytes] = {}
        self._decisions: list[ChangedKeys] = []

    @property
    def version(self) -> int:
        return len(self._decisions)

    @property
    def stored(self) -> StoredQueue:
        return StoredQueue(self.id, self.key, self.version)

    def save_decision(self, decision: SaveDecision) -> None:
        """The last value of a part that is written twice wins, and deleting a missing part changes nothing."""
        parts = {(part.kind, part.key): part.body for part in decision.parts}
        touched = {key for key, body in parts.items() if body is not None or key in self._parts}
        for key, body in parts.items():
            if body is None:
                self._parts.pop(key, None)
            else:
                self._parts[key] = body
        for row in decision.submissions:
            self.submissions.put(row)
        for run in decision.runs:
            self.runs.put(run)
        self._decisions.append(
            ChangedKeys(touched, {row.submission_id for row in decision.submissions}, {run.id for run in decision.runs})
        )

    def save_impacted_targets(self, saved: SaveImpactedTargets) -> None:
        self.impacted_targets[saved.number, saved.head] = saved
        others = [
            each for each in self.impacted_targets.values() if each.number == saved.number and each.head != saved.head
        ]
        others.sort(key=lambda each: each.at, reverse=True)
        for older in others[MAX_HEADS_WITH_IMPACTED_TARGETS - 1 :]:
            del self.impacted_targets[older.number, older.head]

    def delete_submission(self, submission_id: SubmissionId) -> None:
        self.submissions.delete(submission_id)
        self._note_deleted(lambda decision: submission_id in decision.submissions)

    def delete_run(self, run: RunId) -> Sha | None:
        """Returns the commit that it tested."""
        self._note_deleted(lambda decision: run in decision.runs)
        return self.runs.delete(run)

    def _note_deleted(self, wrote: Callable[[ChangedKeys], bool]) -> None:
        last = max(version for version, decision in enumerate(self._decisions, 1) if wrote(decision))
        self._deleted_up_to = max(self._deleted_up_to, last)

    def delete(self) -> None:
        self.deleted = True
        self._parts.clear()
        self.impacted_targets.clear()

    def load(self) -> LoadedQueue:
        return LoadedQueue(
            version=self.version,
            parts=tuple(QueuePart(*key, body) for key, body in sorted(self._parts.items())),
            submissions=self.submissions.live(),
            runs=self.runs.live(),
        )

    def changes(self, after: int) -> QueueChanges | None:
        oldest = max(self.version - MAX_REMEMBERED_DECISIONS, self._deleted_up_to)
        if self.deleted or not oldest <= after <= self.version:
            return None
        decisions = self._decisions[max(after, 0) :]
        parts = set[PartKey]().union(*(decision.parts for decision in decisions))
        return QueueChanges(
            version=self.version,
            parts=tuple(QueuePart(*key, self._parts.get(key)) for key in sorted(parts)),
            submissions=self.submissions.changed(
                set[SubmissionId]().union(*(decision.submissions for decision in decisions))
            ),
            runs=self.runs.changed(set[RunId]().union(*(decision.runs for decision in decisions))),
        )
