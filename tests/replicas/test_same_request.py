"""The same request, or two that contradict each other, reach two replicas at the same time: one effect, one answer."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.replicas.installation import Installation
from tests.support.api import Api, Refused
from tests.support.surroundings import Surroundings

OFTEN = 15

Asking = Callable[[Api], dict[str, Any]]


def at_once(installation: Installation, queue: Surroundings, *askings: Asking) -> list[dict[str, Any] | str]:
    """Each through another replica: answers, or the codes of refusals."""
    doors = [installation.through(replica, queue) for replica in installation.replicas]

    def ask(asking: Asking, door: Api) -> dict[str, Any] | str:
        try:
            return asking(door)
        except Refused as refused:
            return refused.code

    with ThreadPoolExecutor() as threads:
        return list(threads.map(ask, askings, doors))


def test_the_same_key_at_the_same_time_has_one_effect_and_one_answer(trio: Installation):
    queue = trio.queue("twins")
    queue.update_queue(state="PAUSED")
    for at in range(OFTEN):
        pull = {"number": queue.open_pr({f"{at}.txt": "1"})}
        for path in ("submitPullRequest", "cancelPullRequest", "submitPullRequest"):
            key = f"{path} {pull} {len(queue.api.asked)}"

            def ask(door: Api, path: str = path, key: str = key, pull: dict[str, int] = pull) -> dict[str, Any]:
                return door.post(path, key=key, pr=pull)

            first, *others = at_once(trio, queue, ask, ask, ask)
            assert isinstance(first, dict)
            assert others == [first, first]
        queue.cancel(pull["number"])
    stays = queue.api.post("listPullRequests", take=100)["pullRequests"]
    assert len(stays) == 2 * OFTEN


def test_of_those_who_create_the_same_queue_one_succeeds(trio: Installation):
    queue = trio.without_queue("contested")

    def create(door: Api) -> dict[str, Any]:
        return door.post("createQueue", requiredStatuses=["unit"])

    for _ in range(OFTEN):
        answers = at_once(trio, queue, create, create, create)
        assert sorted(str(answer) for answer in answers if isinstance(answer, str)) == ["queue_already_exists"] * 2
        queue.api.post("deleteQueue")
    queue.create_queue()


def test_the_same_creation_or_deletion_at_the_same_time_happens_once_and_is_answered_alike(trio: Installation):
    queue = trio.without_queue("created")
    for at in range(OFTEN):

        def create(door: Api, key: str = f"create {at}") -> dict[str, Any]:
            return door.post("createQueue", key=key, requiredStatuses=["unit"])

        def delete(door: Api, key: str = f"delete {at}") -> dict[str, Any]:
            return door.post("deleteQueue", key=key)

        for ask in (create, delete):
            first, *others = at_once(trio, queue, ask, ask, ask)
            assert isinstance(first, dict)
            assert others == [first, first]
    queue.create_queue()


def test_a_queue_that_is_deleted_here_and_submitted_to_there_does_one_of_the_two(trio: Installation):
    queue = trio.without_queue("leaving")
    number = queue.open_pr({"a.txt": "1"})
    outcomes = set[bool]()
    for _ in range(OFTEN):
        queue.create_queue()
        queue.update_queue(state="PAUSED")

        def delete(door: Api) -> dict[str, Any]:
            return door.post("deleteQueue")

        def submit(door: Api) -> dict[str, Any]:
            return door.post("submitPullRequest", pr={"number": number})

        deleted, submitted = at_once(trio, queue, delete, submit)
        outcomes.add(isinstance(submitted, dict))
        if isinstance(submitted, dict):
            assert deleted == "queue_not_empty"
            assert queue.cancel(number)["id"] == submitted["id"]
            queue.evidence.collect()
            queue.api.post("deleteQueue")
        else:
            assert submitted == "queue_not_found"
            assert isinstance(deleted, dict)
    queue.create_queue()
    assert outcomes
