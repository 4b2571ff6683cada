"""Small handmade traces for policy races: arrivals, failing changes and conflicting changes."""

from collections.abc import Iterable, Sequence

from benchmarks.policy_race.policies import POLICIES
from benchmarks.policy_race.policy import Change
from benchmarks.policy_race.race import RaceResult, run_race
from benchmarks.policy_race.workload import Trace, TrueOutcomes, Workload
from mergeyard.domain.timestamps import MINUTE


def a_trace(
    *builds: int,
    bad: Iterable[int] = (),
    breaking: Iterable[tuple[int, int]] = (),
    parts: Sequence[int] = (),
    workers: int = 20,
    flakes: float = 0,
) -> Trace:
    """One change per minute, with these build times in minutes; all touch the same part unless `parts` is given."""
    conflicts = dict[int, frozenset[int]]()
    for one, other in breaking:
        conflicts[one] = conflicts.get(one, frozenset()) | {other}
        conflicts[other] = conflicts.get(other, frozenset()) | {one}
    touched = parts or [0] * len(builds)
    return Trace(
        workload=Workload(workers=workers, hours=1, flakes=flakes),
        seed=1,
        changes=tuple(
            Change(number=number, arrived_at=number * MINUTE, parts=frozenset({part}))
            for number, part in enumerate(touched)
        ),
        true_outcomes=TrueOutcomes(
            durations=tuple(minutes * MINUTE for minutes in builds),
            bad=frozenset(bad),
            conflicts=conflicts,
            flake_rate=flakes,
            seed=1,
        ),
    )


def run_policy(policy: str, trace: Trace) -> RaceResult:
    return run_race(trace, POLICIES[policy](trace))
