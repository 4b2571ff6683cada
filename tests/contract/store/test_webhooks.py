"""Webhooks are kept, changed by one at a time, and remember the last attempts to send something there."""

import asyncio

import pytest

from mergeyard.ports.store import DELIVERIES_KEPT, Outrun, Store
from mergeyard.ports.writes import DropWebhook, KeepDelivery, WebhookRow
from tests.contract.store.given import a_webhook, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_webhooks_are_kept_as_they_are_now(store: Store):
    async with opened(store):
        await store.commit(a_webhook("b"), a_webhook("a"))
        await store.commit(a_webhook("b", version=2, body=b"changed"))
        assert await store.webhooks() == (WebhookRow("a", 1, b"webhook"), WebhookRow("b", 2, b"changed"))


@asynchronous
async def test_of_two_that_change_a_webhook_at_once_one_is_outrun(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        racing = [store.commit(a_webhook(version=2, body=b"%d" % racer)) for racer in range(5)]
        outcomes = await asyncio.gather(*racing, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", *["Outrun"] * 4]
        assert await store.webhooks() == (WebhookRow("w1", 2, b"%d" % outcomes.index(None)),)


@asynchronous
async def test_a_webhook_is_made_once_and_changed_only_while_it_is_there(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        with pytest.raises(Outrun):
            await store.commit(a_webhook(body=b"another"))
        await store.commit(DropWebhook("w1"))
        with pytest.raises(Outrun):
            await store.commit(a_webhook(version=2))
        assert await store.webhooks() == ()


@asynchronous
async def test_attempts_are_listed_newest_first_and_found_by_their_event(store: Store):
    async with opened(store):
        await store.commit(a_webhook("w1"), a_webhook("w2"))
        for event, body in (("e1", b"failed"), ("e1", b"sent"), ("e2", b"sent too")):
            await store.commit(KeepDelivery("w1", event, body))
        assert await store.deliveries("w1", 2) == (b"sent too", b"sent")
        assert await store.delivery("w1", "e1") == b"sent"
        assert await store.delivery("w1", "e3") is None
        assert await store.deliveries("w2", 9) == ()
        assert await store.delivery("w2", "e1") is None


@asynchronous
async def test_only_the_last_attempts_are_kept(store: Store):
    async with opened(store):
        await store.commit(a_webhook("w1"), a_webhook("w2"))
        await store.commit(KeepDelivery("w2", "e", b"another's"))
        for count in range(DELIVERIES_KEPT + 5):
            await store.commit(KeepDelivery("w1", "e", b"%d" % count))
        kept = await store.deliveries("w1", DELIVERIES_KEPT + 5)
        assert kept == tuple(b"%d" % count for count in reversed(range(5, DELIVERIES_KEPT + 5)))
        assert await store.deliveries("w2", 9) == (b"another's",)


@asynchronous
async def test_nothing_is_known_of_a_webhook_that_is_gone(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        await store.commit(KeepDelivery("w1", "e", b"sent"))
        await store.commit(DropWebhook("w1"))
        await store.commit(KeepDelivery("w1", "e", b"sent too late"))
        assert await store.deliveries("w1", 9) == ()
