"""What the engine answers: the queue as it should be, and what to tell whom."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import Entry
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.runs import Run


class Decision(Struct, frozen=True, kw_only=True):
    queue: Queue
    journal: tuple[Entry, ...] = ()
    concluded: tuple[Submission, ...] = ()
    """Stays that ended in this turn: the queue forgets them, the store does not."""
    finished: tuple[Run, ...] = ()
    """Runs that nothing depends on any more."""
    refusals: Mapping[int, Refusal]
    """Which of the events, by their place, were requests that changed nothing."""
    wake_at: Instant | None = None
    """When to decide again, even if nothing happens until then."""
