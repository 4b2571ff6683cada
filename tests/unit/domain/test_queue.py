"""The whole queue is one value: it tells its state, and survives a journey through JSON."""

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import ALL, named
from mergeyard.engine.decide import decide
from mergeyard.engine.work import work
from tests.support.builders import Yard, a_config, a_plain_queue, a_submission

PLAIN = a_plain_queue(a_submission(1))


def a_rich_yard() -> Yard:
    """Something in every place: a landing, a line of two lanes, a bisection, waiting, held, not ready, looks."""
    yard = Yard(a_config(mode=Mode.PARALLEL, batch=2, concurrency=3, bisection_concurrency=1))
    yard.submit(1, 2, targets=named("x"))
    yard.submit(3, 4, targets=named("y"))
    yard.submit(5, no_batch=True, targets=named("x", "z"))
    yard.build()
    yard.submit(6, priority=50, targets=ALL)
    yard.open(7, upon=yard.head(6))
    yard.tell(yard.submission(7, priority=20, targets=ALL))
    yard.submit(8)
    yard.fails(1, 2)
    yard.passes(3, 4)
    yard.tell(e.PullTouched(number=PrNumber(6)), e.TargetTouched(), e.HostLost())
    return yard


def stored(queue: Queue) -> Queue:
    return msgspec.json.decode(msgspec.json.encode(queue), type=Queue)


@pytest.fixture(scope="module")
def rich() -> Queue:
    return a_rich_yard().queue


def test_the_rich_queue_is_rich(rich: Queue):
    places = (rich.line.batches, rich.bisections, rich.waiting, rich.held, rich.not_ready, rich.looks, rich.runs)
    assert all(places)


def test_a_queue_is_the_same_after_a_journey_through_json(rich: Queue):
    assert stored(rich) == rich


def test_a_queue_asks_for_the_same_work_after_a_journey_through_json(rich: Queue):
    assert work(stored(rich)) == work(rich)


def test_a_queue_decides_the_same_after_a_journey_through_json(rich: Queue):
    news = [e.HostFound(), e.TargetSeen(tip=None, as_of=rich.counters.turns)]
    now = a_rich_yard().now
    assert decide(stored(rich), news, now) == decide(rich, news, now)


def test_a_landing_is_the_same_after_a_journey_through_json():
    yard = Yard(a_config())
    yard.submit(1)
    yard.build()
    yard.passes(1)
    yard.intend()
    assert stored(yard.queue) == yard.queue


def test_a_queue_is_in_the_state_that_was_asked_for():
    assert replace(PLAIN, ordered_state=QueueState.DRAINING).state is QueueState.DRAINING


def test_a_queue_whose_line_has_another_mode_than_its_settings_switches():
    assert replace(PLAIN, config=a_config(mode=Mode.PARALLEL)).state is QueueState.SWITCHING_MODES


def test_paused_beats_switching():
    switching = replace(PLAIN, config=a_config(mode=Mode.PARALLEL))
    assert replace(switching, ordered_state=QueueState.PAUSED).state is QueueState.PAUSED


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_a_running_and_a_draining_queue_may_start_tests(state: QueueState):
    assert replace(PLAIN, ordered_state=state).may_start


def test_a_paused_queue_starts_nothing():
    assert not replace(PLAIN, ordered_state=QueueState.PAUSED).may_start


def test_a_switching_queue_starts_nothing():
    assert not replace(PLAIN, config=a_config(mode=Mode.PARALLEL)).may_start


def test_a_pull_request_is_found_by_its_number():
    assert PLAIN.submission_of(PrNumber(1)) == a_submission(1)


def test_a_pull_request_that_is_not_here_is_not_found():
    assert PLAIN.submission_of(PrNumber(2)) is None
