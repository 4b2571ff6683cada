"""A replay: small pasts whose replay is known by thought, under the settings as they were and under others."""

from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.states import QueueState
from mergeyard.sim.replaying.history import Arrival, End, History, Order, Setting
from tests.support.pasts_to_replay import (
    a_past,
    ends,
    failed,
    green,
    left,
    merged,
    minute,
    red,
    replay,
    stopped,
)


def one_after_the_other() -> History:
    """Four came at once. Each was tested for ten minutes, from the moment in which the one before it was seen green."""
    return a_past(
        *(merged(at=0, until=until) for until in (10, 20, 30, 40)),
        runs=[
            green(0, since=0, until=10),
            green(0, 1, since=10, until=20),
            green(1, 2, since=20, until=30),
            green(2, 3, since=30, until=40),
        ],
        concurrency=1,
    )


def test_as_it_was_it_is_what_it_was():
    replayed = replay(one_after_the_other())
    assert ends(replayed) == [("merged", 10), ("merged", 20), ("merged", 30), ("merged", 40)]
    assert [(run.tested, run.started_at / MINUTE, run.ended_at / MINUTE) for run in replayed.runs] == [
        ((0,), 0, 10),
        ((1,), 10, 20),
        ((2,), 20, 30),
        ((3,), 30, 40),
    ]
    assert all(run.seen for run in replayed.runs)


def test_two_at_once_halve_the_wait_and_cost_as_many_runs():
    replayed = replay(one_after_the_other(), concurrency=2)
    assert ends(replayed) == [("merged", 10), ("merged", 10), ("merged", 20), ("merged", 20)]
    assert len(replayed.runs) == 4


def test_a_batch_saves_runs():
    replayed = replay(one_after_the_other(), batch=True, batching_min_size=4)
    assert ends(replayed) == [("merged", 10)] * 4
    assert [run.tested for run in replayed.runs] == [(0, 1, 2, 3)]


def test_a_run_takes_as_long_as_the_longest_of_those_that_it_tests():
    past = a_past(
        merged(at=0, until=10),
        merged(at=0, until=35),
        runs=[green(0, since=0, until=10), green(1, since=10, until=35)],
        concurrency=1,
    )
    assert ends(replay(past, batch=True, batching_min_size=2)) == [("merged", 25)] * 2


def test_whoever_was_bad_is_bad_in_every_company():
    past = a_past(
        merged(at=0, until=10),
        failed(at=0, until=20),
        merged(at=0, until=30),
        runs=[green(0, since=0, until=10), red(1, since=10, until=20), green(2, since=20, until=30)],
        concurrency=1,
    )
    assert ends(replay(past, concurrency=3)) == [("merged", 10), ("failed", 10), ("merged", 20)]
    together = replay(past, batch=True, batching_min_size=3)
    assert [each.end for each in together.outcomes.values()].count(End.FAILED) == 1
    assert together.outcomes[1].end is End.FAILED


def two_that_break_together() -> History:
    """Either was green without the other, and together they were red."""
    return a_past(
        merged(at=0, until=10),
        failed(at=0, until=10),
        runs=[green(0, since=0, until=10), green(1, since=0, until=10), red(0, 1, since=0, until=10)],
    )


def test_whoever_breaks_with_another_fails_behind_it_and_alone_only_when_that_has_merged():
    for wishes in ({}, {"concurrency": 1}, {"batch": True, "batching_min_size": 2}):
        replayed = replay(two_that_break_together(), **wishes)
        assert [replayed.outcomes[place].end for place in (0, 1)] == [End.MERGED, End.FAILED], wishes


def test_of_two_that_break_together_it_is_the_second_that_fails_whoever_that_is():
    past = two_that_break_together()
    swapped = replace(past, arrivals=(past.arrivals[0], replace(past.arrivals[1], priority=10)))
    replayed = replay(swapped, concurrency=1)
    assert [replayed.outcomes[place].end for place in (0, 1)] == [End.FAILED, End.MERGED]


