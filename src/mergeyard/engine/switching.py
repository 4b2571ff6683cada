"""Ends a change of mode: when all runs are over and nothing more can land, the line is cleared and built anew."""

from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Line
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.engine import dissolving, merging, operating, places


def settle(queue: Queue, now: Instant) -> Queue:
    if not queue.switching or _anything_left_to_finish(queue):
        return queue
    tickets = queue.line.tickets
    queue = places.send_back(replace(queue, line=Line()), tickets, Reason.MODE_SWITCHED, now)
    for bisection in queue.bisections:
        queue = dissolving.dissolve(queue, bisection, bisection.members, Reason.MODE_SWITCHED, now)
    after = replace(queue, mode=queue.config.mode)
    return operating.announce(queue.state, after, Reason.MODE_SWITCHED, now)


def _anything_left_to_finish(queue: Queue) -> bool:
    if queue.landing is not None or any(run.active for run in queue.runs.values()):
        return True
    return not queue.paused and any(merging.may_land(queue, batch) for batch in queue.line.batches)
