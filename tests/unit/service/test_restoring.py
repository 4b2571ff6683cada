"""A queue that another replica changed is caught up with, however many turns were missed."""

import random
from collections.abc import Sequence

import pytest

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event, PullTouched
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState
from mergeyard.service import restoring
from tests.model.world import RandomWorld
from tests.support.builders import a_yard
from tests.support.every_day import only_first
from tests.support.shelves import Shelves, told


@pytest.mark.parametrize("seed", only_first(20, range(60)))
def test_whoever_catches_up_now_and_then_has_the_queue_as_it_is(seed: int):
    world, chance = RandomWorld(seed), random.Random(seed)
    shelves = Shelves(world.world.queue)
    follower, version = shelves.load(), shelves.version

    def follow(before: Queue, events: Sequence[Event], decision: Decision) -> None:
        nonlocal follower, version
        if decision.queue is not before:
            shelves.follow(before, events, decision)
        if chance.random() < 0.3:
            follower, version = restoring.catch_up(follower, shelves.changes(version)), shelves.version
            assert told(follower) == told(shelves.load())

    world.world.watchers.append(follow)
    world.run()
    assert told(restoring.catch_up(follower, shelves.changes(version))) == told(world.world.queue)


def test_what_did_not_change_stays_the_same_value():
    yard = a_yard(prs=5)
    shelves = Shelves(yard.queue)
    follower = shelves.load()
    before = yard.queue
    shelves.follow(before, (), yard.tell(yard.verdict(CheckState.PASSED, 3)))
    caught = restoring.catch_up(follower, shelves.changes(1))
    same = [stay.number for stay in caught.submissions.values() if follower.submissions[stay.ticket] is stay]
    assert same == [1, 2, 4, 5]
    assert told(caught) == told(yard.queue)


def test_who_is_to_be_looked_at_is_not_forgotten():
    yard = a_yard(prs=2)
    shelves = Shelves(yard.queue)
    yard.tell(PullTouched(number=PrNumber(2)))
    assert [*restoring.catch_up(yard.queue, shelves.changes(0)).looks] == [yard.ticket(2)]


def test_who_came_through_another_replica_is_looked_at():
    yard = a_yard(prs=2)
    shelves = Shelves(yard.queue)
    follower, before = shelves.load(), yard.queue
    shelves.follow(before, (), yard.submit(3))
    assert [*restoring.catch_up(follower, shelves.changes(1)).looks] == [yard.ticket(3)]


def test_one_that_was_too_far_behind_looks_at_everybody():
    yard = a_yard(prs=2)
    assert [*restoring.begin_anew(Shelves(yard.queue).loaded()).looks] == [yard.ticket(1), yard.ticket(2)]
