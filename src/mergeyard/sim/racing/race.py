"""Runs one policy over one trace, from event to event, until every change is decided."""

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush

from msgspec import Struct

from mergeyard.sim.racing.policy import News, Number, Orders, Policy, Trial
from mergeyard.sim.racing.trace import Trace

PATIENCE = 20
"""How many times as long as testing one after the other may take."""


class Diverged(Exception):
    """The policy decides too slowly ever to end, or has stopped deciding."""


class Record(Struct, frozen=True, kw_only=True):
    """What became of everybody, and what it cost."""

    decided_at: Mapping[Number, int]
    merged: tuple[Number, ...]
    """In their order."""
    innocent: frozenset[Number]
    """Failed, though good, and in conflict with nobody that merged."""
    broken: frozenset[Number]
    """Merged, though bad, or in conflict with one that had merged."""
    runs: int
    wasted: int
    ended_at: int


class Track:
    """Where a race stands: what runs until when, and who is decided."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.arrived = 0
        self.wake_at: int | None = None
        self.running: dict[Trial, None] = {}
        self.ends: list[tuple[int, int, Trial, bool]] = []
        self.asked = Counter[tuple[Number, ...]]()
        self.runs = 0
        self.used = set[Trial]()
        self.decided_at: dict[Number, int] = {}
        self.merged: dict[Number, int] = {}
        self.broken = set[Number]()

    @property
    def over(self) -> bool:
        return len(self.decided_at) == len(self.trace.changes)

    def next_instant(self) -> int | None:
        self._forget_the_stopped()
        coming = self.trace.changes[self.arrived : self.arrived + 1]
        instants = [change.at for change in coming]
        instants += [self.ends[0][0]] if self.ends else []
        instants += [self.wake_at] if self.wake_at is not None else []
        return min(instants, default=None)

    def news(self, now: int) -> News:
        first = self.arrived
        while self.arrived < len(self.trace.changes) and self.trace.changes[self.arrived].at <= now:
            self.arrived += 1
        finished = list[tuple[Trial, bool]]()
        while self.ends and self.ends[0][0] <= now:
            _, _, trial, green = heappop(self.ends)
            if trial in self.running:
                del self.running[trial]
                finished.append((trial, green))
        return News(self.trace.changes[first : self.arrived], tuple(finished))

    def carry_out(self, orders: Orders, now: int) -> None:
        self.wake_at = orders.wake_at
        for verdict in orders.decided:
            self._decide(verdict.number, verdict.merged, now)
            self.used.update(verdict.by)
        for trial in orders.start:
            self._start(trial, now)
        for trial in orders.stop:
            del self.running[trial]
        if len(self.running) > self.trace.workload.workers:
            raise ValueError(f"{len(self.running)} runs for {self.trace.workload.workers} workers")

    def _decide(self, number: Number, merged: bool, now: int) -> None:
        if number in self.decided_at:
            raise ValueError(f"change {number} is decided twice")
        self.decided_at[number] = now
        if merged and self.trace.truth.breaks_upon(number, self.merged):
            self.broken.add(number)
        if merged:
            self.merged[number] = len(self.merged)

    def _start(self, trial: Trial, now: int) -> None:
        asked = self.asked[trial.stack]
        self.asked[trial.stack] += 1
        self.runs += 1
        self.running[trial] = None
        ends_at = now + self.trace.truth.duration(trial, asked)
        heappush(self.ends, (ends_at, self.runs, trial, self.trace.truth.is_green(trial, self.merged, asked)))

    def _forget_the_stopped(self) -> None:
        while self.ends and self.ends[0][2] not in self.running:
            heappop(self.ends)

    def _failed(self) -> set[Number]:
        return self.decided_at.keys() - self.merged.keys()

    def record(self) -> Record:
        truth = self.trace.truth
        return Record(
            decided_at=self.decided_at,
            merged=tuple(self.merged),
            innocent=frozenset(failed for failed in self._failed() if not truth.breaks_upon(failed, self.merged)),
            broken=frozenset(self.broken),
            runs=self.runs,
            wasted=self.runs - len(self.used),
            ended_at=max(self.decided_at.values(), default=0),
        )


def race(trace: Trace, policy: Policy) -> Record:
    track = Track(trace)
    latest = trace.workload.arriving + PATIENCE * sum(trace.truth.durations)
    while not track.over:
        now = track.next_instant()
        if now is None or now > latest:
            waiting = len(trace.changes) - len(track.decided_at)
            raise Diverged(f"{waiting} of {len(trace.changes)} changes would never be decided")
        track.carry_out(policy.move(track.news(now), now), now)
    return track.record()
