"""Which queues are foretold, and what of them is handed over."""

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import named
from mergeyard.sim.foretelling.asking import MOST, MOST_NAMES, to_foretell
from mergeyard.sim.world import START
from tests.support.builders import a_parallel_yard, a_yard
from tests.support.foretelling import certain


def test_only_those_that_are_admitted_are_handed_over():
    yard = a_yard(prs=2)
    yard.open(3)
    yard.change(3, draft=True)
    yard.submit(3)
    asked = to_foretell(certain(yard.queue))
    assert asked is not None
    assert list(asked.tickets) == [PrNumber(1), PrNumber(2)]
    assert len(asked.not_ready) == 0
    assert asked.line == yard.queue.line


def test_those_under_search_are_handed_over_as_well():
    yard = a_yard(prs=4, batch=4)
    yard.fails(1, 2, 3, 4)
    asked = to_foretell(certain(yard.queue))
    assert asked is not None
    assert list(asked.tickets) == [PrNumber(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    "queue",
    [
        certain(a_yard().queue),
        replace(certain(a_yard(prs=1).queue), durations=()),
        replace(certain(a_yard(prs=1).queue), ordered_state=QueueState.PAUSED),
        certain(a_yard(prs=MOST + 1, concurrency=1).queue),
        certain(a_parallel_yard().queue),
    ],
    ids=["empty", "no run was green yet", "paused", "too many", "empty lanes"],
)
def test_of_some_queues_nothing_is_foretold(queue: Queue):
    assert to_foretell(queue) is None


def test_nothing_is_foretold_of_one_that_would_take_long_to_write_down():
    yard = a_parallel_yard("x")
    yard.submit(2, targets=named(*map(str, range(MOST_NAMES))))
    assert to_foretell(certain(yard.queue)) is None


def test_what_is_handed_over_is_understood_as_it_was():
    yard = a_yard(prs=6, batch=2, concurrency=2)
    yard.fails(1, 2)
    yard.build()
    yard.passes(3, 4)
    asked = to_foretell(certain(yard.queue))
    written = msgpack.encode((asked, START))
    assert msgpack.decode(written, type=tuple[Queue, Instant]) == (asked, START)
