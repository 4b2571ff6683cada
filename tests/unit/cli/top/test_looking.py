"""A look at a queue knows who left it since the look before, however long they had stayed."""

import json
from typing import Any

import httpx

from mergeyard.cli.top.looking import look
from mergeyard.client import Client, QueueName
from tests.support.answers import ENQUEUED, SHOWN_QUEUE, SUBMITTED

MAIN = QueueName.of("github.com/acme/app", "main")


def over(number: int, minute: int) -> dict[str, Any]:
    ended = {"state": "merged", "isCurrentlySubmittedToQueue": False, "stateChangedAt": f"2026-11-14T10:{minute}:00Z"}
    return SUBMITTED | {"id": str(number), "prNumber": number} | ended


class Server:
    """What it answers: who is in the queue, who was submitted last, and who is over, if one asks for them."""

    def __init__(self, *here: int) -> None:
        self.here = here
        self.latest = [over(9, minute=15)]
        self.over = {1: over(1, minute=20)}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        match request.url.path.rpartition("/")[2]:
            case "getQueue":
                pulls = [ENQUEUED | {"prNumber": number, "state": "pending"} for number in self.here]
                return httpx.Response(200, json=SHOWN_QUEUE | {"enqueuedPullRequests": pulls})
            case "listPullRequests":
                return httpx.Response(200, json={"pullRequests": self.latest})
            case _:
                found = [self.over[pr["number"]] for pr in asked["prs"]]
                return httpx.Response(200, json={"pullRequests": found, "notFound": []})


def test_who_left_after_a_long_stay_is_seen_among_the_concluded_and_stays_there():
    server = Server(1, 2)
    with Client("http://yard", "my_token", transport=httpx.MockTransport(server)) as client:
        first = look(client, MAIN)
        assert [pull.pr_number for pull in first.concluded] == [9]
        server.here = (2,)
        second = look(client, MAIN, first)
        assert [pull.pr_number for pull in second.concluded] == [1, 9]
        assert look(client, MAIN, second).concluded == second.concluded
