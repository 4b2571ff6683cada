"""Holds forecasts and guesses against simulated days: the first time that each was given, and when it merged.

`python -m tests.support.calibrating` measures the table of docs/performance.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from msgspec import Struct

from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.queue import Queue
from mergeyard.engine import estimating, reading
from mergeyard.sim.foretelling.asking import to_foretell
from mergeyard.sim.foretelling.forecast import foretell
from mergeyard.sim.racing.driver import begin
from mergeyard.sim.racing.policies.mergeyard import Mergeyard
from mergeyard.sim.racing.race import Track
from mergeyard.sim.racing.trace import Trace, draw
from mergeyard.sim.racing.workload import Workload

SETTINGS = {
    "one line": Config(),
    "lanes": Config(mode=Mode.PARALLEL),
    "batches of 4": Config(batch=True),
    "lanes of batches": Config(
        mode=Mode.PARALLEL,
        batch=True,
        batching_max_wait_time_minutes=20,
        optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
    ),
    "lanes, best first, optimistic": Config(
        mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True
    ),
    "one line, optimistic, depth 2": Config(can_optimistically_merge=True, pending_failure_depth=2),
}
EVERY = 15 * MINUTE

Promises = Mapping[Ticket, Expected | None]


class Share(Struct):
    """Of those that merged, how many did so by the time that they were given first."""

    merged: int = 0
    by_middle: int = 0
    by_late: int = 0

    def count(self, track: Track, given: Iterable[tuple[Queue, Promises]]) -> None:
        """Of a day that is over, with all that was promised in its course."""
        first = dict[int, Expected]()
        for queue, promises in given:
            for ticket, promised in promises.items():
                if promised is not None:
                    first.setdefault(queue.submissions[ticket].number, promised)
        for number in first.keys() & track.merged.keys():
            self.merged += 1
            self.by_middle += track.decided_at[number] <= first[number].middle
            self.by_late += track.decided_at[number] <= first[number].late

    @property
    def middle(self) -> float:
        return self.by_middle / self.merged

    @property
    def late(self) -> float:
        return self.by_late / self.merged


def a_day(seed: int, *, hours: float = 10) -> Trace:
    """One in ten is bad, and builds differ: one in six takes less than 18 minutes, one in six more than 50."""
    return draw(Workload(rate=8, hours=hours, workers=1000, parts=3), seed)


def calibrated(config: Config, *days: Trace, courses: int = 19) -> tuple[Share, Share]:
    """Of forecasts, and of guesses at the same moments."""
    foretold, guessed = Share(), Share()
    for day in days:
        track = Track(day)
        moments = list(_moments(track, config))
        foretold.count(track, ((queue, _foretold(queue, now, courses)) for queue, now in moments))
        guessed.count(track, ((queue, _guessed(queue, now)) for queue, now in moments))
    return foretold, guessed


def _moments(track: Track, config: Config) -> Iterator[tuple[Queue, Instant]]:
    """The queue as it is every few minutes of a day, while the day goes on to its end."""
    policy, moment = Mergeyard(config, track.trace.workload.workers), EVERY
    policy.driver = begin(config)
    while not track.over:
        now = track.next_instant()
        assert now is not None
        for passed in range(moment, now + 1, EVERY):
            yield policy.driver.queue, Instant(passed)
            moment = passed + EVERY
        track.carry_out(policy.move(track.news(now), now), now)


def _foretold(queue: Queue, now: Instant, courses: int) -> Promises:
    asked = to_foretell(queue)
    return {} if asked is None else foretell(asked, now, map(Random, range(courses)))


def _guessed(queue: Queue, now: Instant) -> Promises:
    outlook = estimating.outlook(queue, now)
    if outlook is None:
        return {}
    places = {stay.ticket: reading.position(queue, stay, now) for stay in queue.submissions.values()}
    return {ticket: outlook.of(queue.submissions[ticket], place) for ticket, place in places.items() if place}


def main() -> None:
    for name, config in SETTINGS.items():
        foretold, guessed = calibrated(config, *map(a_day, range(1, 6)))
        shares = (foretold.late, foretold.middle, guessed.late, guessed.middle)
        written = " | ".join(f"{share:.0%}".replace("%", " %") for share in shares)
        print(f"| {name} | {foretold.merged} | {written} |", flush=True)


if __name__ == "__main__":
    main()
