"""Webhooks are stored, changed by one writer at a time, and keep their last deliveries."""

import asyncio

import pytest

from mergeyard.ports.store import MAX_DELIVERIES_PER_WEBHOOK, Store, VersionConflict
from mergeyard.ports.writes import DeleteWebhook, SaveDelivery, WebhookRow
from tests.contract.store.builders import a_webhook, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_the_latest_version_of_a_webhook_is_stored(store: Store):
    async with opened(store):
        await store.commit(a_webhook("b"), a_webhook("a"))
        await store.commit(a_webhook("b", version=2, body=b"changed"))
        assert await store.webhooks() == (WebhookRow("a", 1, b"webhook"), WebhookRow("b", 2, b"changed"))


@asynchronous
async def test_all_but_one_of_concurrent_changes_of_a_webhook_are_conflicts(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        racing = [store.commit(a_webhook(version=2, body=b"%d" % racer)) for racer in range(5)]
        outcomes = await asyncio.gather(*racing, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", *["VersionConflict"] * 4]
        assert await store.webhooks() == (WebhookRow("w1", 2, b"%d" % outcomes.index(None)),)


@asynchronous
async def test_a_webhook_is_created_once_and_changed_only_while_it_exists(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        with pytest.raises(VersionConflict):
            await store.commit(a_webhook(body=b"another"))
        await store.commit(DeleteWebhook("w1"))
        with pytest.raises(VersionConflict):
            await store.commit(a_webhook(version=2))
        assert await store.webhooks() == ()


@asynchronous
async def test_deliveries_are_listed_newest_first_and_found_by_their_event(store: Store):
    async with opened(store):
        await store.commit(a_webhook("w1"), a_webhook("w2"))
        for event, body in (("e1", b"failed"), ("e1", b"sent"), ("e2", b"sent too")):
            await store.commit(SaveDelivery("w1", event, body))
        assert await store.deliveries("w1", 2) == (b"sent too", b"sent")
        assert await store.delivery("w1", "e1") == b"sent"
        assert await store.delivery("w1", "e3") is None
        assert await store.deliveries("w2", 9) == ()
        assert await store.delivery("w2", "e1") is None


@asynchronous
async def test_only_the_last_deliveries_are_kept(store: Store):
    async with opened(store):
        await store.commit(a_webhook("w1"), a_webhook("w2"))
        await store.commit(SaveDelivery("w2", "e", b"another's"))
        for count in range(MAX_DELIVERIES_PER_WEBHOOK + 5):
            await store.commit(SaveDelivery("w1", "e", b"%d" % count))
        kept = await store.deliveries("w1", MAX_DELIVERIES_PER_WEBHOOK + 5)
        assert kept == tuple(b"%d" % count for count in reversed(range(5, MAX_DELIVERIES_PER_WEBHOOK + 5)))
        assert await store.deliveries("w2", 9) == (b"another's",)


@asynchronous
async def test_a_deleted_webhook_has_no_deliveries(store: Store):
    async with opened(store):
        await store.commit(a_webhook())
        await store.commit(SaveDelivery("w1", "e", b"sent"))
        await store.commit(DeleteWebhook("w1"))
        await store.commit(SaveDelivery("w1", "e", b"sent too late"))
        assert await store.deliveries("w1", 9) == ()