def test_whoever_left_by_hand_leaves_after_the_same_time_and_merges_if_it_is_decided_by_then():
    past = a_past(
        merged(at=0, until=10),
        left(at=0, until=15),
        runs=[green(0, since=0, until=10), stopped(1, since=10, until=15)],
        concurrency=1,
    )
    assert ends(replay(past)) == [("merged", 10), ("left", 15)]
    assert ends(replay(past, concurrency=2)) == [("merged", 10), ("merged", 10)]


def came_again() -> History:
    """It failed for a flake, and an hour later the same head merged."""
    again = merged(at=70, until=80, number=PrNumber(7), head="the same", after=0)
    return a_past(
        failed(at=0, until=10, number=PrNumber(7), head="the same"),
        again,
        runs=[red(0, since=0, until=10), green(1, since=70, until=80)],
    )


def test_whoever_came_again_comes_again_after_the_same_pause():
    assert ends(replay(came_again())) == [("failed", 10), ("merged", 80)]


def test_whoever_has_merged_has_no_need_to_come_again():
    replayed = replay(came_again(), test_retries=1)
    assert ends(replayed) == [("merged", 20)]


def test_a_red_run_that_was_green_when_it_was_run_again_is_red_again_where_it_was():
    past = a_past(
        merged(at=0, until=25), runs=[red(0, since=0, until=10), green(0, since=10, until=25)], test_retries=1
    )
    assert ends(replay(past)) == [("merged", 25)]


def test_the_target_that_somebody_pushed_to_is_tested_upon_again():
    past = replace(one_after_the_other(), pushes=(minute(5),))
    assert ends(replay(past))[0] == ("merged", 15)


def test_in_a_paused_queue_nothing_goes_on():
    paused = (
        Order(minute(0), QueueState.RUNNING),
        Order(minute(5), QueueState.PAUSED),
        Order(minute(60), QueueState.RUNNING),
    )
    replayed = replay(replace(one_after_the_other(), orders=paused))
    assert ends(replayed) == [("merged", 60), ("merged", 70), ("merged", 80), ("merged", 90)]


def test_a_queue_that_was_left_paused_goes_on_when_the_period_is_over():
    past = replace(one_after_the_other(), until=minute(100), orders=(Order(minute(5), QueueState.PAUSED),))
    assert ends(replay(past))[0] == ("merged", 100)


def test_settings_change_when_they_did():
    past = one_after_the_other()
    wider = (*past.settings, Setting(minute(10), Config(concurrency=3)))
    assert ends(replay(replace(past, settings=wider))) == [
        ("merged", 10),
        ("merged", 20),
        ("merged", 20),
        ("merged", 20),
    ]


def test_what_is_wished_for_holds_all_the_time():
    past = one_after_the_other()
    wider = (*past.settings, Setting(minute(10), Config(concurrency=3)))
    assert ends(replay(replace(past, settings=wider), concurrency=1))[-1] == ("merged", 40)


def test_a_run_that_takes_longer_than_it_may_fails():
    past = one_after_the_other()
    assert ends(replay(past, testing_timeout_minutes=5)) == [
        ("failed", 5),
        ("failed", 10),
        ("failed", 15),
        ("failed", 20),
    ]


def test_one_about_whom_no_test_had_a_say_is_never_tested():
    beside = Arrival(number=PrNumber(0), head=Sha("b"), at=minute(0), end=End.BESIDE, ended_at=minute(3))
    past = a_past(beside, merged(at=0, until=10), runs=[green(1, since=0, until=10)])
    replayed = replay(past)
    assert ends(replayed) == [("beside", 3), ("merged", 10)]
    assert [run.tested for run in replayed.runs] == [(1,)]


def test_those_that_stand_upon_another_go_behind_it():
    past = a_past(
        merged(at=0, until=20, priority=200),
        merged(at=0, until=30, priority=0, stands_upon=(0,)),
        runs=[green(0, since=10, until=20), green(1, since=20, until=30)],
        concurrency=1,
    )
    assert ends(replay(past)) == [("merged", 10), ("merged", 20)]


def test_nothing_is_replayed_in_no_time():
    assert replay(a_past()).outcomes == {}
