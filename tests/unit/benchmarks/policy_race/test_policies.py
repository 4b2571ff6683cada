"""Every policy: its decisions on small workloads, and invariants of all policies."""

from collections.abc import Sequence
from statistics import median

import pytest
from msgspec.structs import replace

from benchmarks.policy_race.policies import POLICIES
from benchmarks.policy_race.policies.mergeyard import CHAIN, DECISION_INTERVAL_MS, Mergeyard
from benchmarks.policy_race.policy import Change, Observations
from benchmarks.policy_race.race import RaceResult, run_race
from benchmarks.policy_race.workload import DURATION_JITTER, Trace, Workload, generate_trace
from mergeyard.domain import events as e
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.states import CheckState
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine.decide import decide
from mergeyard.simulation.engine_driver import Actions, SimulationDiverged
from tests.support.long_tests import mark_long_after
from tests.support.race_traces import a_trace, run_policy

pytestmark = pytest.mark.long

every_policy = pytest.mark.parametrize("policy", POLICIES)
TESTING_EACH_ALONE = [policy for policy in POLICIES if policy not in {"oracle", "mergeyard_best_first"}]
"""Every change waits for a run of its own."""

DAYS = {
    "quiet": Workload(rate=10, hours=1.5, workers=40, parts=4, conflict=0.1),
    "crowded": Workload(rate=14, hours=1, workers=40, parts=3, wide=0.3, success=0.7, conflict=0.3),
    "short of workers": Workload(rate=20, hours=1, workers=2, parts=4, conflict=0.2),
}


def decision_minutes(trace: Trace, record: RaceResult) -> list[int]:
    return [round(record.decided_at[change.number] / MINUTE) for change in trace.changes]


# Invariants


@every_policy
@pytest.mark.parametrize("day", mark_long_after(1, list(DAYS)))
def test_no_bad_change_and_no_conflicting_pair_merges(policy: str, day: str):
    trace = generate_trace(DAYS[day], 1)
    record = run_policy(policy, trace)
    assert record.wrongly_merged == set()
    assert record.decided_at.keys() == {change.number for change in trace.changes}


@every_policy
def test_with_flaky_runs_every_change_is_decided_and_none_merges_wrongly(policy: str):
    trace = generate_trace(Workload(rate=20, hours=1, workers=20, flakes=0.2), 1)
    record = run_policy(policy, trace)
    assert record.wrongly_merged == set()
    assert len(record.decided_at) == len(trace.changes)


@every_policy
def test_the_same_day_gives_the_same_result(policy: str):
    trace = generate_trace(DAYS["quiet"], 3)
    assert run_policy(policy, trace) == run_policy(policy, trace)


@pytest.mark.parametrize("policy", TESTING_EACH_ALONE)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_policy_that_tests_each_change_alone_is_faster_than_oracle(policy: str, seed: int):
    trace = generate_trace(DAYS["quiet"], seed)
    waits = {
        name: median(record.decided_at[change.number] - change.arrived_at for change in trace.changes)
        for name, record in ((name, run_policy(name, trace)) for name in (policy, "oracle"))
    }
    assert waits["oracle"] <= waits[policy] * (1 + DURATION_JITTER)


# Decisions of each policy


ONE_BAD_AND_TWO_CONFLICTING = a_trace(30, 30, 30, 30, bad=[1], breaking=[(0, 2)])


@pytest.mark.parametrize(
    ("policy", "runs", "minutes"),
    [
        ("oracle", 4, [31, 30, 31, 33]),
        ("serial", 4, [31, 61, 92, 123]),
        ("zuul", 7, [31, 31, 59, 89]),
        ("github", 7, [89, 31, 59, 89]),
        ("gitlab", 7, [31, 30, 59, 89]),
        ("bors", 6, [31, 90, 150, 181]),
        ("tide", 10, [61, 91, 122, 153]),
        ("speculate_all", 15, [31, 31, 31, 33]),
        ("submitqueue", 15, [31, 31, 31, 33]),
        ("mergeyard_chain", 7, [31, 31, 62, 93]),
    ],
)
def test_every_policy_fails_the_bad_change_and_the_later_of_two_conflicting_ones(
    policy: str, runs: int, minutes: list[int]
):
    record = run_policy(policy, ONE_BAD_AND_TWO_CONFLICTING)
    assert record.merged == (0, 3)
    assert record.wrongly_failed == set()
    assert (record.runs, decision_minutes(ONE_BAD_AND_TWO_CONFLICTING, record)) == (runs, minutes)


def test_best_first_speculation_has_the_same_outcome_as_the_chain():
    record = run_policy("mergeyard_best_first", ONE_BAD_AND_TWO_CONFLICTING)
    assert record.merged == (0, 3)
    assert record.wrongly_failed == set()


def test_a_failed_batch_is_bisected_and_the_rest_of_it_merges():
    record = run_policy("mergeyard_batch", a_trace(30, 30, 30, 30, bad=[1]))
    assert set(record.merged) == {0, 2, 3}
    assert record.wrongly_failed == set()


