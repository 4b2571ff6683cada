"""Simulates one policy on one trace, event by event, until every change is decided."""

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush

from msgspec import Struct

from benchmarks.policy_race.policy import Observations, Policy
from benchmarks.policy_race.workload import Trace
from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun, SimulationDiverged

MAX_SLOWDOWN = 20
"""The time limit, as a multiple of testing all changes one after the other."""


class RaceResult(Struct, frozen=True, kw_only=True):
    """The decisions of a race, and its cost."""

    decided_at: Mapping[ChangeNumber, int]
    merged: tuple[ChangeNumber, ...]
    """In merge order."""
    wrongly_failed: frozenset[ChangeNumber]
    """Failed although good and without a conflict with a merged change."""
    wrongly_merged: frozenset[ChangeNumber]
    """Merged although bad or in conflict with a merged change."""
    runs: int
    wasted_runs: int
    ended_at: int


class RaceState:
    """The state of a race: runs in progress, their end times, and decisions."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.arrived = 0
        self.wake_at: int | None = None
        self.running: dict[SimulatedRun, None] = {}
        self.ends: list[tuple[int, int, SimulatedRun, bool]] = []
        self.repeats = Counter[tuple[ChangeNumber, ...]]()
        self.runs = 0
        self.used = set[SimulatedRun]()
        self.decided_at: dict[ChangeNumber, int] = {}
        self.merged: dict[ChangeNumber, int] = {}
        self.wrongly_merged = set[ChangeNumber]()

    @property
    def is_finished(self) -> bool:
        return len(self.decided_at) == len(self.trace.changes)

    def next_time(self) -> int | None:
        self._discard_stopped()
        next_changes = self.trace.changes[self.arrived : self.arrived + 1]
        times = [change.arrived_at for change in next_changes]
        times += [self.ends[0][0]] if self.ends else []
        times += [self.wake_at] if self.wake_at is not None else []
        return min(times, default=None)

    def collect_observations(self, now: int) -> Observations:
        first_new = self.arrived
        while self.arrived < len(self.trace.changes) and self.trace.changes[self.arrived].arrived_at <= now:
            self.arrived += 1
        finished = list[tuple[SimulatedRun, bool]]()
        while self.ends and self.ends[0][0] <= now:
            _, _, run, passed = heappop(self.ends)
            if run in self.running:
                del self.running[run]
                finished.append((run, passed))
        return Observations(self.trace.changes[first_new : self.arrived], tuple(finished))

    def apply_actions(self, actions: Actions, now: int) -> None:
        self.wake_at = actions.wake_at
        for decision in actions.decisions:
            self._record_decision(decision.number, decision.merged, now)
            self.used.update(decision.evidence)
        for run in actions.runs_to_start:
            self._start_run(run, now)
        for run in actions.runs_to_stop:
            del self.running[run]
        if len(self.running) > self.trace.workload.workers:
            raise ValueError(f"{len(self.running)} runs for {self.trace.workload.workers} workers")

    def _record_decision(self, number: ChangeNumber, merged: bool, now: int) -> None:
        if number in self.decided_at:
            raise ValueError(f"change {number} is decided twice")
        self.decided_at[number] = now
        if merged and self.trace.true_outcomes.should_fail(number, self.merged):
            self.wrongly_merged.add(number)
        if merged:
            self.merged[number] = len(self.merged)

    def _start_run(self, run: SimulatedRun, now: int) -> None:
        repeat = self.repeats[run.stack]
        self.repeats[run.stack] += 1
        self.runs += 1
        self.running[run] = None
        ends_at = now + self.trace.true_outcomes.duration_ms(run, repeat)
        heappush(self.ends, (ends_at, self.runs, run, self.trace.true_outcomes.passes(run, self.merged, repeat)))

    def _discard_stopped(self) -> None:
        while self.ends and self.ends[0][2] not in self.running:
            heappop(self.ends)

    def _failed_numbers(self) -> set[ChangeNumber]:
        return self.decided_at.keys() - self.merged.keys()

    def build_result(self) -> RaceResult:
        truth = self.trace.true_outcomes
        return RaceResult(
            decided_at=self.decided_at,
            merged=tuple(self.merged),
            wrongly_failed=frozenset(
                failed for failed in self._failed_numbers() if not truth.should_fail(failed, self.merged)
            ),
            wrongly_merged=frozenset(self.wrongly_merged),
            runs=self.runs,
            wasted_runs=self.runs - len(self.used),
            ended_at=max(self.decided_at.values(), default=0),
        )


def run_race(trace: Trace, policy: Policy) -> RaceResult:
    state = RaceState(trace)
    latest = trace.workload.submission_period_ms + MAX_SLOWDOWN * sum(trace.true_outcomes.durations)
    while not state.is_finished:
        now = state.next_time()
        if now is None or now > latest:
            waiting = len(trace.changes) - len(state.decided_at)
            raise SimulationDiverged(f"{waiting} of {len(trace.changes)} changes would never be decided")
        state.apply_actions(policy.react(state.collect_observations(now), now), now)
    return state.build_result()
