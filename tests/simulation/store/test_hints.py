"""Hints arrive, arrive late, or are lost, as the simulation decides; a dead replica receives none."""

import asyncio
from functools import partial

import pytest

from mergeyard.ports.store import HintHandler, StoreUnavailable
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock


class Replica:
    """A replica that is connected and listens."""

    def __init__(self, records: Records) -> None:
        self.store = MemoryStore(records, ManualClock())
        self.received: list[str] = []
        self.reads = 0
        self.can_read = True

    async def open(self) -> "Replica":
        await self.store.open()
        await self.store.listen(self.received.append, self.read)
        return self

    async def read(self) -> None:
        if not self.can_read:
            raise StoreUnavailable("gone again")
        self.reads += 1


async def two_replicas() -> tuple[Replica, Replica]:
    records = Records()
    return await Replica(records).open(), await Replica(records).open()


def delay_delivery(in_flight: list[partial[None]], on_hint: HintHandler, hint: str) -> None:
    in_flight.append(partial(on_hint, hint))


@asynchronous
async def test_hint_is_received_in_the_next_round_of_the_loop():
    one, other = await two_replicas()
    await one.store.notify("a", "b", "a")
    assert (one.received, other.received) == ([], [])
    await asyncio.sleep(0)
    assert (one.received, other.received) == (["a", "b"], ["a", "b"])


@asynchronous
async def test_hint_that_is_not_delivered_is_lost_for_that_replica_only():
    one, other = await two_replicas()
    other.store.deliver = lambda _on_hint, _hint: None
    await one.store.notify("a")
    await asyncio.sleep(0)
    assert (one.received, other.received) == (["a"], [])


@asynchronous
async def test_hint_that_arrives_after_a_replica_died_is_not_received():
    one, other = await two_replicas()
    in_flight = list[partial[None]]()
    other.store.deliver = partial(delay_delivery, in_flight)
    await one.store.notify("in time", "too late")
    in_time, too_late = in_flight
    in_time()
    other.store.disconnect()
    too_late()
    assert other.received == ["in time"]
    with pytest.raises(StoreUnavailable):
        await other.store.notify("from a dead replica")


@asynchronous
async def test_replica_that_did_not_listen_reads_the_store_when_it_listens_again():
    one, other = await two_replicas()
    other.store.stop_listening()
    await one.store.notify("missed")
    await asyncio.sleep(0)
    await other.store.resume_listening()
    await one.store.notify("received")
    await asyncio.sleep(0)
    assert (other.received, other.reads, one.reads) == (["received"], 1, 0)


@asynchronous
async def test_replica_that_cannot_read_the_store_still_does_not_listen():
    one, other = await two_replicas()
    other.can_read = False
    other.store.stop_listening()
    with pytest.raises(StoreUnavailable):
        await other.store.resume_listening()
    await one.store.notify("missed")
    await asyncio.sleep(0)
    assert (other.received, other.reads) == ([], 0)
