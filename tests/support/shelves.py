"""Shelves in memory that keep what is written of a queue, as a store does, and tell what changed since a version."""

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import LaneIndex
from mergeyard.domain.queue import Queue
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.ports.store import Changed, Changes, LoadedQueue
from mergeyard.ports.writes import Fact, RunRow, SaveTurn, StayRow
from mergeyard.service import restoring, shelving

NOW = Instant(1)


class Shelves:
    def __init__(self, queue: Queue) -> None:
        self._turns: list[SaveTurn] = []
        blank = Queue(id=queue.id, target=TargetBranch(name=queue.target.name))
        self._turns.append(shelving.changes(blank, queue, 1, (), (), NOW))

    @property
    def version(self) -> int:
        return len(self._turns)

    def follow(self, before: Queue, _: Sequence[Event], decision: Decision) -> None:
        turn = shelving.changes(before, decision.queue, self.version + 1, decision.concluded, decision.finished, NOW)
        self._turns.append(turn)

    def load(self) -> Queue:
        return restoring.restore(self.loaded())

    def loaded(self) -> LoadedQueue:
        facts, stays, runs = self._written(after=0)
        return LoadedQueue(
            version=self.version,
            facts=tuple(fact for fact in facts if fact.body is not None),
            stays=tuple(stay.body for stay in stays if stay.live),
            runs=tuple(run.body for run in runs if run.live),
        )

    def changes(self, after: int) -> Changes:
        facts, stays, runs = self._written(after)
        return Changes(
            version=self.version,
            facts=tuple(facts),
            stays=tuple(Changed(stay.live, stay.body) for stay in stays),
            runs=tuple(Changed(run.live, run.body) for run in runs),
        )

    def _written(self, after: int) -> tuple[list[Fact], list[StayRow], list[RunRow]]:
        """Of everything the last that was written."""
        turns = self._turns[after:]
        facts = {(fact.shelf, fact.key): fact for turn in turns for fact in turn.facts}
        stays = {stay.ticket: stay for turn in turns for stay in turn.stays}
        runs = {run.id: run for turn in turns for run in turn.runs}
        return list(facts.values()), list(stays.values()), list(runs.values())


def told(queue: Queue) -> dict[str, object]:
    """All that is stored: not how its maps are cut into chunks, nor the index that is made again, nor who is
    to be looked at, which after a start is everybody."""
    line = replace(queue.line, index=LaneIndex())
    shown = {name: getattr(queue, name) for name in Queue.__struct_fields__} | {"line": line, "looks": None}
    return {name: _flat(value) for name, value in shown.items()}


def _flat(value: object) -> object:
    if isinstance(value, SortedMap):
        sorted_map = cast("SortedMap[Any, object]", value)
        return [(key, sorted_map[key]) for key in sorted_map]
    if isinstance(value, dict):
        return {key: _flat(each) for key, each in cast("dict[object, object]", value).items()}
    return value
