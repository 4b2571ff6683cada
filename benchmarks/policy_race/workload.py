"""Workload of a simulation: rate and quality of changes, conflicts, and concurrency."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random

from msgspec import Struct, field

from benchmarks.policy_race.policy import Change
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.simulation.engine_driver import ChangeNumber, SimulatedRun, deterministic_random

MEDIAN_BUILD_MS = 30 * MINUTE
BUILD_SIGMA = 0.5
"""Standard deviation of the logarithm of build times: one in six takes longer than 50 minutes, one in six less than
18."""
MIN_BUILD_MS, MAX_BUILD_MS = 5 * MINUTE, 120 * MINUTE


class Workload(Struct, frozen=True, kw_only=True):
    rate: float = 100.0
    """Changes per hour."""
    hours: float = 6.0
    """For how long changes arrive; the race continues until all of them are decided."""
    workers: int = 100
    """How many runs at a time."""
    success: float = 0.9
    """The share of changes that pass alone."""
    conflict: float = 0.01
    """The share of conflicts among pairs that touch a common part and arrive within one median build."""
    flakes: float = 0.0
    """The share of runs that fail without a cause."""
    parts: int = 100
    """The number of parts of the code."""
    wide: float = 0.0
    """The share of changes that touch two parts."""

    @property
    def submission_period_ms(self) -> int:
        """Milliseconds during which changes arrive."""
        return round(self.hours * HOUR)


DURATION_JITTER = 0.1
"""A run takes up to half of this share longer or shorter than its slowest change."""
DURATION_QUESTION, FLAKE_QUESTION = 1, 2
"""Distinguish the random values of a run."""


class TrueOutcomes(Struct, frozen=True, kw_only=True):
    durations: tuple[int, ...]
    """By change number, in milliseconds."""
    bad: frozenset[ChangeNumber] = frozenset()
    conflicts: Mapping[ChangeNumber, frozenset[ChangeNumber]] = field(
        default_factory=dict[ChangeNumber, frozenset[ChangeNumber]]
    )
    """For each change those it conflicts with; each passes alone."""
    flake_rate: float = 0.0
    seed: int = 0

    def passes(self, run: SimulatedRun, merged: Mapping[ChangeNumber, int], repeat: int) -> bool:
        """`merged`: the merge position of each merged change. `repeat`: how often this exact stack was tested
        before."""
        base = len(merged) if run.base_merge_count is None else run.base_merge_count
        ahead = set[ChangeNumber]()
        for member in run.stack:
            if member in self.bad or any(
                other in ahead or merged.get(other, base) < base for other in self.conflicts.get(member, ())
            ):
                return False
            ahead.add(member)
        return (
            self.flake_rate == 0
            or deterministic_random(FLAKE_QUESTION, self.seed, run.stack, repeat) >= self.flake_rate
        )

    def duration_ms(self, run: SimulatedRun, repeat: int) -> int:
        tested = run.stack[len(run.stack) - run.tested_count :]
        longest = max((self.durations[member] for member in tested), default=MEDIAN_BUILD_MS)
        return round(
            longest
            * (1 + DURATION_JITTER * (deterministic_random(DURATION_QUESTION, self.seed, run.stack, repeat) - 0.5))
        )

    def should_fail(self, number: ChangeNumber, merged: Mapping[ChangeNumber, int]) -> bool:
        """Whether failing this change is correct, given the merged ones."""
        return number in self.bad or any(other in merged for other in self.conflicts.get(number, ()))


AUTHOR_COUNT = 40
AUTHOR_SIGMA = 0.5
"""Standard deviation of the logarithm of the authors' failure rates."""
MEDIAN_SIZE, SIZE_SIGMA = 60, 1.0
SIZE_EXPONENT = 0.25
"""A change sixteen times as large is bad twice as often."""
MAX_FAILURE_PROBABILITY = 0.95


class Trace(Struct, frozen=True, kw_only=True):
    workload: Workload
    seed: int
    changes: tuple[Change, ...]
    true_outcomes: TrueOutcomes


def generate_trace(workload: Workload, seed: int) -> Trace:
    rng = Random(f"trace {seed}")
    authors = _sample_authors(rng)
    changes = tuple(_sample_changes(workload, rng, list(authors)))
    truth = TrueOutcomes(
        seed=seed,
        flake_rate=workload.flakes,
        bad=_sample_bad(workload, changes, authors, rng),
        durations=tuple(_sample_duration(rng) for _ in changes),
        conflicts=_sample_conflicts(workload, changes, seed),
    )
    return Trace(workload=workload, seed=seed, changes=changes, true_outcomes=truth)


def _sample_authors(rng: Random) -> dict[str, float]:
    """Authors with their relative failure rate; the first ones submit the most changes."""
    return {f"author{rank}": rng.lognormvariate(0, AUTHOR_SIGMA) for rank in range(1, AUTHOR_COUNT + 1)}


def _sample_changes(workload: Workload, rng: Random, authors: list[str]) -> Iterator[Change]:
    shares = [1 / rank for rank in range(1, len(authors) + 1)]
    at = 0.0
    for number in count():
        at += rng.expovariate(workload.rate / HOUR)
        if at >= workload.submission_period_ms:
            return
        part_count = 2 if rng.random() < workload.wide else 1
        (author,) = rng.choices(authors, shares)
        yield Change(
            number=number,
            arrived_at=round(at),
            parts=frozenset(rng.sample(range(workload.parts), min(part_count, workload.parts))),
            author=author,
            size=max(1, round(MEDIAN_SIZE * rng.lognormvariate(0, SIZE_SIGMA))),
        )


def _sample_bad(
    workload: Workload, changes: tuple[Change, ...], authors: dict[str, float], rng: Random
) -> frozenset[ChangeNumber]:
    if not changes:
        return frozenset()
    weights = [authors[change.author] * (change.size / MEDIAN_SIZE) ** SIZE_EXPONENT for change in changes]
    scale = (1 - workload.success) * len(weights) / sum(weights)
    probabilities = (min(max(MAX_FAILURE_PROBABILITY, 1 - workload.success), weight * scale) for weight in weights)
    return frozenset(
        change.number for change, probability in zip(changes, probabilities, strict=True) if rng.random() < probability
    )


def _sample_duration(rng: Random) -> int:
    return round(min(MAX_BUILD_MS, max(MIN_BUILD_MS, MEDIAN_BUILD_MS * rng.lognormvariate(0, BUILD_SIGMA))))


def _sample_conflicts(
    workload: Workload, changes: tuple[Change, ...], seed: int
) -> dict[ChangeNumber, frozenset[ChangeNumber]]:
    conflicts = defaultdict[ChangeNumber, set[ChangeNumber]](set)
    recent_by_part = defaultdict[int, list[Change]](list)
    for change in changes:
        for part in change.parts:
            recent_by_part[part] = [
                other for other in recent_by_part[part] if change.arrived_at - other.arrived_at <= MEDIAN_BUILD_MS
            ]
            for other in recent_by_part[part]:
                if deterministic_random(seed, other.number, change.number) < workload.conflict:
                    conflicts[change.number].add(other.number)
                    conflicts[other.number].add(change.number)
            recent_by_part[part].append(change)
    return {number: frozenset(others) for number, others in conflicts.items()}
