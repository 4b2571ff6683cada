"""What is stored of a queue is the queue: after every turn of random worlds, and only what changed is written."""

from collections.abc import Sequence

import pytest

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event, TargetsUploaded
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState
from mergeyard.domain.targets import named
from mergeyard.ports.writes import SaveTurn
from mergeyard.service import shelving
from mergeyard.service.long_targets import encoded
from mergeyard.service.written_targets import WrittenTargets
from tests.model.world import RandomWorld
from tests.support.builders import Yard, a_parallel_yard, a_yard
from tests.support.every_day import only_first
from tests.support.shelves import NOW, Shelves, told


def last_turn(yard: Yard, *events: Event) -> SaveTurn:
    before = yard.queue
    decision = yard.tell(*events)
    return shelving.changes(before, decision.queue, 2, decision.concluded, decision.finished, NOW)


@pytest.mark.parametrize("seed", only_first(20, range(60)))
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


def test_targets_that_are_at_hand_as_written_are_not_written_anew():
    yard = a_parallel_yard("x", "y")
    mine, others = named("z"), named("z")
    at_hand = WrittenTargets(b"as it was sent", 1, mine)
    for targets, body in ((mine, at_hand.body), (others, encoded(others))):
        before = yard.queue
        decision = yard.tell(TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=targets))
        turn = shelving.changes(before, decision.queue, 2, decision.concluded, decision.finished, NOW, [at_hand])
        assert [fact.body for fact in turn.facts if fact.shelf == "targets"] == [body]
        yard.tell(TargetsUploaded(number=PrNumber(2), head=yard.head(2), targets=named("y")))


def targets_written(turn: SaveTurn) -> list[str]:
    return [fact.key for fact in turn.facts if fact.shelf == "targets"]
