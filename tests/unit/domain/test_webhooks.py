"""A webhook is subscribed to the events and topics that it names."""

from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.domain.webhooks import EventType, Topic, Webhook

APP, LIB = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "lib")
MAIN, NEXT = QueueKey(APP, "main"), QueueKey(APP, "next")
MERGED, FAILED = EventType.PR_MERGED, EventType.PR_FAILED


def a_webhook(*, events: tuple[EventType, ...] = (), topics: tuple[Topic, ...] = ()) -> Webhook:
    return Webhook(
        id="w1", redacted_url="", encrypted_endpoint=b"", events=events, topics=topics, created_at=Instant(1)
    )


def test_a_webhook_without_filters_is_subscribed_to_everything():
    assert all(a_webhook().is_subscribed_to(key, event) for key in (MAIN, NEXT) for event in EventType)


def test_a_webhook_with_event_types_is_subscribed_only_to_these():
    webhook = a_webhook(events=(MERGED,))
    assert (webhook.is_subscribed_to(MAIN, MERGED), webhook.is_subscribed_to(MAIN, FAILED)) == (True, False)


def test_a_webhook_with_a_repository_is_subscribed_to_all_its_queues():
    webhook = a_webhook(topics=(Topic(APP),))
    assert [webhook.is_subscribed_to(key, MERGED) for key in (MAIN, NEXT, QueueKey(LIB, "main"))] == [True, True, False]


def test_a_webhook_with_queues_is_subscribed_only_to_these():
    webhook = a_webhook(topics=(Topic(APP, "next"), Topic(LIB, "main")), events=(MERGED,))
    assert [webhook.is_subscribed_to(key, MERGED) for key in (MAIN, NEXT, QueueKey(LIB, "main"))] == [False, True, True]
    assert not webhook.is_subscribed_to(NEXT, FAILED)


def test_every_webhook_has_its_own_consumer():
    assert a_webhook().consumer == "webhook:w1"
