"""What was written through one replica is read through every other, at once and as often as one likes."""

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from tests.replicas.installation import Installation
from tests.support.api import Api

MANY = 60


def repos(door: Api) -> list[dict[str, str]]:
    return [queue["repo"] for queue in door.post("listQueues")["queues"]]


def test_what_was_written_through_one_replica_is_read_through_the_next(trio: Installation):
    queue = trio.queue("settings")
    doors = cycle([trio.through(replica, queue) for replica in trio.replicas])
    for concurrency in range(1, MANY):
        assert next(doors).post("updateQueue", concurrency=concurrency)["concurrency"] == concurrency
        assert next(doors).post("getQueue")["concurrency"] == concurrency


def test_a_submission_and_its_end_are_seen_at_once_everywhere(trio: Installation):
    queue = trio.queue("stays")
    queue.update_queue(state="PAUSED")
    doors = cycle([trio.through(replica, queue) for replica in trio.replicas])
    for number in [queue.open_pr({f"{name}.txt": "1"}) for name in range(MANY // 4)]:
        pull = {"number": number}
        submitted = next(doors).post("submitPullRequest", pr=pull)
        assert next(doors).post("getSubmittedPullRequest", pr=pull)["id"] == submitted["id"]
        assert number in {one["prNumber"] for one in next(doors).post("getQueue")["enqueuedPullRequests"]}
        next(doors).post("cancelPullRequest", pr=pull)
        assert next(doors).post("getSubmittedPullRequest", pr=pull)["state"] == "cancelled"
        assert next(doors).post("getQueue")["enqueuedPullRequests"] == []


def test_a_queue_is_there_and_gone_for_all_at_the_same_time(trio: Installation):
    queue = trio.without_queue("fleeting")
    doors = cycle([trio.through(replica, queue) for replica in trio.replicas])
    for _ in range(MANY // 6):
        next(doors).post("createQueue", requiredStatuses=["unit"])
        assert next(doors).post("getQueue")["state"] == "RUNNING"
        assert queue.api.queue["repo"] in repos(next(doors))
        next(doors).post("deleteQueue")
        assert queue.api.queue["repo"] not in repos(next(doors))
    queue.create_queue()


def test_who_waits_at_one_replica_hears_what_happens_through_another(trio: Installation):
    """Also at one that works for nobody."""
    queue = trio.queue("events")
    doors = [trio.through(replica, queue) for replica in trio.replicas]
    last = doors[0].post("listEvents")["next"]
    with ThreadPoolExecutor() as others:
        waiting = [others.submit(door.post, "listEvents", after=last, waitSeconds=15) for door in doors]
        queue.update_queue(state="PAUSED")
        told = [each.result()["events"] for each in waiting]
    assert [[event["type"] for event in events] for events in told] == [["queue.state_changed"]] * len(doors)
