"""SubmitQueue: in lanes of changes that touch a common part, starts the runs that are most likely to be needed.

Its predictor is given, not trained: it predicts the outcome of each change, is right in 97 of 100 cases, and knows the
actual conflict rate. Finished runs update its predictions. At every event the best runs, as many as there are workers,
are chosen again, and runs that are no longer among them are stopped.
"""

from heapq import heappop, heappush
from itertools import count

from benchmarks.policy_race.policy import Observations
from benchmarks.policy_race.predecessors import Predecessors
from benchmarks.policy_race.workload import Trace
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun, deterministic_random

ACCURACY = 0.97
PASSED_BEFORE_PROBABILITY = 0.995
"""Pass probability of a change that a run has passed: it can still conflict with one ahead."""
PREDICTION_QUESTION = 3
"""Distinguishes this random value."""

Assumption = tuple[ChangeNumber, frozenset[ChangeNumber]]
"""A change, and the undecided ones ahead of it that are assumed to merge."""


def predict_outcomes(trace: Trace) -> dict[ChangeNumber, float]:
    """Pass probability of each change: mostly right, and never certain."""
    right = (
        deterministic_random(PREDICTION_QUESTION, trace.seed, change.number) < ACCURACY for change in trace.changes
    )
    good = (change.number not in trace.true_outcomes.bad for change in trace.changes)
    predicted_good = (is_good == is_right for is_good, is_right in zip(good, right, strict=True))
    return {
        number: ACCURACY if is_predicted_good else 1 - ACCURACY
        for number, is_predicted_good in enumerate(predicted_good)
    }


class SubmitQueue:
    def __init__(self, workers: int, predicted: dict[ChangeNumber, float], conflict: float) -> None:
        self.workers = workers
        self.good = predicted
        self.compatible = 1 - conflict
        self.predecessors = Predecessors()
        self.run_by_assumption: dict[Assumption, SimulatedRun] = {}
        self.assumption_by_run: dict[SimulatedRun, Assumption] = {}
        self.results: dict[SimulatedRun, bool] = {}

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        for change in observations.arrived:
            self.predecessors.add(change)
        ready = list[ChangeNumber]()
        for run, passed in observations.finished:
            self.results[run] = passed
            self._learn(run, passed)
            ready.append(self.assumption_by_run[run][0])
        while ready:
            ready += self._decide(ready.pop(), actions)
        self._choose_runs(actions)
        return actions

    def _learn(self, run: SimulatedRun, passed: bool) -> None:
        *ahead, number = run.stack
        if passed:
            self.good.update((member, max(PASSED_BEFORE_PROBABILITY, self.good[member])) for member in run.stack)
            return
        others_good = 1.0
        for member in ahead:
            others_good *= self.good[member] * self.compatible
        good, bad = self.good[number] * (1 - others_good * self.compatible), 1 - self.good[number]
        self.good[number] = good / (good + bad)

    def _decide(self, number: ChangeNumber, actions: Actions) -> list[ChangeNumber]:
        """Returns the changes that can be decided now, because they waited for this one."""
        run = self.run_by_assumption.get((number, frozenset()))
        if number not in self.predecessors.undecided or self.predecessors.ahead[number] or run not in self.results:
            return []
        merged = self.results[run]
        (actions.merge if merged else actions.fail)(number, run)
        after = self.predecessors.remove(number)
        self._keep_matching_runs(number, merged, {number, *after}, actions)
        return after

    def _keep_matching_runs(
        self, decided: ChangeNumber, merged: bool, concerned: set[ChangeNumber], actions: Actions
    ) -> None:
        previous = {assumption: run for assumption, run in self.run_by_assumption.items() if assumption[0] in concerned}
        for assumption in previous:
            del self.run_by_assumption[assumption]
        for (number, merging), run in previous.items():
            if number != decided and (decided in merging) == merged:
                self.assumption_by_run[run] = (number, merging - {decided})
                self.run_by_assumption[number, merging - {decided}] = run
            elif self.assumption_by_run.pop(run) and self.results.pop(run, None) is None:
                actions.runs_to_stop.append(run)

    def _choose_runs(self, actions: Actions) -> None:
        best = self._find_best_assumptions()
        for assumption, run in tuple(self.run_by_assumption.items()):
            if assumption not in best and run not in self.results:
                actions.runs_to_stop.append(run)
                del self.run_by_assumption[assumption], self.assumption_by_run[run]
        for number, merging in best:
            if (number, merging) not in self.run_by_assumption:
                run = SimulatedRun(stack=(*sorted(merging), number))
                self.run_by_assumption[number, merging], self.assumption_by_run[run] = run, (number, merging)
                actions.runs_to_start.append(run)

    def _find_best_assumptions(self) -> dict[Assumption, None]:
        """The most likely outcomes of all changes, without those that have been tested."""
        best = dict[Assumption, None]()
        order = count()
        candidates = list[tuple[float, int, Futures, tuple[int, ...]]]()
        for number, ahead in self.predecessors.ahead.items():
            futures = Futures(number, [(other, self._merge_probability(other)) for other in ahead])
            heappush(candidates, (-futures.best, next(order), futures, ()))
        while candidates and len(best) < self.workers:
            probability, _, futures, flipped = heappop(candidates)
            assumption = futures.assume(flipped)
            if self.run_by_assumption.get(assumption) not in self.results:
                best[assumption] = None
            for other, factor in futures.next_after(flipped):
                heappush(candidates, (probability * factor, next(order), futures, other))
        return best

    def _merge_probability(self, number: ChangeNumber) -> float:
        return self.good[number] * self.compatible ** len(self.predecessors.ahead[number])


class Futures:
    """Possible outcomes of the changes ahead of one change, most likely first."""

    def __init__(self, number: ChangeNumber, ahead: list[tuple[ChangeNumber, float]]) -> None:
        self.number = number
        uncertain_first = sorted(ahead, key=lambda other: abs(other[1] - 0.5))
        self.ahead = [other for other, _ in uncertain_first]
        self.expected = [probability >= 0.5 for _, probability in uncertain_first]
        self.ratios = [
            min(probability, 1 - probability) / max(probability, 1 - probability) for _, probability in uncertain_first
        ]
        """How much less likely the outcome is when this change turns out otherwise."""
        self.best = 1.0
        for _, probability in ahead:
            self.best *= max(probability, 1 - probability)

    def assume(self, flipped: tuple[int, ...]) -> Assumption:
        merging = (other for index, other in enumerate(self.ahead) if self.expected[index] != (index in flipped))
        return self.number, frozenset(merging)

    def next_after(self, flipped: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
        """Each outcome is reached once, and none before a likelier one."""
        last = flipped[-1] if flipped else -1
        if last + 1 >= len(self.ahead):
            return []
        following = [((*flipped, last + 1), self.ratios[last + 1])]
        if flipped and self.ratios[last]:
            following.append(((*flipped[:-1], last + 1), self.ratios[last + 1] / self.ratios[last]))
        return following
