"""What is stored of a queue is the queue: after every turn of random worlds, and only what changed is written."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event, TargetsUploaded
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.line import LaneIndex
from mergeyard.domain.queue import Queue
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import CheckState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import named
from mergeyard.ports.store import Fact, LoadedQueue, SaveTurn
from mergeyard.service import shelving
from tests.model.world import RandomWorld
from tests.support.builders import Yard, a_parallel_yard, a_yard


class Shelves:
    """Keeps what is written, as a store does."""

    def __init__(self, queue: Queue) -> None:
        self.facts: dict[tuple[str, str], bytes] = {}
        self.stays: dict[int, bytes] = {}
        self.runs: dict[str, bytes] = {}
        blank = Queue(id=queue.id, target=TargetBranch(name=queue.target.name))
        self.save(shelving.changes(blank, queue, 1, (), ()))

    def follow(self, before: Queue, _: Sequence[Event], decision: Decision) -> None:
        self.save(shelving.changes(before, decision.queue, 2, decision.concluded, decision.finished))

    def save(self, turn: SaveTurn) -> None:
        for fact in turn.facts:
            _keep(self.facts, (fact.shelf, fact.key), fact.body)
        for stay in turn.stays:
            _keep(self.stays, stay.ticket, stay.body if stay.live else None)
        for run in turn.runs:
            _keep(self.runs, run.id, run.body if run.live else None)

    def load(self) -> Queue:
        facts = tuple(Fact(shelf, key, body) for (shelf, key), body in self.facts.items())
        stays, runs = tuple(self.stays.values()), tuple(self.runs.values())
        return shelving.restore(LoadedQueue(version=2, facts=facts, stays=stays, runs=runs))


def _keep(kept: dict[Any, bytes], key: object, body: bytes | None) -> None:
    kept.pop(key, None)
    if body is not None:
        kept[key] = body


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


def last_turn(yard: Yard, *events: Event) -> SaveTurn:
    before = yard.queue
    decision = yard.tell(*events)
    return shelving.changes(before, decision.queue, 2, decision.concluded, decision.finished)


@pytest.mark.parametrize("seed", range(60))
def test_what_was_stored_turn_by_turn_is_the_queue(seed: int):
    random = RandomWorld(seed)
    shelves = Shelves(random.world.queue)

    def compare(before: Queue, events: Sequence[Event], decision: Decision) -> None:
        if decision.queue is not before:
            shelves.follow(before, events, decision)
            assert told(shelves.load()) == told(decision.queue)

    random.world.watchers.append(compare)
    random.run()


def test_a_turn_writes_only_the_stay_and_the_run_that_changed():
    yard = a_yard(prs=5)
    turn = last_turn(yard, yard.verdict(CheckState.PASSED, 3))
    assert [stay.ticket for stay in turn.stays] == [yard.ticket(3)]
    assert [run.id for run in turn.runs] == [yard.run_of(3).id]


def test_long_lists_of_targets_are_written_only_when_they_change():
    yard = a_parallel_yard("x", "y")
    assert targets_written(last_turn(yard, yard.verdict(CheckState.PASSED, 1))) == []
    uploaded = TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=named("z"))
    assert targets_written(last_turn(yard, uploaded)) == [str(yard.ticket(2))]


def targets_written(turn: SaveTurn) -> list[str]:
    return [fact.key for fact in turn.facts if fact.shelf == "targets"]
