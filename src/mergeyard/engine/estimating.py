"""Guesses when a pull request will merge, from how long the last green runs took and what stands ahead of it."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.durations import Duration, LongerThan, whole
from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.line import Batch, Bisection
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine import holding

REMEMBERED = 32
"""Green runs: enough to know the usual from the slow, few enough to follow when CI gets faster."""
MOST_REMEMBERED = 3 * REMEMBERED
"""With those that were stopped."""
OVERDUE = 0.1
"""A run that takes longer than expected is expected to go on for this share of what it took already."""


class Timetable(Struct, frozen=True):
    """When everybody merges, if every run takes this long."""

    duration: int
    merging: Mapping[Ticket, Instant]
    """Those that stand somewhere already."""
    slots: tuple[Instant, ...]
    """When each of them gets free, the earliest first."""
    after: Instant
    """Nobody who waits merges earlier, because this is when the last one ahead does."""


class Outlook(Struct, frozen=True):
    usual: Timetable
    slow: Timetable
    batch_size: int

    def of(self, submission: Submission, position: int) -> Expected | None:
        """None for one that stays out of the line for now: nobody knows for how long."""
        if submission.hold is not None:
            return None
        return Expected(*(self._merges_at(timetable, submission, position) for timetable in (self.usual, self.slow)))

    def _merges_at(self, timetable: Timetable, submission: Submission, position: int) -> Instant:
        known = timetable.merging.get(submission.ticket)
        if known is not None:
            return known
        turn = (position - 1 - len(timetable.merging)) // self.batch_size
        rounds, slot = divmod(turn, len(timetable.slots))
        passes = later(timetable.slots[slot], (rounds + 1) * timetable.duration)
        return max(passes, timetable.after)


def outlook(queue: Queue, now: Instant) -> Outlook | None:
    """None while no run was green yet, or while nothing starts or merges."""
    if not queue.durations or not queue.may_start:
        return None
    usual, slow = (_timetable(queue, _quantile(queue, share), now) for share in (0.5, 0.9))
    return Outlook(usual, slow, queue.config.batch_size)


def usual(queue: Queue) -> int | None:
    """How long a run takes, in milliseconds."""
    return _quantile(queue, 0.5) if queue.durations else None


def record_duration(queue: Queue, run: Run) -> Queue:
    """Of one that is green or was stopped. The slow ones are stopped more often: without them runs would look quick."""
    if run.started_at is None or run.decided_at is None:
        return queue
    took = max(0, run.decided_at - run.started_at - run.outages)
    if run.status is RunStatus.SUCCEEDED:
        return replace(queue, durations=_latest((*queue.durations, took)))
    if queue.durations:
        return replace(queue, durations=_latest((*queue.durations, LongerThan(took))))
    return queue


def _latest(durations: tuple[Duration, ...]) -> tuple[Duration, ...]:
    """However many are stopped, the green ones are among them."""
    green = [place for place, took in enumerate(durations) if isinstance(took, int)]
    durations = durations[green[-REMEMBERED:][0] :]
    return (*whole(durations[:-MOST_REMEMBERED]), *durations[-MOST_REMEMBERED:])


def _quantile(queue: Queue, share: float) -> int:
    took = sorted(whole(queue.durations))
    return took[int(len(took) * share)]


def _timetable(queue: Queue, duration: int, now: Instant) -> Timetable:
    slots = _slots(queue, duration, now)
    merging, times, last = dict[Ticket, Instant](), dict[BatchId, Instant](), now
    for batch in queue.line.batches:
        passes = _passes_at(queue, batch, duration, slots[0], now)
        ahead = (last,) if queue.mode is Mode.SINGLE else (times[other] for other in queue.line.ahead[batch.id])
        times[batch.id] = max((passes, *ahead))
        merging.update(dict.fromkeys(batch.tickets, times[batch.id]))
        last = max(last, times[batch.id])
    for bisection in queue.bisections:
        merging.update(dict.fromkeys(bisection.members, _found_at(bisection, duration, now)))
    return Timetable(duration, merging, slots, last if queue.mode is Mode.SINGLE else now)


def _slots(queue: Queue, duration: int, now: Instant) -> tuple[Instant, ...]:
    busy = [
        _ends_at(run, duration, now) for run in queue.runs.values() if run.active and run.kind is not RunKind.BISECTION
    ]
    free = [now] * max(0, queue.config.concurrency - len(busy))
    return tuple(sorted((*busy, *free)))


def _passes_at(queue: Queue, batch: Batch, duration: int, slot: Instant, now: Instant) -> Instant:
    if queue.submissions[batch.tickets[0]].state is PrState.TESTS_PASSED:
        return now
    run = holding.current_run(queue, batch)
    return _ends_at(run, duration, now) if run is not None and run.active else later(slot, duration)


def _ends_at(run: Run, duration: int, now: Instant) -> Instant:
    elapsed = 0 if run.started_at is None else now - run.started_at
    return later(now, max(duration - elapsed, round(OVERDUE * elapsed)))


def _found_at(bisection: Bisection, duration: int, now: Instant) -> Instant:
    """So many rounds until the guilty one is known, then one more for those who are not."""
    rounds = (bisection.red - bisection.green).bit_length()
    return later(now, (rounds + 1) * duration)
