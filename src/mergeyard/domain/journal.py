"""What is told to people: every change, with its time, actor and reason."""

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState

OURSELVES = "mergeyard"


class PrChanged(Struct, frozen=True, kw_only=True, tag=True):
    at: Instant
    ticket: Ticket
    number: PrNumber
    source: PrState | None
    to: PrState
    reason: Reason
    actor: str = OURSELVES
    run: RunId | None = None
    upon: tuple[PrNumber, ...] = ()
    words: str = ""


class QueueChanged(Struct, frozen=True, kw_only=True, tag=True):
    """Its state changed, or, when both states are the same, its settings."""

    at: Instant
    source: QueueState
    to: QueueState
    reason: Reason
    actor: str = OURSELVES
    words: str = ""


class QueueCreated(Struct, frozen=True, kw_only=True, tag=True):
    at: Instant
    actor: str


class QueueDeleted(Struct, frozen=True, kw_only=True, tag=True):
    at: Instant
    actor: str


Entry = PrChanged | QueueChanged
"""What the engine tells."""

Record = Entry | QueueCreated | QueueDeleted
"""What the journal keeps."""
