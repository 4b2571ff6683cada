"""Serial: one change after the other, each tested on top of what has merged; the simplest queue that keeps the branch
passing."""

from collections import deque

from benchmarks.policy_race.policy import Observations
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun


class Serial:
    def __init__(self) -> None:
        self.waiting = deque[ChangeNumber]()
        self.idle = True

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        self.waiting.extend(change.number for change in observations.arrived)
        for run, passed in observations.finished:
            (actions.merge if passed else actions.fail)(run.stack[-1], run)
            self.idle = True
        if self.idle and self.waiting:
            actions.runs_to_start.append(SimulatedRun(stack=(self.waiting.popleft(),)))
            self.idle = False
        return actions
