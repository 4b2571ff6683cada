"""Speculates on all outcomes: each change on top of every subset of those ahead, breadth-first, as far as workers
suffice."""

from itertools import combinations

from benchmarks.policy_race.policy import Observations
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun

ChangeSet = frozenset[ChangeNumber]


class SpeculateAll:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.queue: list[ChangeNumber] = []
        self.runs: dict[tuple[ChangeNumber, ChangeSet], SimulatedRun] = {}
        """By change, and by which undecided changes ahead the run contains."""
        self.results: dict[SimulatedRun, bool] = {}

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        self.queue += [change.number for change in observations.arrived]
        self.results.update(observations.finished)
        decided = False
        while self.queue and (run := self.runs.get((self.queue[0], frozenset()))) in self.results:
            self._decide_first(run, actions)
            decided = True
        if decided or observations.arrived or observations.finished:
            self._start(actions)
        return actions

    def _decide_first(self, run: SimulatedRun, actions: Actions) -> None:
        """Keeps the half of all runs that assumed this outcome."""
        first = self.queue.pop(0)
        merged = self.results[run]
        (actions.merge if merged else actions.fail)(first, run)
        previous, self.runs = self.runs, {}
        for (number, included), other in previous.items():
            if number != first and (first in included) == merged:
                self.runs[number, included - {first}] = other
            elif self.results.pop(other, None) is None:
                actions.runs_to_stop.append(other)

    def _start(self, actions: Actions) -> None:
        free = self.workers - sum(run not in self.results for run in self.runs.values())
        for index, number in enumerate(self.queue):
            if free <= 0:
                return
            for count in range(index, -1, -1):
                for ahead in combinations(self.queue[:index], count):
                    if free > 0 and (number, frozenset(ahead)) not in self.runs:
                        run = SimulatedRun(stack=(*ahead, number))
                        self.runs[number, frozenset(ahead)] = run
                        actions.runs_to_start.append(run)
                        free -= 1
