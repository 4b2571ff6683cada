"""Oracle: knows every outcome in advance and runs each change once, on top of exactly those ahead that will merge.

A merge waits for the changes ahead that merge and touch a common part; a change that conflicts with an earlier one
waits until that one has merged. No queue that waits for a run of each change can decide sooner; a queue where a passed
run also clears the changes ahead in its stack can.
"""

from collections import deque

from benchmarks.policy_race.policy import Change, Observations
from benchmarks.policy_race.predecessors import Predecessors
from benchmarks.policy_race.workload import TrueOutcomes
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun


class Oracle:
    def __init__(self, truth: TrueOutcomes, workers: int) -> None:
        self.truth = truth
        self.free = workers
        self.will_merge = set[ChangeNumber]()
        self.merged = set[ChangeNumber]()
        self.predecessors = Predecessors()
        self.waiting = deque[ChangeNumber]()
        self.tested: dict[ChangeNumber, SimulatedRun] = {}

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        for change in observations.arrived:
            self._predict(change)
        ready = [run.stack[-1] for run, _ in observations.finished]
        self.tested.update((run.stack[-1], run) for run, _ in observations.finished)
        self.free += len(ready)
        while ready:
            number = ready.pop()
            if number in self.tested and self._can_be_decided(number):
                ready += self._decide(number, actions)
        self._start(actions)
        return actions

    def _predict(self, change: Change) -> None:
        number = change.number
        conflicts = self.truth.conflicts.get(number, frozenset())
        if number not in self.truth.bad and self.will_merge.isdisjoint(conflicts):
            self.will_merge.add(number)
        self.predecessors.add(change)
        self.waiting.append(number)

    def _can_be_decided(self, number: ChangeNumber) -> bool:
        if number in self.will_merge:
            return self.will_merge.isdisjoint(self.predecessors.ahead[number])
        return number in self.truth.bad or not self.merged.isdisjoint(self.truth.conflicts[number])

    def _decide(self, number: ChangeNumber, actions: Actions) -> list[ChangeNumber]:
        """Returns the changes that can be decided now, because they waited for this one."""
        run = self.tested.pop(number)
        if number in self.will_merge:
            actions.merge(number, run)
            self.merged.add(number)
        else:
            actions.fail(number, run)
        return self.predecessors.remove(number)

    def _start(self, actions: Actions) -> None:
        while self.free and self.waiting:
            number = self.waiting.popleft()
            ahead = (other for other in self.predecessors.ahead[number] if other in self.will_merge)
            actions.runs_to_start.append(SimulatedRun(stack=(*ahead, number)))
            self.free -= 1
