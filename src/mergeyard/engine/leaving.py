"""Takes a pull request out of the queue for good, merged, failed or cancelled."""

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import OURSELVES
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.engine import dissolving, learning, naming, places


def leave(
    queue: Queue,
    ticket: Ticket,
    state: PrState,
    reason: Reason,
    now: Instant,
    *,
    actor: str = OURSELVES,
    upon: tuple[PrNumber, ...] = (),
    words: str = "",
) -> Queue:
    queue = places.take_out(queue, ticket)
    queue = dissolving.lose(queue, ticket, state is PrState.MERGED, now)
    queue = naming.rename(queue, ticket, state, reason, now, actor=actor, upon=upon, words=words)
    gone = queue.submissions[ticket]
    return replace(
        learning.learn(queue, gone),
        submissions=queue.submissions.drop(ticket),
        tickets=queue.tickets.drop(gone.number),
        looks=queue.looks.drop(ticket),
        news=replace(queue.news, concluded=queue.news.concluded.put(ticket, gone)),
    )
