"""Every policy: what it decides on small days, and what none of them may ever do."""

from statistics import median

import pytest

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.racing.policies import POLICIES
from mergeyard.sim.racing.race import Record
from mergeyard.sim.racing.trace import Trace, draw
from mergeyard.sim.racing.truth import JITTER
from mergeyard.sim.racing.workload import Workload
from tests.support.racing import a_trace, raced

every_policy = pytest.mark.parametrize("policy", POLICIES)
SINGLE_MINDED = [policy for policy in POLICIES if policy not in {"oracle", "mergeyard_best_first"}]
"""Every change waits for a run of its own."""

DAYS = {
    "quiet": Workload(rate=10, hours=1.5, workers=40, parts=4, conflict=0.1),
    "crowded": Workload(rate=14, hours=1, workers=40, parts=3, wide=0.3, success=0.7, conflict=0.3),
    "short of workers": Workload(rate=20, hours=1, workers=2, parts=4, conflict=0.2),
}


def decided(trace: Trace, record: Record) -> list[int]:
    return [round(record.decided_at[change.number] / MINUTE) for change in trace.changes]


# What none may do


@every_policy
@pytest.mark.parametrize("day", DAYS)
def test_nothing_bad_and_no_two_that_break_together_ever_merge(policy: str, day: str):
    trace = draw(DAYS[day], 1)
    record = raced(policy, trace)
    assert record.broken == set()
    assert record.decided_at.keys() == {change.number for change in trace.changes}


@every_policy
def test_flaky_runs_end_nothing_but_stays(policy: str):
    trace = draw(Workload(rate=20, hours=1, workers=20, flakes=0.2), 1)
    record = raced(policy, trace)
    assert record.broken == set()
    assert len(record.decided_at) == len(trace.changes)


@every_policy
def test_the_same_day_gives_the_same_result(policy: str):
    trace = draw(DAYS["quiet"], 3)
    assert raced(policy, trace) == raced(policy, trace)


@pytest.mark.parametrize("policy", SINGLE_MINDED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_oracle_is_beaten_by_none_that_tests_each_alone_but_by_the_luck_of_a_run(policy: str, seed: int):
    trace = draw(DAYS["quiet"], seed)
    waits = {
        name: median(record.decided_at[change.number] - change.at for change in trace.changes)
        for name, record in ((name, raced(name, trace)) for name in (policy, "oracle"))
    }
    assert waits["oracle"] <= waits[policy] * (1 + JITTER)


# What each decides


ONE_BAD_AND_TWO_THAT_BREAK = a_trace(30, 30, 30, 30, bad=[1], breaking=[(0, 2)])


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
def test_each_finds_the_bad_one_and_the_later_of_two_that_break_in_its_own_time(
    policy: str, runs: int, minutes: list[int]
):
    record = raced(policy, ONE_BAD_AND_TWO_THAT_BREAK)
    assert record.merged == (0, 3)
    assert record.innocent == set()
    assert (record.runs, decided(ONE_BAD_AND_TWO_THAT_BREAK, record)) == (runs, minutes)


def test_guesses_come_out_as_the_line_does():
    record = raced("mergeyard_best_first", ONE_BAD_AND_TWO_THAT_BREAK)
    assert record.merged == (0, 3)
    assert record.innocent == set()


def test_a_batch_is_searched_and_the_rest_of_it_merges():
    record = raced("mergeyard_batch", a_trace(30, 30, 30, 30, bad=[1]))
    assert set(record.merged) == {0, 2, 3}
    assert record.innocent == set()


def test_a_good_batch_is_one_run():
    record = raced("mergeyard_batch", a_trace(30, 30, 30))
    assert (record.runs, record.wasted, len(record.merged)) == (1, 0, 3)


@every_policy
def test_one_that_is_good_merges_in_one_run(policy: str):
    record = raced(policy, a_trace(30))
    assert (record.merged, record.runs, record.wasted) == ((0,), 1, 0)


@every_policy
def test_a_train_drops_whoever_is_red_first_and_no_other_policy_does(policy: str):
    record = raced(policy, a_trace(60, 10, bad=[0]))
    assert record.innocent == ({1} if policy == "gitlab" else set())


@pytest.mark.parametrize("policy", ["speculate_all", "submitqueue"])
def test_who_tests_every_future_has_the_run_without_the_bad_one_ready(policy: str):
    trace = a_trace(60, 60, bad=[0])
    first, second = decided(trace, raced(policy, trace))
    assert second - first < 30


@pytest.mark.parametrize("policy", ["oracle", "submitqueue", "mergeyard_chain", "mergeyard_best_first"])
def test_whoever_knows_the_parts_lets_others_pass(policy: str):
    trace = a_trace(100, 10, parts=(1, 2))
    slow, quick = decided(trace, raced(policy, trace))
    assert quick < 15 < slow


@pytest.mark.parametrize(
    ("trace", "late"),
    [
        (a_trace(60, 10), True),
        (a_trace(60, 10, breaking=[(0, 1)]), True),
        (a_trace(60, 10, bad=[1]), False),
        (a_trace(60, 10, bad=[0]), False),
    ],
    ids=["merges behind it", "breaks with it", "is bad itself", "need not wait for a bad one"],
)
def test_oracle_waits_only_for_what_the_outcome_rests_on(trace: Trace, late: bool):
    slow, quick = decided(trace, raced("oracle", trace))
    assert quick == (slow if late else 11)


def test_a_group_waits_five_minutes_for_others():
    trace = a_trace(5, 5, 5)
    assert decided(trace, raced("github", trace)) == [7, 7, 7]


def test_a_window_of_twenty_makes_the_others_wait():
    trace = a_trace(*[110] * 25, workers=50)
    assert max(decided(trace, raced("zuul", trace))[:20]) < 140
    assert min(decided(trace, raced("zuul", trace))[21:]) > 200
