"""Bors: all waiting changes are tested as one batch at a time; a failed batch is split in halves until the culprits are
found."""

from collections import deque

from benchmarks.policy_race.policy import Observations
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun


class Bors:
    def __init__(self) -> None:
        self.waiting: list[ChangeNumber] = []
        self.halves = deque[tuple[ChangeNumber, ...]]()
        self.idle = True

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        self.waiting += [change.number for change in observations.arrived]
        for run, passed in observations.finished:
            self._record_result(run, passed, actions)
            self.idle = True
        batch = self._next_batch() if self.idle else ()
        if batch:
            actions.runs_to_start.append(SimulatedRun(stack=batch, tested_count=len(batch)))
            self.idle = False
        return actions

    def _record_result(self, run: SimulatedRun, passed: bool, actions: Actions) -> None:
        batch = run.stack
        if passed:
            for number in batch:
                actions.merge(number, run)
        elif len(batch) == 1:
            actions.fail(batch[0], run)
        else:
            middle = len(batch) // 2
            self.halves.extendleft((batch[middle:], batch[:middle]))

    def _next_batch(self) -> tuple[ChangeNumber, ...]:
        if self.halves:
            return self.halves.popleft()
        batch, self.waiting = tuple(self.waiting), []
        return batch
