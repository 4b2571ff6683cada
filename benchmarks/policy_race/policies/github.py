"""GitHub's merge queue: every pull request is built on top of all ahead, and the first few merge together as a group.

A group merges when all of it passed: five at once, or fewer when the first has waited five minutes for others. A pull
request that failed while all ahead of it passed is removed, and those after it are built again. Up to a hundred are
built at a time, the maximum of that setting.
"""

from benchmarks.policy_race.policy import Observations
from benchmarks.policy_race.train import MergeTrain, TrainEntry
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.engine_driver import Actions, ChangeNumber

GROUP_SIZE = 5
MAX_WAIT_MS = 5 * MINUTE
MAX_BUILDS = 100


class GitHub:
    def __init__(self, workers: int) -> None:
        self.train = MergeTrain(workers)

    def react(self, observations: Observations, now: int) -> Actions:
        actions = Actions()
        self.train.record_observations(observations)
        self._remove_culprits(actions)
        self.train.start_runs(MAX_BUILDS, actions)
        while group := self._find_mergeable_group(now):
            for _ in group:
                self.train.merge_first(actions)
        self.train.start_runs(MAX_BUILDS, actions)
        actions.wake_at = self._end_of_wait(now)
        return actions

    def _remove_culprits(self, actions: Actions) -> None:
        ahead = list[ChangeNumber]()
        for entry in tuple(self.train.entries):
            if entry.passed is None or entry.stacked_on != tuple(ahead):
                return
            if entry.passed:
                ahead.append(entry.number)
            else:
                self.train.drop(entry, actions)

    def _find_mergeable_group(self, now: int) -> list[TrainEntry]:
        group = self.train.entries[:GROUP_SIZE]
        if not all(entry.passed for entry in group) or not group:
            return []
        return group if len(group) == GROUP_SIZE or now >= group[0].arrived_at + MAX_WAIT_MS else []

    def _end_of_wait(self, now: int) -> int | None:
        ends = self.train.entries[0].arrived_at + MAX_WAIT_MS if self.train.entries else now
        return ends if ends > now else None
