"""GitLab's merge train: twenty merge requests under test at a time, each on top of all ahead.

One whose pipeline failed is dropped at once, even if another one ahead is the cause, and those after it start again.
"""

from benchmarks.policy_race.policy import Observations
from benchmarks.policy_race.train import MergeTrain
from mergeyard.simulation.engine_driver import Actions

MAX_RUNS = 20


class GitLab:
    def __init__(self, workers: int) -> None:
        self.train = MergeTrain(workers)

    def react(self, observations: Observations, _: int) -> Actions:
        actions = Actions()
        for entry in self.train.record_observations(observations):
            if not entry.passed:
                self.train.drop(entry, actions)
        self.train.start_runs(MAX_RUNS, actions)
        while self.train.entries and self.train.entries[0].passed:
            self.train.merge_first(actions)
        self.train.start_runs(MAX_RUNS, actions)
        return actions
