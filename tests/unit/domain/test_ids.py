"""The name of a run is drawn from the queue's own counter."""

from uuid import RFC_4122, UUID

from mergeyard.domain.ids import QueueId, Ticket, run_id, stay_id


def test_the_same_run_of_the_same_queue_always_has_the_same_name():
    assert run_id(QueueId("one"), 3) == run_id(QueueId("one"), 3)


def test_another_run_of_the_same_queue_has_another_name():
    assert run_id(QueueId("one"), 3) != run_id(QueueId("one"), 4)


def test_the_same_run_of_another_queue_has_another_name():
    assert run_id(QueueId("one"), 3) != run_id(QueueId("two"), 3)


def test_a_name_is_a_uuid_made_by_rules_of_our_own():
    name = UUID(run_id(QueueId("one"), 3))
    assert (name.version, name.variant) == (8, RFC_4122)


def test_every_stay_has_a_name_of_its_own():
    names = {stay_id(QueueId(queue), Ticket(ticket)) for queue in ("one", "two") for ticket in (1, 2)}
    assert len(names | {run_id(QueueId("one"), 1)}) == 5
