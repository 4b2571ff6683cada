"""What one replica calls out, all hear; whoever may have missed words is told so."""

import asyncio

from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import StoreTrouble
from tests.contract.sharing.given import all_opened
from tests.contract.store.given import opened
from tests.support.asynchronous import asynchronous
from tests.support.postgres import PostgresServer
from tests.support.waiting import come_true


class Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.deaf = 0

    async def on_deaf_ears(self) -> None:
        self.deaf += 1


@asynchronous
async def test_every_replica_hears_what_one_calls_out_the_caller_too(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        here, there = Listener(), Listener()
        await one.listen(here.heard.append, here.on_deaf_ears)
        await other.listen(there.heard.append, there.on_deaf_ears)
        await one.call_out("first", "second")
        await other.call_out("größe 試験")
        for listener in (here, there):
            await come_true(lambda listener=listener: len(listener.heard) == 3)
            assert sorted(listener.heard) == ["first", "größe 試験", "second"]
            assert listener.deaf == 0


@asynchronous
async def test_nobody_hears_what_is_called_out_at_another_database(one: SharedStore, server: PostgresServer):
    elsewhere = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with all_opened(one, elsewhere):
        listener = Listener()
        await one.listen(listener.heard.append, listener.on_deaf_ears)
        await elsewhere.call_out("elsewhere")
        await one.call_out("here")
        await come_true(lambda: listener.heard)
        assert listener.heard == ["here"]


@asynchronous
async def test_calling_out_nothing_is_harmless(one: SharedStore):
    async with opened(one):
        await one.call_out()


@asynchronous
async def test_a_closed_store_hears_nothing_and_can_listen_again(one: SharedStore, other: SharedStore):
    async with opened(other):
        before, after = Listener(), Listener()
        async with opened(one):
            await one.listen(before.heard.append, before.on_deaf_ears)
        async with opened(one):
            await one.listen(after.heard.append, after.on_deaf_ears)
            await other.call_out("word")
            await come_true(lambda: after.heard)
        assert (before.heard, after.heard, before.deaf) == ([], ["word"], 0)


@asynchronous
async def test_after_the_database_was_restarted_the_deaf_are_told_and_hear_again(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        listener = Listener()
        await store.listen(listener.heard.append, listener.on_deaf_ears)
        await asyncio.to_thread(server.stop)
        assert listener.deaf == 0
        await asyncio.to_thread(server.start)
        await come_true(lambda: listener.deaf)
        await store.call_out("again")
        await come_true(lambda: listener.heard)
        assert (listener.heard, listener.deaf) == (["again"], 1)


@asynchronous
async def test_whoever_cannot_look_after_deaf_ears_is_told_again(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        heard, looks = list[str](), iter([False, False, True])
        looked = asyncio.Event()

        async def look() -> None:
            if not next(looks):
                raise StoreTrouble("gone again")
            looked.set()

        await store.listen(heard.append, look)
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await come_true(looked.is_set)
        await store.call_out("once")
        await come_true(lambda: heard)
        assert heard == ["once"]


@asynchronous
async def test_closing_ends_the_wait_for_a_database_that_is_gone(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        listener = Listener()
        await store.listen(listener.heard.append, listener.on_deaf_ears)
        await asyncio.to_thread(server.stop)
    assert listener.deaf == 0
