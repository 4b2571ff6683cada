"""What is told to people: every change, with its time, actor and reason."""

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState

OURSELVES = "mergeyard"
OPERATOR = "operator"
"""Whoever gives commands on the machine itself."""
RESERVED = {OURSELVES, OPERATOR}
"""Names that nobody else goes by."""


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
"""What the journal keeps of a queue, and what others are told."""


class Deed(Struct, frozen=True, kw_only=True):
    """What somebody did to the installation itself, and so to no queue. Nobody is told but who reads the journal."""

    at: Instant
    actor: str
    id: str
    """Of the token or webhook that it was done to."""
    name: str
    """What people know it by. Never a secret."""
    words: str = ""


class TokenCreated(Deed, frozen=True, tag=True):
    pass


class TokenRevoked(Deed, frozen=True, tag=True):
    pass


class WebhookCreated(Deed, frozen=True, tag=True):
    pass


class WebhookChanged(Deed, frozen=True, tag=True):
    pass


class WebhookDeleted(Deed, frozen=True, tag=True):
    pass


class WebhookTested(Deed, frozen=True, tag=True):
    pass


class EventResent(Deed, frozen=True, tag=True):
    pass


class SignedIn(Deed, frozen=True, tag=True):
    pass


class SignedOut(Deed, frozen=True, tag=True):
    """Everybody whom somebody else vouched for was."""


Administered = (
    TokenCreated
    | TokenRevoked
    | WebhookCreated
    | WebhookChanged
    | WebhookDeleted
    | WebhookTested
    | EventResent
    | SignedIn
    | SignedOut
)

Kept = Record | Administered
"""All that the journal keeps."""
