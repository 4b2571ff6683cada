"""The race: it counts runs, wasted runs and wrong decisions, and stops invalid or endless policies."""

from collections.abc import Callable

import pytest

from benchmarks.policy_race.policy import Observations
from benchmarks.policy_race.race import run_race
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.engine_driver import Actions, SimulatedRun, SimulationDiverged
from tests.support.race_traces import a_trace

pytestmark = pytest.mark.long

ONE, TWO = SimulatedRun(stack=(0,)), SimulatedRun(stack=(0, 1))


class ScriptedPolicy:
    """Returns the given actions one after the other."""

    def __init__(self, *script: Actions) -> None:
        self.script = list(script)
        self.observed: list[tuple[int, Observations]] = []

    def react(self, observations: Observations, now: int) -> Actions:
        self.observed.append((now, observations))
        return self.script.pop(0) if self.script else Actions()


def actions_of(*calls: Callable[[Actions], None]) -> Actions:
    actions = Actions()
    for call in calls:
        call(actions)
    return actions


def test_a_policy_observes_arrivals_and_finished_runs_when_they_happen():
    policy = ScriptedPolicy(
        Actions(runs_to_start=[ONE]), Actions(), actions_of(lambda to: to.merge(0, ONE), lambda to: to.merge(1))
    )
    run_race(a_trace(30, 30), policy)
    assert [
        (round(at / MINUTE), len(observations.arrived), len(observations.finished))
        for at, observations in policy.observed
    ] == [
        (0, 1, 0),
        (1, 1, 0),
        (31, 0, 1),
    ]


def test_runs_that_no_decision_used_and_stopped_runs_are_wasted():
    stopped = SimulatedRun(stack=(1,))
    policy = ScriptedPolicy(
        Actions(runs_to_start=[ONE]),
        Actions(runs_to_start=[TWO, stopped], runs_to_stop=[stopped]),
        Actions(),
        actions_of(lambda to: to.merge(0, ONE), lambda to: to.merge(1, ONE)),
    )
    record = run_race(a_trace(30, 30), policy)
    assert (record.runs, record.wasted_runs) == (3, 2)


def test_a_stopped_run_never_finishes():
    policy = ScriptedPolicy(Actions(runs_to_start=[ONE]), Actions(runs_to_stop=[ONE], wake_at=90 * MINUTE), actions_of(
        lambda to: to.fail(0), lambda to: to.fail(1)
    ))  # fmt: skip
    run_race(a_trace(30, 30), policy)
    assert [(at, observations.finished) for at, observations in policy.observed[2:]] == [(90 * MINUTE, ())]


def test_a_good_change_that_fails_without_a_merged_conflict_is_wrongly_failed():
    trace = a_trace(*[30] * 5, bad=[0], breaking=[(1, 2), (3, 4)])
    decisions = actions_of(
        lambda to: to.fail(0),
        lambda to: to.merge(1),
        lambda to: to.fail(2),
        lambda to: to.fail(3),
        lambda to: to.fail(4),
    )
    record = run_race(trace, ScriptedPolicy(*(Actions() for _ in range(4)), decisions))
    assert record.wrongly_failed == {3, 4}
    assert record.wrongly_merged == set()


def test_a_merged_bad_change_and_the_second_of_two_conflicting_ones_are_wrongly_merged():
    trace = a_trace(30, 30, 30, bad=[0], breaking=[(1, 2)])
    decisions = actions_of(lambda to: to.merge(0), lambda to: to.merge(2), lambda to: to.merge(1))
    record = run_race(trace, ScriptedPolicy(Actions(), Actions(), decisions))
    assert record.wrongly_merged == {0, 1}
    assert record.merged == (0, 2, 1)


def test_a_change_cannot_be_decided_twice():
    with pytest.raises(ValueError, match="decided twice"):
        run_race(a_trace(30, 30), ScriptedPolicy(actions_of(lambda to: to.fail(0), lambda to: to.merge(0))))


def test_a_policy_cannot_have_more_runs_than_workers():
    with pytest.raises(ValueError, match="2 runs for 1 workers"):
        run_race(a_trace(30, 30, workers=1), ScriptedPolicy(Actions(runs_to_start=[ONE, TWO])))


def test_a_policy_that_stops_deciding_is_stopped():
    with pytest.raises(SimulationDiverged, match="2 of 2 changes"):
        run_race(a_trace(30, 30), ScriptedPolicy())


class IdlePolicy:
    def react(self, _: Observations, now: int) -> Actions:
        return Actions(wake_at=now + MINUTE)


def test_a_policy_that_only_sleeps_is_stopped():
    with pytest.raises(SimulationDiverged):
        run_race(a_trace(5, 5), IdlePolicy())
