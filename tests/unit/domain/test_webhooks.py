"""A webhook wants what it was made for."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.webhooks import EventType, Topic, Webhook

APP, LIB = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "lib")
MAIN, NEXT = QueueKey(APP, "main"), QueueKey(APP, "next")
MERGED, FAILED = EventType.PR_MERGED, EventType.PR_FAILED


def a_webhook(*, events: tuple[EventType, ...] = (), topics: tuple[Topic, ...] = ()) -> Webhook:
    return Webhook(id="w1", shown_url="", sealed=b"", events=events, topics=topics, created_at=Instant(1))


def test_one_that_names_nothing_wants_everything():
    assert all(a_webhook().wants(key, event) for key in (MAIN, NEXT) for event in EventType)


def test_one_that_names_types_wants_only_these():
    webhook = a_webhook(events=(MERGED,))
    assert (webhook.wants(MAIN, MERGED), webhook.wants(MAIN, FAILED)) == (True, False)


def test_one_that_names_a_repository_wants_all_its_queues():
    webhook = a_webhook(topics=(Topic(APP),))
    assert [webhook.wants(key, MERGED) for key in (MAIN, NEXT, QueueKey(LIB, "main"))] == [True, True, False]


def test_one_that_names_queues_wants_only_these():
    webhook = a_webhook(topics=(Topic(APP, "next"), Topic(LIB, "main")), events=(MERGED,))
    assert [webhook.wants(key, MERGED) for key in (MAIN, NEXT, QueueKey(LIB, "main"))] == [False, True, True]
    assert not webhook.wants(NEXT, FAILED)


def test_each_is_told_by_a_teller_of_its_own():
    assert a_webhook().teller == "webhook:w1"
