"""Tide: at any time one batch and, in parallel, the first change alone, both on top of what has merged.

A passed batch merges as a whole; a change that passed alone merges only when no batch is under test, because it would
invalidate the batch. A change that fails alone leaves, and ends a batch that contains it; a failed batch is only tried
again. Batches contain up to ten changes here.
"""

from benchmarks.policy_race.policy import Observations
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun

MAX_BATCH_SIZE = 10


class Tide:
    def __init__(self, workers: int) -> None:
        self.room_for_batches = workers > 1
        self.pool: list[ChangeNumber] = []
        self.batch: SimulatedRun | None = None
        self.alone: SimulatedRun | None = None
        self.passed_alone: SimulatedRun | None = None
        """The run of a change that passed alone and waits until no batch is under test."""

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        self.pool += [change.number for change in observations.arrived]
        for run, passed in observations.finished:
            if run is self.batch:
                self._end_batch(run, passed, actions)
            else:
                self._end_alone(run, passed, actions)
        if self.passed_alone is not None and self.batch is None:
            self._merge(self.passed_alone, actions)
        self._start(actions)
        return actions

    def _end_batch(self, run: SimulatedRun, passed: bool, actions: Actions) -> None:
        self.batch = None
        if passed:
            self._merge(run, actions)

    def _end_alone(self, run: SimulatedRun, passed: bool, actions: Actions) -> None:
        self.alone = None
        if passed:
            self.passed_alone = run
        elif run.stack[0] in self.pool:
            self.pool.remove(run.stack[0])
            actions.fail(run.stack[0], run)
            if self.batch is not None and run.stack[0] in self.batch.stack:
                actions.runs_to_stop.append(self.batch)
                self.batch = None

    def _merge(self, run: SimulatedRun, actions: Actions) -> None:
        """The branch moves, which invalidates all other runs."""
        for number in run.stack:
            if number in self.pool:
                self.pool.remove(number)
                actions.merge(number, run)
        actions.runs_to_stop += [other for other in (self.alone, self.batch) if other is not None]
        self.alone = self.batch = self.passed_alone = None

    def _start(self, actions: Actions) -> None:
        if self.pool and self.alone is None and self.passed_alone is None:
            self.alone = SimulatedRun(stack=(self.pool[0],))
            actions.runs_to_start.append(self.alone)
        if len(self.pool) > 1 and self.batch is None and self.room_for_batches:
            batch = tuple(self.pool[:MAX_BATCH_SIZE])
            self.batch = SimulatedRun(stack=batch, tested_count=len(batch))
            actions.runs_to_start.append(self.batch)
