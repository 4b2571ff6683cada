"""Notifications between replicas: every replica receives them, and a listener that may have missed some is called."""

import asyncio

import pytest

from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.ports.store import SharedStore, StoreUnavailable
from tests.contract.replication.support import open_all
from tests.contract.store.builders import opened
from tests.support.asynchronous import asynchronous
from tests.support.polling import wait_until
from tests.support.postgres import PostgresServer


class Listener:
    def __init__(self) -> None:
        self.received: list[str] = []
        self.disconnects = 0

    async def on_disconnect(self) -> None:
        self.disconnects += 1


@asynchronous
async def test_every_replica_receives_a_notification_including_the_sender(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        here, there = Listener(), Listener()
        await one.listen(here.received.append, here.on_disconnect)
        await other.listen(there.received.append, there.on_disconnect)
        await one.notify("first", "second")
        await other.notify("größe 試験")
        for listener in (here, there):
            await wait_until(lambda listener=listener: len(listener.received) == 3)
            assert sorted(listener.received) == ["first", "größe 試験", "second"]
            assert listener.disconnects == 0


@pytest.mark.long
@asynchronous
async def test_notifications_do_not_reach_other_databases(one: SharedStore, server: PostgresServer):
    elsewhere = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with open_all(one, elsewhere):
        listener = Listener()
        await one.listen(listener.received.append, listener.on_disconnect)
        await elsewhere.notify("elsewhere")
        await one.notify("here")
        await wait_until(lambda: listener.received)
        assert listener.received == ["here"]


@asynchronous
async def test_an_empty_notification_is_harmless(one: SharedStore):
    async with opened(one):
        await one.notify()


@asynchronous
async def test_a_closed_store_receives_nothing_and_can_listen_again(one: SharedStore, other: SharedStore):
    async with opened(other):
        before, after = Listener(), Listener()
        async with opened(one):
            await one.listen(before.received.append, before.on_disconnect)
        async with opened(one):
            await one.listen(after.received.append, after.on_disconnect)
            await other.notify("hint")
            await wait_until(lambda: after.received)
        assert (before.received, after.received, before.disconnects) == ([], ["hint"], 0)


@pytest.mark.long
@asynchronous
async def test_after_a_database_restart_listeners_are_called_once_and_receive_again(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        listener = Listener()
        await store.listen(listener.received.append, listener.on_disconnect)
        await asyncio.to_thread(server.stop)
        assert listener.disconnects == 0
        await asyncio.to_thread(server.start)
        await wait_until(lambda: listener.disconnects)
        await store.notify("again")
        await wait_until(lambda: listener.received)
        assert (listener.received, listener.disconnects) == (["again"], 1)


@pytest.mark.long
@asynchronous
async def test_a_failed_disconnect_callback_is_called_again(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        received, outcomes = list[str](), iter([False, False, True])
        refreshed = asyncio.Event()

        async def refresh() -> None:
            if not next(outcomes):
                raise StoreUnavailable("gone again")
            refreshed.set()

        await store.listen(received.append, refresh)
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await wait_until(refreshed.is_set)
        await store.notify("once")
        await wait_until(lambda: received)
        assert received == ["once"]


@asynchronous
async def test_closing_ends_the_wait_for_a_database_that_is_gone(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        listener = Listener()
        await store.listen(listener.received.append, listener.on_disconnect)
        await asyncio.to_thread(server.stop)
    assert listener.disconnects == 0
