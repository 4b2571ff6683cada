"""Decides: the only door of the engine.

The queue as it is known, the news since and the time go in; the queue as it should be comes out.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import News, Queue
from mergeyard.domain.reasons import Refusal
from mergeyard.engine import (
    bisecting,
    clock,
    directing,
    expiring,
    forgetting,
    judging,
    merging,
    naming,
    readiness,
    retaining,
    running,
    speculating,
    starting,
    switching,
    unchanged,
    urgency,
)
from mergeyard.engine.record import record

Step = Callable[[Queue, Instant], Queue]

STEPS: tuple[Step, ...] = (
    expiring.expire,
    clock.start_or_stop,
    readiness.open_or_close,
    retaining.release,
    retaining.step_out,
    judging.drop_misfits,
    judging.withdraw_clearances,
    speculating.drop_futile,
    running.end_unneeded,
    switching.settle,
    urgency.place_urgent,
    directing.nominate,
    starting.start_those_who_may_clear,
    bisecting.advance,
    judging.judge,
    starting.start,
    merging.choose_landing,
)
"""In this order, and from the first again whenever one changed anything: each may rely on those before it."""


OF_WHAT_IS_UNDER_TEST = frozenset[Step](
    {
        judging.drop_misfits,
        judging.withdraw_clearances,
        running.end_unneeded,
        bisecting.advance,
        judging.judge,
    }
)
"""These look at nothing else. While all that is what it was when the last turn settled, they have nothing to do."""

PATIENCE = 10_000
"""How many changes one turn may take: far more than any real one, and better than never to answer."""


class Unsettled(Exception):
    """Two rules undo each other's work. Nothing was changed."""


def decide(queue: Queue, events: Sequence[Event], now: Instant) -> Decision:
    turns = queue.counters.turns + 1
    begun = replace(queue, counters=replace(queue.counters, turns=turns), news=News(settled=queue))
    after, refusals = begun, dict[int, Refusal]()
    for place, event in enumerate(events):
        answer = record(after, event, now)
        if isinstance(answer, Refusal):
            refusals[place] = answer
        else:
            after = answer
    after = _settle(after, now)
    if after is begun:
        return Decision(queue=queue, refusals=refusals, wake_at=clock.wake_at(queue, now))
    after = forgetting.forget(naming.name_all(after, now))
    return Decision(
        queue=replace(after, news=News()),
        journal=tuple(after.news.journal.values()),
        concluded=tuple(after.news.concluded.values()),
        finished=after.news.finished,
        refusals=refusals,
        wake_at=clock.wake_at(after, now),
    )


def _settle(queue: Queue, now: Instant) -> Queue:
    for _ in range(PATIENCE):
        changed = _first_change(queue, now)
        if changed is queue:
            return queue
        queue = changed
    raise Unsettled(f"still changing after {PATIENCE} steps")


def _first_change(queue: Queue, now: Instant) -> Queue:
    idle = OF_WHAT_IS_UNDER_TEST if unchanged.all_under_test(queue) else ()
    for step in STEPS:
        if step in idle:
            continue
        changed = step(queue, now)
        if changed is not queue:
            return changed
    return queue
