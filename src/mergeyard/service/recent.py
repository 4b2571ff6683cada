"""What happened last to a queue: who left it, and who paused it."""

from msgspec import json

from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import QueueState
from mergeyard.ports.store import Store
from mergeyard.service import shelving

decode_change = json.Decoder(QueueChanged).decode


async def concluded(store: Store, queue: Queue, take: int) -> list[Submission]:
    """The stays that ended last, the latest first."""
    return list(map(shelving.decode_stay, await store.concluded_stays(queue.id, take)))


async def pause(store: Store, queue: Queue) -> QueueChanged | None:
    """Who paused the queue, if it is paused."""
    body = await store.last_change(queue.id, QueueState.PAUSED) if queue.paused else None
    return None if body is None else decode_change(body)
