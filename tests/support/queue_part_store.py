"""An in-memory store for the parts of one queue, which also returns the changes since a version."""

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from mergeyard.domain.events import Event
from mergeyard.domain.queue import Decision, LaneIndex, Queue, TargetBranch
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import ChangedRow, LoadedQueue, QueueChanges
from mergeyard.ports.writes import QueuePart, RunRow, SaveDecision, SubmissionRow
from mergeyard.service import persistence

NOW = Instant(1)


class QueuePartStore:
    def __init__(self, queue: Queue) -> None:
        self._decisions: list[SaveDecision] = []
        blank = Queue(id=queue.id, target_branch=TargetBranch(name=queue.target_branch.name))
        self._decisions.append(persistence.encode_changes(blank, queue, 1, (), (), NOW))

    @property
    def version(self) -> int:
        return len(self._decisions)

    def on_decision(self, before: Queue, _: Sequence[Event], decision: Decision) -> None:
        encoded = persistence.encode_changes(
            before, decision.queue, self.version + 1, decision.concluded_submissions, decision.finished_runs, NOW
        )
        self._decisions.append(encoded)

    def load(self) -> Queue:
        return persistence.decode_queue(self.load_parts())

    def load_parts(self) -> LoadedQueue:
        parts, submissions, runs = self._last_written(after=0)
        return LoadedQueue(
            version=self.version,
            parts=tuple(part for part in parts if part.body is not None),
            submissions=tuple(row.body for row in submissions if row.live),
            runs=tuple(row.body for row in runs if row.live),
        )

    def changes(self, after: int) -> QueueChanges:
        parts, submissions, runs = self._last_written(after)
        return QueueChanges(
            version=self.version,
            parts=tuple(parts),
            submissions=tuple(ChangedRow(row.live, row.body) for row in submissions),
            runs=tuple(ChangedRow(row.live, row.body) for row in runs),
        )

    def _last_written(self, after: int) -> tuple[list[QueuePart], list[SubmissionRow], list[RunRow]]:
        """The last written version of each part."""
        decisions = self._decisions[after:]
        parts = {(part.kind, part.key): part for decision in decisions for part in decision.parts}
        submissions = {row.submission_id: row for decision in decisions for row in decision.submissions}
        runs = {row.id: row for decision in decisions for row in decision.runs}
        return list(parts.values()), list(submissions.values()), list(runs.values())


def stored_values(queue: Queue) -> dict[str, object]:
    """Everything that is stored, without the chunks of maps, the derived index, and `refresh_requested`, which contains
    every pull request after a start."""
    active = replace(queue.active, index=LaneIndex())
    values = {name: getattr(queue, name) for name in Queue.__struct_fields__}
    values |= {"active": active, "refresh_requested": None}
    return {name: _flat(value) for name, value in values.items()}


def _flat(value: object) -> object:
    if isinstance(value, SortedMap):
        sorted_map = cast("SortedMap[Any, object]", value)
        return [(key, sorted_map[key]) for key in sorted_map]
    if isinstance(value, dict):
        return {key: _flat(each) for key, each in cast("dict[object, object]", value).items()}
    return value
