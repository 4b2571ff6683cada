"""Pauses the queue for what was found wrong with its landings: once for every mismatch, and repairs nothing."""

from collections.abc import Sequence

from msgspec.structs import replace

from mergeyard.domain.events import LandingsDoubted
from mergeyard.domain.instants import Instant
from mergeyard.domain.mismatches import Mismatch
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import QueueState
from mergeyard.engine import operating

MOST_TOLD = 3
MOST_REMEMBERED = 500
"""More than that only a rewritten history brings about."""


def doubt(queue: Queue, event: LandingsDoubted, now: Instant) -> Queue:
    """Whoever resumes the queue has seen what it was paused for: the same found again is no news."""
    known = frozenset(queue.target.doubted)
    fresh = {found.name: found for found in event.mismatches if found.name not in known}
    if not fresh:
        return queue
    doubted = (*queue.target.doubted, *fresh)[-MOST_REMEMBERED:]
    queue = replace(queue, target=replace(queue.target, doubted=doubted))
    words = _told(tuple(fresh.values()))
    return operating.set_state(queue, QueueState.PAUSED, Reason.AUDIT_MISMATCH, now, words=words)


def _told(fresh: Sequence[Mismatch]) -> str:
    words = [found.words for found in fresh[:MOST_TOLD]]
    more = len(fresh) - len(words)
    return " ".join([*words, f"And {more} more: `mergeyard audit` lists them."] if more else words)
