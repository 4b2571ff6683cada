"""Words come, come late, or get lost, as the simulation wants it; what a dead replica is told nobody hears."""

import asyncio
from functools import partial

import pytest

from mergeyard.ports.sharing import Hear
from mergeyard.ports.store import StoreTrouble
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock


class Replica:
    """Connected, and all ears."""

    def __init__(self, records: Records) -> None:
        self.store = MemoryStore(records, HandClock())
        self.heard: list[str] = []
        self.looks = 0
        self.can_look = True

    async def open(self) -> "Replica":
        await self.store.open()
        await self.store.listen(self.heard.append, self.look)
        return self

    async def look(self) -> None:
        if not self.can_look:
            raise StoreTrouble("gone again")
        self.looks += 1


async def two_replicas() -> tuple[Replica, Replica]:
    records = Records()
    return await Replica(records).open(), await Replica(records).open()


def keep_under_way(under_way: list[partial[None]], hear: Hear, word: str) -> None:
    under_way.append(partial(hear, word))


@asynchronous
async def test_a_word_is_heard_in_the_next_round_of_the_loop():
    one, other = await two_replicas()
    await one.store.call_out("a", "b", "a")
    assert (one.heard, other.heard) == ([], [])
    await asyncio.sleep(0)
    assert (one.heard, other.heard) == (["a", "b"], ["a", "b"])


@asynchronous
async def test_what_is_delivered_to_nobody_is_lost_for_that_replica_alone():
    one, other = await two_replicas()
    other.store.deliver = lambda _hear, _word: None
    await one.store.call_out("a")
    await asyncio.sleep(0)
    assert (one.heard, other.heard) == (["a"], [])


@asynchronous
async def test_a_word_that_comes_after_a_replica_died_is_not_heard():
    one, other = await two_replicas()
    under_way = list[partial[None]]()
    other.store.deliver = partial(keep_under_way, under_way)
    await one.store.call_out("in time", "too late")
    in_time, too_late = under_way
    in_time()
    other.store.hang_up()
    too_late()
    assert other.heard == ["in time"]
    with pytest.raises(StoreTrouble):
        await other.store.call_out("from the dead")


@asynchronous
async def test_who_was_deaf_missed_every_word_and_looks_when_it_hears_again():
    one, other = await two_replicas()
    other.store.go_deaf()
    await one.store.call_out("missed")
    await asyncio.sleep(0)
    await other.store.hear_again()
    await one.store.call_out("heard")
    await asyncio.sleep(0)
    assert (other.heard, other.looks, one.looks) == (["heard"], 1, 0)


@asynchronous
async def test_who_cannot_look_is_deaf_still():
    one, other = await two_replicas()
    other.can_look = False
    other.store.go_deaf()
    with pytest.raises(StoreTrouble):
        await other.store.hear_again()
    await one.store.call_out("missed")
    await asyncio.sleep(0)
    assert (other.heard, other.looks) == ([], 0)
