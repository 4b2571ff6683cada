"""Small days for policies to race on, made by hand: who arrives when, who is bad, and who breaks with whom."""

from collections.abc import Iterable, Sequence

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.racing.policies import POLICIES
from mergeyard.sim.racing.policy import Change
from mergeyard.sim.racing.race import Record, race
from mergeyard.sim.racing.trace import Trace
from mergeyard.sim.racing.truth import Truth
from mergeyard.sim.racing.workload import Workload


def a_trace(
    *builds: int,
    bad: Iterable[int] = (),
    breaking: Iterable[tuple[int, int]] = (),
    parts: Sequence[int] = (),
    workers: int = 20,
    flakes: float = 0,
) -> Trace:
    """One change a minute, each with as many minutes of building; all touch one part unless it is said otherwise."""
    conflicts = dict[int, frozenset[int]]()
    for one, other in breaking:
        conflicts[one] = conflicts.get(one, frozenset()) | {other}
        conflicts[other] = conflicts.get(other, frozenset()) | {one}
    touched = parts or [0] * len(builds)
    return Trace(
        workload=Workload(workers=workers, hours=1, flakes=flakes),
        seed=1,
        changes=tuple(
            Change(number=number, at=number * MINUTE, parts=frozenset({part})) for number, part in enumerate(touched)
        ),
        truth=Truth(
            durations=tuple(minutes * MINUTE for minutes in builds),
            bad=frozenset(bad),
            conflicts=conflicts,
            flakes=flakes,
            seed=1,
        ),
    )


def raced(policy: str, trace: Trace) -> Record:
    return race(trace, POLICIES[policy](trace))
