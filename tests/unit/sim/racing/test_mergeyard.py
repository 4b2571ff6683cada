"""Mergeyard in the race: what decides is the engine that runs in production, and it knows nothing of the truth."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.decision import Decision
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState
from mergeyard.engine.decide import decide
from mergeyard.sim.racing.policies.mergeyard import CHAIN, TURN, Mergeyard
from mergeyard.sim.racing.policy import Change, News, Orders
from mergeyard.sim.racing.race import Diverged, race
from mergeyard.sim.racing.trace import draw
from mergeyard.sim.racing.workload import Workload
from tests.support.racing import a_trace


def deaf_to_red(queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
    """A wrong engine: whatever a run says, it takes it to have passed."""
    heard = [
        replace(event, checks=dict.fromkeys(event.checks, CheckState.PASSED))
        if isinstance(event, e.ChecksSeen)
        else event
        for event in events
    ]
    return decide(queue, heard, now)


def test_with_a_wrong_engine_it_merges_what_is_bad():
    trace = a_trace(30, 30, bad=[1])
    assert race(trace, Mergeyard(CHAIN, 20)).merged == (0,)
    assert race(trace, Mergeyard(CHAIN, 20, deaf_to_red)).broken == {1}


def test_news_of_a_few_seconds_goes_into_one_turn():
    queue = Mergeyard(CHAIN, 20)
    assert queue.move(News((Change(number=0, at=0),)), 0) == Orders(wake_at=TURN)
    assert queue.move(News((Change(number=1, at=100),)), 100) == Orders(wake_at=TURN)
    assert [trial.stack for trial in queue.move(News(), TURN).start] == [(0,), (0, 1)]


def test_an_engine_that_takes_no_note_of_what_was_done_is_given_up():
    def forgetful(queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
        return decide(queue, [event for event in events if not isinstance(event, e.RunBuilt)], now)

    with pytest.raises(Diverged, match="always something left"):
        race(a_trace(30), Mergeyard(CHAIN, 20, forgetful))


def test_it_never_has_more_runs_than_there_are_workers():
    record = race(a_trace(*[30] * 9, bad=[2, 5], workers=2), Mergeyard(CHAIN, 2))
    assert set(record.merged) == {0, 1, 3, 4, 6, 7, 8}


def test_a_branch_that_a_flaky_run_made_look_broken_is_pushed_to_in_the_end():
    trace = draw(Workload(rate=5, hours=1, workers=3, conflict=0.5, flakes=0.1, parts=2), 228)
    record = race(trace, Mergeyard(CHAIN, 3))
    assert len(record.decided_at) == len(trace.changes)
    assert record.broken == set()
