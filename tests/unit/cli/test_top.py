"""`mergeyard top`: the view of a queue, limited to the height of the screen."""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from msgspec import convert
from rich.console import Console

from mergeyard.cli.top import QueueSnapshot, distribute_rows, fetch_snapshot, render_view
from mergeyard.client import Client, Queue, QueueName, Run, SubmittedPullRequest
from tests.support.api_examples import ENQUEUED, QUEUE_RESPONSE, RUN, SUBMITTED

STARTED_AT = datetime.fromisoformat(RUN["createdAt"])
NOW = STARTED_AT + timedelta(seconds=95)


def enqueued(number: int, state: str, run: str | None = None, **members: Any) -> dict[str, Any]:
    return ENQUEUED | {"prNumber": number, "state": state, "testRunId": run, "id": str(number)} | members


def a_run(name: str, **members: Any) -> Run:
    return convert(RUN | {"id": name} | members, Run)


def a_snapshot(
    *pull_requests: dict[str, Any],
    runs: tuple[Run, ...] = (),
    concluded: tuple[int, ...] = (),
    error: str | None = None,
) -> QueueSnapshot:
    queue = convert(QUEUE_RESPONSE | {"enqueuedPullRequests": list(pull_requests)}, Queue)
    members = SUBMITTED | {
        "state": "merged",
        "isCurrentlySubmittedToQueue": False,
        "stateChangedAt": RUN["createdAt"],
    }
    ended = tuple(convert(members | {"prNumber": number}, SubmittedPullRequest) for number in concluded)
    return QueueSnapshot(queue=queue, runs={run.id: run for run in runs}, concluded=ended, error=error)


def rendered(snapshot: QueueSnapshot, *, width: int = 100, height: int = 40) -> list[str]:
    out = Console(width=width, highlight=False)
    with out.capture() as captured:
        out.print(render_view(snapshot, NOW, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_batches_are_shown_in_order():
    runs = (a_run("x"), a_run("y", dependentPrs=[1, 2]))
    pull_requests = (enqueued(1, "testing", "x"), enqueued(2, "testing", "x"), enqueued(3, "tests_passed", "y"))
    lines = rendered(a_snapshot(*pull_requests, runs=runs))
    assert lines[0].startswith("main of github.com/acme/app   RUNNING   3 under test   0 waiting   0 not ready")
    assert lines[1] == "main ← 1+2… ← 3✓"
    assert [line.split()[:2] for line in lines[4:7]] == [["←", "#1"], ["+", "#2"], ["←", "#3"]]
    assert lines[4].endswith("0/1 checks  1 min 35 s")
    assert lines[6].endswith("0/1 checks  1 min 35 s  on top of #1, #2")


def test_only_required_checks_are_counted():
    statuses = [
        {"context": name, "url": "", "state": state} for name, state in (("unit", "success"), ("other", "failure"))
    ]
    run = a_run("x", requiredStatuses=["unit", "lint"], statusChecks=statuses)
    assert rendered(a_snapshot(enqueued(1, "testing", "x"), runs=(run,)))[4].endswith("1/2 checks  1 min 35 s")


def test_bisections_are_listed_separately():
    lines = rendered(a_snapshot(enqueued(1, "pending_failure", "x"), runs=(a_run("x", isBisection=True),)))
    assert lines[1] == "main"
    assert lines[3] == "Bisecting failed batches"
    assert lines[4].split()[:2] == ["⋔", "#1"]


def test_waiting_and_not_ready_pull_requests_are_shown_with_the_reason():
    why = {"code": "draft", "message": "It is a draft.", "waitingFor": [7]}
    lines = rendered(
        a_snapshot(enqueued(1, "pending", position=1), enqueued(2, "not_ready", position=None, reason=why))
    )
    assert [line for line in lines if line in ("Waiting", "Not ready")] == ["Waiting", "Not ready"]
    assert lines[-2].endswith("It is a draft. Waits for #7.")


def test_concluded_pull_requests_are_shown_with_the_time_ago():
    assert "1 min 35 s ago" in rendered(a_snapshot(concluded=(9,)))[4]


def test_an_empty_queue_says_so():
    assert rendered(a_snapshot())[-1] == "The queue is empty."


def test_an_error_is_shown_together_with_the_last_snapshot():
    lines = rendered(a_snapshot(enqueued(1, "pending"), error="It does not answer."))
    assert "Cannot refresh, retrying: It does not answer." in lines[1]
    assert any("#1" in line for line in lines)


@pytest.mark.parametrize("height", [12, 20, 60])
def test_the_view_fits_the_screen_and_counts_hidden_pull_requests(height: int):
    pull_requests = [enqueued(number, "pending", position=number) for number in range(1, 40)]
    lines = rendered(a_snapshot(*pull_requests, concluded=tuple(range(50, 60))), height=height)
    assert len(lines) <= height
    hidden = [int(line.split()[-2]) for line in lines if line.endswith(" more")]
    assert sum(hidden) + sum("#" in line for line in lines) == 49
    assert all(len(line) <= 60 for line in rendered(a_snapshot(*pull_requests), width=60))


def test_unknown_states_of_a_newer_server_are_shown():
    assert "teleporting" in "".join(rendered(a_snapshot(enqueued(1, "teleporting"))))


@pytest.mark.parametrize(
    ("needs", "rows", "shares"),
    [([1, 2], 10, [1, 2]), ([5, 5], 4, [2, 2]), ([1, 9], 6, [1, 5]), ([3], 0, [0]), ([2, 2], -3, [0, 0]), ([], 3, [])],
)
def test_rows_are_distributed_evenly(needs: list[int], rows: int, shares: list[int]):
    assert distribute_rows(needs, rows) == shares


MAIN = QueueName.of("github.com/acme/app", "main")


def concluded_response(number: int, minute: int) -> dict[str, Any]:
    ended = {"state": "merged", "isCurrentlySubmittedToQueue": False, "stateChangedAt": f"2026-11-14T10:{minute}:00Z"}
    return SUBMITTED | {"id": str(number), "prNumber": number} | ended


class Server:
    """Returns the queue, the latest submissions, and concluded pull requests by number."""

    def __init__(self, *enqueued_numbers: int) -> None:
        self.enqueued = enqueued_numbers
        self.latest = [concluded_response(9, minute=15)]
        self.concluded = {1: concluded_response(1, minute=20)}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        match request.url.path.rpartition("/")[2]:
            case "getQueue":
                pull_requests = [ENQUEUED | {"prNumber": number, "state": "pending"} for number in self.enqueued]
                return httpx.Response(200, json=QUEUE_RESPONSE | {"enqueuedPullRequests": pull_requests})
            case "listPullRequests":
                return httpx.Response(200, json={"pullRequests": self.latest})
            case _:
                found = [self.concluded[pr["number"]] for pr in body["prs"]]
                return httpx.Response(200, json={"pullRequests": found, "notFound": []})


def test_a_pull_request_that_left_the_queue_stays_among_the_concluded():
    server = Server(1, 2)
    with Client("http://mergeyard.example", "my_token", transport=httpx.MockTransport(server)) as client:
        first = fetch_snapshot(client, MAIN)
        assert [pull_request.pr_number for pull_request in first.concluded] == [9]
        server.enqueued = (2,)
        second = fetch_snapshot(client, MAIN, first)
        assert [pull_request.pr_number for pull_request in second.concluded] == [1, 9]
        assert fetch_snapshot(client, MAIN, second).concluded == second.concluded
