"""Reads single stays, runs and targets out of the store, whether they are still in the queue or not."""

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.pulls import Submission
from mergeyard.domain.runs import Run
from mergeyard.domain.targets import Targets
from mergeyard.ports.store import Store
from mergeyard.service import long_targets
from mergeyard.service.shelving import decode_run, decode_stay


async def stay(store: Store, queue: QueueId, ticket: Ticket) -> Submission | None:
    body = await store.stay(queue, ticket)
    return None if body is None else decode_stay(body)


async def last_stay(store: Store, queue: QueueId, number: PrNumber) -> Submission | None:
    body = await store.last_stay(queue, number)
    return None if body is None else decode_stay(body)


async def run(store: Store, queue: QueueId, name: RunId) -> Run | None:
    body = await store.run(queue, name)
    return None if body is None else decode_run(body)


async def targets(store: Store, queue: QueueId, number: PrNumber, head: Sha) -> Targets | None:
    body = await store.targets(queue, number, head)
    return None if body is None else await long_targets.decoded_aside(body)
