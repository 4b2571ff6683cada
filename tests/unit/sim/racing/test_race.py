"""The race: it counts runs, waste, innocents and broken merges, and stops a policy that cheats or never ends."""

from collections.abc import Callable

import pytest

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.racing.policy import News, Orders, Trial
from mergeyard.sim.racing.race import Diverged, race
from tests.support.racing import a_trace

ONE, TWO = Trial(stack=(0,)), Trial(stack=(0, 1))


class Scripted:
    """Orders what is written, move by move."""

    def __init__(self, *moves: Orders) -> None:
        self.moves = list(moves)
        self.heard: list[tuple[int, News]] = []

    def move(self, news: News, now: int) -> Orders:
        self.heard.append((now, news))
        return self.moves.pop(0) if self.moves else Orders()


def deciding(*calls: Callable[[Orders], None]) -> Orders:
    made = Orders()
    for call in calls:
        call(made)
    return made


def test_a_policy_hears_what_arrives_and_what_ends_when_it_does():
    policy = Scripted(Orders(start=[ONE]), Orders(), deciding(lambda to: to.merge(0, ONE), lambda to: to.merge(1)))
    race(a_trace(30, 30), policy)
    assert [(round(at / MINUTE), len(news.arrived), len(news.finished)) for at, news in policy.heard] == [
        (0, 1, 0),
        (1, 1, 0),
        (31, 0, 1),
    ]


def test_runs_that_no_decision_rests_on_are_wasted_and_stopped_ones_too():
    stopped = Trial(stack=(1,))
    policy = Scripted(
        Orders(start=[ONE]),
        Orders(start=[TWO, stopped], stop=[stopped]),
        Orders(),
        deciding(lambda to: to.merge(0, ONE), lambda to: to.merge(1, ONE)),
    )
    record = race(a_trace(30, 30), policy)
    assert (record.runs, record.wasted) == (3, 2)


def test_a_stopped_run_is_never_heard_of_again():
    policy = Scripted(Orders(start=[ONE]), Orders(stop=[ONE], wake_at=90 * MINUTE), deciding(
        lambda to: to.fail(0), lambda to: to.fail(1)
    ))  # fmt: skip
    race(a_trace(30, 30), policy)
    assert [(at, news.finished) for at, news in policy.heard[2:]] == [(90 * MINUTE, ())]


def test_whoever_fails_though_good_and_in_conflict_with_nobody_merged_is_innocent():
    trace = a_trace(*[30] * 5, bad=[0], breaking=[(1, 2), (3, 4)])
    everything = deciding(
        lambda to: to.fail(0),
        lambda to: to.merge(1),
        lambda to: to.fail(2),
        lambda to: to.fail(3),
        lambda to: to.fail(4),
    )
    record = race(trace, Scripted(*(Orders() for _ in range(4)), everything))
    assert record.innocent == {3, 4}
    assert record.broken == set()


def test_a_bad_one_that_merges_and_the_second_of_two_that_break_together_are_broken_merges():
    trace = a_trace(30, 30, 30, bad=[0], breaking=[(1, 2)])
    everything = deciding(lambda to: to.merge(0), lambda to: to.merge(2), lambda to: to.merge(1))
    record = race(trace, Scripted(Orders(), Orders(), everything))
    assert record.broken == {0, 1}
    assert record.merged == (0, 2, 1)


def test_nobody_is_decided_twice():
    with pytest.raises(ValueError, match="decided twice"):
        race(a_trace(30, 30), Scripted(deciding(lambda to: to.fail(0), lambda to: to.merge(0))))


def test_nobody_has_more_runs_than_workers():
    with pytest.raises(ValueError, match="2 runs for 1 workers"):
        race(a_trace(30, 30, workers=1), Scripted(Orders(start=[ONE, TWO])))


def test_a_policy_that_stops_deciding_is_stopped():
    with pytest.raises(Diverged, match="2 of 2 changes"):
        race(a_trace(30, 30), Scripted())


class Dreamer:
    def move(self, _: News, now: int) -> Orders:
        return Orders(wake_at=now + MINUTE)


def test_a_policy_that_never_decides_is_stopped_too():
    with pytest.raises(Diverged):
        race(a_trace(5, 5), Dreamer())
