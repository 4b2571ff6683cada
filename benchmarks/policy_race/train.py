"""Merge train: every change is tested on top of all changes ahead of it, on the assumption that they all merge."""

from benchmarks.policy_race.policy import Observations
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun


class TrainEntry:
    """One change in the train, with its current run."""

    def __init__(self, number: ChangeNumber, at: int) -> None:
        self.number = number
        self.arrived_at = at
        self.run: SimulatedRun | None = None
        self.stacked_on: tuple[ChangeNumber, ...] = ()
        """The undecided changes ahead that its run contains."""
        self.passed: bool | None = None

    @property
    def is_running(self) -> bool:
        return self.run is not None and self.passed is None


class MergeTrain:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.entries: list[TrainEntry] = []
        self.reach = 0
        """Entries from this position on have no run."""

    def record_observations(self, observations: Observations) -> list[TrainEntry]:
        """Appends new changes, records results, and returns the entries whose run finished, in order."""
        results = dict(observations.finished)
        finished = [entry for entry in self.entries[: self.reach] if entry.run is not None and entry.run in results]
        for entry in finished:
            entry.passed = entry.run is not None and results[entry.run]
        self.entries += [TrainEntry(change.number, change.arrived_at) for change in observations.arrived]
        return finished

    def merge_first(self, actions: Actions) -> None:
        entry = self.entries.pop(0)
        actions.merge(entry.number, *_find_evidence(entry))
        for other in self.entries[: self.reach]:
            if other.stacked_on[:1] == (entry.number,):
                other.stacked_on = other.stacked_on[1:]

    def drop(self, entry: TrainEntry, actions: Actions) -> None:
        self.entries.remove(entry)
        actions.fail(entry.number, *_find_evidence(entry))

    def start_runs(self, window: int, actions: Actions) -> None:
        """Tests each entry on top of those ahead that have not failed. Within the window, entries tested on other
        changes are tested again; a run started before the window shrank continues."""
        ahead = list[ChangeNumber]()
        free_workers = self.workers
        for position, entry in enumerate(self.entries[: max(window, self.reach)]):
            if entry.run is not None and entry.stacked_on != tuple(ahead):
                _discard_run(entry, actions)
            if entry.run is None and free_workers > 0 and position < window:
                entry.stacked_on = tuple(ahead)
                entry.run = SimulatedRun(stack=(*ahead, entry.number))
                actions.runs_to_start.append(entry.run)
            self.reach = position + 1 if entry.run is not None else self.reach
            free_workers -= entry.is_running
            if entry.passed is not False:
                ahead.append(entry.number)


def _find_evidence(entry: TrainEntry) -> tuple[SimulatedRun, ...]:
    return () if entry.run is None else (entry.run,)


def _discard_run(entry: TrainEntry, actions: Actions) -> None:
    if entry.run is not None and entry.passed is None:
        actions.runs_to_stop.append(entry.run)
    entry.run, entry.passed = None, None