def test_a_passed_batch_needs_one_run():
    record = run_policy("mergeyard_batch", a_trace(30, 30, 30))
    assert (record.runs, record.wasted_runs, len(record.merged)) == (1, 0, 3)


@every_policy
def test_a_good_change_merges_after_one_run(policy: str):
    record = run_policy(policy, a_trace(30))
    assert (record.merged, record.runs, record.wasted_runs) == ((0,), 1, 0)


@every_policy
def test_only_gitlab_fails_a_good_change_that_was_tested_with_a_bad_one(policy: str):
    record = run_policy(policy, a_trace(60, 10, bad=[0]))
    assert record.wrongly_failed == ({1} if policy == "gitlab" else set())


@pytest.mark.parametrize("policy", ["speculate_all", "submitqueue"])
def test_policies_that_test_every_combination_have_the_run_without_the_bad_change_ready(policy: str):
    trace = a_trace(60, 60, bad=[0])
    first, second = decision_minutes(trace, run_policy(policy, trace))
    assert second - first < 30


@pytest.mark.parametrize("policy", ["oracle", "submitqueue", "mergeyard_chain", "mergeyard_best_first"])
def test_policies_that_know_the_parts_do_not_delay_independent_changes(policy: str):
    trace = a_trace(100, 10, parts=(1, 2))
    slow, quick = decision_minutes(trace, run_policy(policy, trace))
    assert quick < 15 < slow


@pytest.mark.parametrize(
    ("trace", "waits"),
    [
        (a_trace(60, 10), True),
        (a_trace(60, 10, breaking=[(0, 1)]), True),
        (a_trace(60, 10, bad=[1]), False),
        (a_trace(60, 10, bad=[0]), False),
    ],
    ids=["merges behind it", "conflicts with it", "is bad itself", "does not wait for a bad change"],
)
def test_oracle_waits_only_for_changes_that_affect_the_outcome(trace: Trace, waits: bool):
    slow, quick = decision_minutes(trace, run_policy("oracle", trace))
    assert quick == (slow if waits else 11)


def test_a_github_group_waits_five_minutes_for_others():
    trace = a_trace(5, 5, 5)
    assert decision_minutes(trace, run_policy("github", trace)) == [7, 7, 7]


def test_a_zuul_window_of_twenty_delays_the_other_changes():
    trace = a_trace(*[110] * 25, workers=50)
    assert max(decision_minutes(trace, run_policy("zuul", trace))[:20]) < 140
    assert min(decision_minutes(trace, run_policy("zuul", trace))[21:]) > 200


def decide_as_if_all_passed(queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
    """A wrong engine: it treats every check as passed."""
    passing = [
        replace(event, checks=dict.fromkeys(event.checks, CheckState.PASSED))
        if isinstance(event, e.ChecksObserved)
        else event
        for event in events
    ]
    return decide(queue, passing, now)


def test_with_a_wrong_engine_it_merges_bad_changes():
    trace = a_trace(30, 30, bad=[1])
    assert run_race(trace, Mergeyard(CHAIN, 20)).merged == (0,)
    assert run_race(trace, Mergeyard(CHAIN, 20, decide_as_if_all_passed)).wrongly_merged == {1}


def test_observations_of_a_few_seconds_are_one_decision():
    queue = Mergeyard(CHAIN, 20)
    assert queue.react(Observations((Change(number=0, arrived_at=0),)), 0) == Actions(wake_at=DECISION_INTERVAL_MS)
    assert queue.react(Observations((Change(number=1, arrived_at=100),)), 100) == Actions(wake_at=DECISION_INTERVAL_MS)
    assert [run.stack for run in queue.react(Observations(), DECISION_INTERVAL_MS).runs_to_start] == [(0,), (0, 1)]


def test_an_engine_that_ignores_finished_tasks_is_stopped():
    def decide_without_built_runs(queue: Queue, events: Sequence[e.Event], now: Instant) -> Decision:
        return decide(queue, [event for event in events if not isinstance(event, e.RunBuilt)], now)

    with pytest.raises(SimulationDiverged, match="always another pending task"):
        run_race(a_trace(30), Mergeyard(CHAIN, 20, decide_without_built_runs))


def test_mergeyard_never_has_more_runs_than_workers():
    record = run_race(a_trace(*[30] * 9, bad=[2, 5], workers=2), Mergeyard(CHAIN, 2))
    assert set(record.merged) == {0, 1, 3, 4, 6, 7, 8}


def test_a_base_that_looks_broken_because_of_a_flake_does_not_stop_the_queue():
    trace = generate_trace(Workload(rate=5, hours=1, workers=3, conflict=0.5, flakes=0.1, parts=2), 228)
    record = run_race(trace, Mergeyard(CHAIN, 3))
    assert len(record.decided_at) == len(trace.changes)
    assert record.wrongly_merged == set()
