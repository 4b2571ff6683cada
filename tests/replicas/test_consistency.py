"""A write through one replica is visible at once through every other replica."""

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from tests.replicas.installation import Installation
from tests.support.api_client import ApiClient

MANY = 60


def repos(api: ApiClient) -> list[dict[str, str]]:
    return [queue["repo"] for queue in api.post("listQueues")["queues"]]


@pytest.mark.long
def test_write_to_one_replica_is_read_from_the_next(trio: Installation):
    queue = trio.queue("settings")
    apis = cycle([trio.api_of(replica, queue) for replica in trio.replicas])
    for concurrency in range(1, MANY):
        assert next(apis).post("updateQueue", concurrency=concurrency)["concurrency"] == concurrency
        assert next(apis).post("getQueue")["concurrency"] == concurrency


def test_submission_and_its_end_are_visible_at_once_everywhere(trio: Installation):
    queue = trio.queue("submissions")
    queue.update_queue(state="PAUSED")
    apis = cycle([trio.api_of(replica, queue) for replica in trio.replicas])
    for number in [queue.open_pr({f"{name}.txt": "1"}) for name in range(MANY // 4)]:
        pull_request = {"number": number}
        submitted = next(apis).post("submitPullRequest", pr=pull_request)
        assert next(apis).post("getSubmittedPullRequest", pr=pull_request)["id"] == submitted["id"]
        assert number in {one["prNumber"] for one in next(apis).post("getQueue")["enqueuedPullRequests"]}
        next(apis).post("cancelPullRequest", pr=pull_request)
        assert next(apis).post("getSubmittedPullRequest", pr=pull_request)["state"] == "cancelled"
        assert next(apis).post("getQueue")["enqueuedPullRequests"] == []


def test_queue_is_created_and_deleted_for_all_replicas_at_the_same_time(trio: Installation):
    queue = trio.without_queue("fleeting")
    apis = cycle([trio.api_of(replica, queue) for replica in trio.replicas])
    for _ in range(MANY // 6):
        next(apis).post("createQueue", requiredStatuses=["unit"])
        assert next(apis).post("getQueue")["state"] == "RUNNING"
        assert queue.api.queue["repo"] in repos(next(apis))
        next(apis).post("deleteQueue")
        assert queue.api.queue["repo"] not in repos(next(apis))
    queue.create_queue()


def test_long_poll_at_one_replica_receives_events_of_another(trio: Installation):
    """Also at a replica that holds no lease."""
    queue = trio.queue("events")
    apis = [trio.api_of(replica, queue) for replica in trio.replicas]
    last = apis[0].post("listEvents")["next"]
    with ThreadPoolExecutor() as others:
        waiting = [others.submit(api.post, "listEvents", after=last, waitSeconds=15) for api in apis]
        queue.update_queue(state="PAUSED")
        received = [each.result()["events"] for each in waiting]
    assert [[event["type"] for event in events] for events in received] == [["queue.state_changed"]] * len(apis)
