"""Zuul's dependent pipeline: one queue, tested optimistically, with a window that grows slowly and shrinks fast.

A change that fails is set aside at once, and those after it are tested without it; it is ejected when all ahead of it
are decided, and tested again if one of those was the cause. The window starts at 20, grows by one with every merge, and
is halved by every ejection, down to three.
"""

from benchmarks.policy_race.policy import Observations
from benchmarks.policy_race.train import MergeTrain
from mergeyard.simulation.engine_driver import Actions

INITIAL_WINDOW, MIN_WINDOW = 20, 3


class Zuul:
    def __init__(self, workers: int) -> None:
        self.train = MergeTrain(workers)
        self.window = INITIAL_WINDOW

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        self.train.record_observations(observations)
        while self.train.entries and self.train.entries[0].passed is not None:
            first = self.train.entries[0]
            if first.stacked_on:
                break
            if first.passed:
                self.train.merge_first(actions)
                self.window += 1
            else:
                self.train.drop(first, actions)
                self.window = max(MIN_WINDOW, self.window // 2)
        self.train.start_runs(self.window, actions)
        return actions
