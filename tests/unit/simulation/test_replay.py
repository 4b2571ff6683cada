"""Replays of small histories with known results, with the recorded settings and with others."""

from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.history import Arrival, ConfigChange, EndState, History, StateChange
from tests.support.replay_histories import (
    a_history,
    at_minute,
    cancelled_run,
    end_states,
    failed_arrival,
    failed_run,
    merged_arrival,
    passed_run,
    removed_arrival,
    run_replay,
)


def four_in_sequence() -> History:
    """Four arrived together. Each was tested for ten minutes, as soon as the one before it had passed."""
    return a_history(
        *(merged_arrival(at=0, until=until) for until in (10, 20, 30, 40)),
        runs=[
            passed_run(0, since=0, until=10),
            passed_run(0, 1, since=10, until=20),
            passed_run(1, 2, since=20, until=30),
            passed_run(2, 3, since=30, until=40),
        ],
        concurrency=1,
    )


def test_replaying_with_the_recorded_settings_gives_the_recorded_result():
    result = run_replay(four_in_sequence())
    assert end_states(result) == [("merged", 10), ("merged", 20), ("merged", 30), ("merged", 40)]
    assert [(run.tested_arrivals, run.started_at / MINUTE, run.ended_at / MINUTE) for run in result.runs] == [
        ((0,), 0, 10),
        ((1,), 10, 20),
        ((2,), 20, 30),
        ((3,), 30, 40),
    ]
    assert all(run.is_recorded for run in result.runs)


def test_concurrency_two_halves_the_time_with_the_same_number_of_runs():
    result = run_replay(four_in_sequence(), concurrency=2)
    assert end_states(result) == [("merged", 10), ("merged", 10), ("merged", 20), ("merged", 20)]
    assert len(result.runs) == 4


def test_a_batch_saves_runs():
    result = run_replay(four_in_sequence(), batch=True, batching_min_size=4)
    assert end_states(result) == [("merged", 10)] * 4
    assert [run.tested_arrivals for run in result.runs] == [(0, 1, 2, 3)]


def test_a_run_takes_as_long_as_the_longest_of_those_that_it_tests():
    history = a_history(
        merged_arrival(at=0, until=10),
        merged_arrival(at=0, until=35),
        runs=[passed_run(0, since=0, until=10), passed_run(1, since=10, until=35)],
        concurrency=1,
    )
    assert end_states(run_replay(history, batch=True, batching_min_size=2)) == [("merged", 25)] * 2


def test_a_bad_pull_request_fails_in_every_batch():
    history = a_history(
        merged_arrival(at=0, until=10),
        failed_arrival(at=0, until=20),
        merged_arrival(at=0, until=30),
        runs=[passed_run(0, since=0, until=10), failed_run(1, since=10, until=20), passed_run(2, since=20, until=30)],
        concurrency=1,
    )
    assert end_states(run_replay(history, concurrency=3)) == [("merged", 10), ("failed", 10), ("merged", 20)]
    batched = run_replay(history, batch=True, batching_min_size=3)
    assert [each.end_state for each in batched.outcomes.values()].count(EndState.FAILED) == 1
    assert batched.outcomes[1].end_state is EndState.FAILED


def two_that_conflict() -> History:
    """Both passed alone and failed together."""
    return a_history(
        merged_arrival(at=0, until=10),
        failed_arrival(at=0, until=10),
        runs=[passed_run(0, since=0, until=10), passed_run(1, since=0, until=10), failed_run(0, 1, since=0, until=10)],
    )


def test_the_second_of_two_conflicting_pull_requests_fails_with_any_settings():
    for settings in ({}, {"concurrency": 1}, {"batch": True, "batching_min_size": 2}):
        result = run_replay(two_that_conflict(), **settings)
        assert [result.outcomes[index].end_state for index in (0, 1)] == [EndState.MERGED, EndState.FAILED], settings


def test_of_two_conflicting_pull_requests_the_one_tested_second_fails():
    history = two_that_conflict()
    swapped = replace(history, arrivals=(history.arrivals[0], replace(history.arrivals[1], priority=10)))
    result = run_replay(swapped, concurrency=1)
    assert [result.outcomes[index].end_state for index in (0, 1)] == [EndState.FAILED, EndState.MERGED]


def test_a_removed_pull_request_is_removed_after_the_same_time_unless_it_merged_earlier():
    history = a_history(
        merged_arrival(at=0, until=10),
        removed_arrival(at=0, until=15),
        runs=[passed_run(0, since=0, until=10), cancelled_run(1, since=10, until=15)],
        concurrency=1,
    )
    assert end_states(run_replay(history)) == [("merged", 10), ("removed", 15)]
    assert end_states(run_replay(history, concurrency=2)) == [("merged", 10), ("merged", 10)]


def a_resubmission() -> History:
    """It failed because of a flake, and an hour later the same head merged."""
    again = merged_arrival(at=70, until=80, number=PullRequestNumber(7), head="the same", previous=0)
    return a_history(
        failed_arrival(at=0, until=10, number=PullRequestNumber(7), head="the same"),
        again,
        runs=[failed_run(0, since=0, until=10), passed_run(1, since=70, until=80)],
    )


def test_a_resubmission_comes_after_the_same_pause():
    assert end_states(run_replay(a_resubmission())) == [("failed", 10), ("merged", 80)]


def test_a_merged_pull_request_is_not_resubmitted():
    result = run_replay(a_resubmission(), test_retries=1)
    assert end_states(result) == [("merged", 20)]


def test_a_recorded_flake_is_replayed():
    history = a_history(
        merged_arrival(at=0, until=25),
        runs=[failed_run(0, since=0, until=10), passed_run(0, since=10, until=25)],
        test_retries=1,
    )
    assert end_states(run_replay(history)) == [("merged", 25)]


def test_an_external_push_causes_a_retest():
    history = replace(four_in_sequence(), external_pushes=(at_minute(5),))
    assert end_states(run_replay(history))[0] == ("merged", 15)


def test_a_paused_queue_makes_no_progress():
    paused = (
        StateChange(at_minute(0), QueueState.RUNNING),
        StateChange(at_minute(5), QueueState.PAUSED),
        StateChange(at_minute(60), QueueState.RUNNING),
    )
    result = run_replay(replace(four_in_sequence(), state_changes=paused))
    assert end_states(result) == [("merged", 60), ("merged", 70), ("merged", 80), ("merged", 90)]


def test_a_queue_that_was_left_paused_continues_at_the_end_of_the_period():
    history = replace(
        four_in_sequence(), until=at_minute(100), state_changes=(StateChange(at_minute(5), QueueState.PAUSED),)
    )
    assert end_states(run_replay(history))[0] == ("merged", 100)


def test_settings_change_at_the_recorded_times():
    history = four_in_sequence()
    wider = (*history.config_changes, ConfigChange(at_minute(10), Config(concurrency=3)))
    assert end_states(run_replay(replace(history, config_changes=wider))) == [
        ("merged", 10),
        ("merged", 20),
        ("merged", 20),
        ("merged", 20),
    ]


def test_proposed_settings_apply_to_the_whole_period():
    history = four_in_sequence()
    wider = (*history.config_changes, ConfigChange(at_minute(10), Config(concurrency=3)))
    assert end_states(run_replay(replace(history, config_changes=wider), concurrency=1))[-1] == ("merged", 40)


def test_a_run_that_exceeds_the_testing_timeout_fails():
    history = four_in_sequence()
    assert end_states(run_replay(history, testing_timeout_minutes=5)) == [
        ("failed", 5),
        ("failed", 10),
        ("failed", 15),
        ("failed", 20),
    ]


def test_an_arrival_that_ended_without_a_test_is_not_tested():
    untested = Arrival(
        number=PullRequestNumber(0),
        head=Sha("b"),
        admitted_at=at_minute(0),
        end_state=EndState.UNTESTED,
        ended_at=at_minute(3),
    )
    history = a_history(untested, merged_arrival(at=0, until=10), runs=[passed_run(1, since=0, until=10)])
    result = run_replay(history)
    assert end_states(result) == [("untested", 3), ("merged", 10)]
    assert [run.tested_arrivals for run in result.runs] == [(1,)]


def test_a_stacked_pull_request_merges_after_the_one_below_it():
    history = a_history(
        merged_arrival(at=0, until=20, priority=200),
        merged_arrival(at=0, until=30, priority=0, stacked_on=(0,)),
        runs=[passed_run(0, since=10, until=20), passed_run(1, since=20, until=30)],
        concurrency=1,
    )
    assert end_states(run_replay(history)) == [("merged", 10), ("merged", 20)]


def test_an_empty_history_has_no_outcomes():
    assert run_replay(a_history()).outcomes == {}
