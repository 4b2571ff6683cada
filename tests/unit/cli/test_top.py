"""`mergeyard top`: the view of a queue, limited to the height of the screen, and the choice of a queue."""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from msgspec import convert
from rich.console import Console

from mergeyard.cli.queue_snapshot import LoadingQueue, QueueSnapshot, SnapshotPoller, fetch_snapshot
from mergeyard.cli.top import KEY_PATTERN, distribute_rows, render_view
from mergeyard.client import Client, Queue, QueueName, Run, SubmittedPullRequest
from tests.support.api_examples import ENQUEUED, QUEUE_RESPONSE, RUN, SUBMITTED, a_problem
from tests.support.polling import eventually

STARTED_AT = datetime.fromisoformat(RUN["createdAt"])
NOW = STARTED_AT + timedelta(seconds=95)


def enqueued(number: int, state: str, run: str | None = None, **members: Any) -> dict[str, Any]:
    return ENQUEUED | {"prNumber": number, "state": state, "testRunId": run, "id": str(number)} | members


def waits_for(code: str, *numbers: int) -> dict[str, Any]:
    return {"reason": {"code": code, "message": "It waits.", "waitingFor": list(numbers)}}


def a_run(name: str, *tested: int, **members: Any) -> Run:
    tests = [{"prNumber": number, "prUrl": "", "title": ""} for number in tested or (1,)]
    return convert(RUN | {"id": name, "testedPullRequests": tests, "status": "in_progress"} | members, Run)


def a_snapshot(
    *pull_requests: dict[str, Any],
    runs: tuple[Run, ...] = (),
    finished: tuple[int, ...] = (),
    error: str | None = None,
    **queue_members: Any,
) -> QueueSnapshot:
    members = {"enqueuedPullRequests": list(pull_requests), "stateReason": None} | queue_members
    ended = SUBMITTED | {
        "state": "merged",
        "isCurrentlySubmittedToQueue": False,
        "stateChangedAt": RUN["createdAt"],
        "position": None,
    }
    return QueueSnapshot(
        queue=convert(QUEUE_RESPONSE | members, Queue),
        runs={run.id: run for run in runs},
        finished=tuple(convert(ended | {"prNumber": number}, SubmittedPullRequest) for number in finished),
        error=error,
    )


def rendered(snapshot: QueueSnapshot | LoadingQueue, *, width: int = 100, height: int = 40) -> list[str]:
    out = Console(width=width, highlight=False)
    with out.capture() as captured:
        out.print(render_view(snapshot, NOW, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_batches_of_a_single_queue_are_one_lane_in_order():
    runs = (a_run("x", 1, 2, dependentPrs=[]), a_run("y", 3, dependentPrs=[1, 2]))
    pull_requests = (
        enqueued(1, "testing", "x", position=1),
        enqueued(2, "testing", "x", position=2),
        enqueued(3, "tests_passed", "y", position=3),
    )
    lines = rendered(a_snapshot(*pull_requests, runs=runs, mode="single"))
    assert lines[0].startswith("main of github.com/acme/app   Running")
    assert lines[2] == "main ← #1 + #2 (testing) ← #3 (passed)"
    assert [line.split()[:2] for line in lines[5:8]] == [["1", "#1"], ["2", "#2"], ["3", "#3"]]
    assert lines[5].endswith("0/1 checks  1 min 35 s")
    assert lines[6].endswith("in the test run of #1")
    assert lines[7].endswith("0/1 checks  1 min 35 s  on top of #1, #2")


def test_a_parallel_queue_has_a_line_for_each_lane():
    runs = (
        a_run("a", 1, dependentPrs=[]),
        a_run("b", 2, dependentPrs=[]),
        a_run("c", 3, dependentPrs=[1]),
        a_run("d", 4, dependentPrs=[1]),
        a_run("e", 5, dependentPrs=[2]),
        a_run("f", 6, dependentPrs=[1, 2, 3, 5]),
    )
    pull_requests = [enqueued(number, "testing", run.id) for number, run in enumerate(runs, start=1)]
    lines = rendered(a_snapshot(*pull_requests, runs=runs, mode="parallel"))
    assert lines[2:5] == [
        "main ← #1 (testing) ← #3 (testing)",
        "     ← #2 (testing) ← #5 (testing) ← #6 (testing, also on top of #3)",
        "  #1 ← #4 (testing)",
    ]


def test_a_single_queue_is_one_lane_even_where_a_run_is_not_known():
    pull_requests = (enqueued(1, "testing", "x"), enqueued(2, "pending_failure", "y"))
    assert rendered(a_snapshot(*pull_requests, mode="single"))[2] == "main ← #1 (testing) ← #2 (failing)"


def test_more_lanes_than_fit_are_counted():
    runs = tuple(a_run(str(number), number, dependentPrs=[]) for number in range(1, 10))
    pull_requests = [enqueued(number, "testing", str(number)) for number in range(1, 10)]
    lines = rendered(a_snapshot(*pull_requests, runs=runs, mode="parallel"))
    assert lines[7:9] == ["     ← #6 (testing)", "and 3 more lanes"]


def test_queued_are_all_pull_requests_that_are_ready():
    """The same numbers as on the page: a failed batch that waits for others is not bisected yet, and a pull request
    that only waits for a paused queue is ready."""
    runs = (a_run("x", 1), a_run("y", 2, 3), a_run("z", 4, isBisection=True), a_run("w", 7, 8))
    searched, suspect = waits_for("bisection"), waits_for("waiting_for_prs_ahead", 2)
    pull_requests = (
        enqueued(1, "testing", "x"),
        enqueued(2, "pending_failure", "y", **searched),
        enqueued(3, "pending_failure", "y", **suspect),
        enqueued(4, "testing", "z"),
        enqueued(7, "pending_failure", "w", **waits_for("waiting_for_prs_ahead", 1)),
        enqueued(8, "pending_failure", "w", **waits_for("waiting_for_prs_ahead", 1)),
        enqueued(5, "pending"),
        enqueued(6, "not_ready", position=None),
        enqueued(9, "not_ready", position=None, **waits_for("queue_paused")),
    )
    lines = rendered(a_snapshot(*pull_requests, runs=runs))
    assert lines[1] == "8 queued (3 testing, 3 bisecting, 2 waiting)   1 not ready"


def test_the_expected_time_of_the_next_merge_is_shown():
    at = (NOW + timedelta(minutes=12, seconds=10)).isoformat()
    snapshot = a_snapshot(enqueued(1, "pending"), nextMerge={"at": at, "note": None})
    assert rendered(snapshot)[1].endswith("   next merge: ~12 min")
    late = a_snapshot(enqueued(1, "testing"), nextMerge={"at": at, "note": "running longer than usual"})
    assert rendered(late, width=120)[1].endswith("   next merge: ~12 min, running longer than usual")
    unknown = a_snapshot(enqueued(1, "testing"), nextMerge={"at": None, "note": "no run has passed yet"})
    assert rendered(unknown)[1].endswith("   next merge: no run has passed yet")


def test_problems_of_the_queue_are_shown():
    snapshot = a_snapshot(enqueued(1, "pending"), problems=["main fails its required checks"])
    assert rendered(snapshot)[1] == "main fails its required checks"


def test_the_reason_of_a_pause_is_shown():
    lines = rendered(a_snapshot(state="PAUSED", stateReason="Release freeze"))
    assert lines[0].startswith("main of github.com/acme/app   Paused: Release freeze")


def test_only_required_checks_are_counted():
    statuses = [
        {"context": name, "url": "", "state": state} for name, state in (("unit", "success"), ("other", "failure"))
    ]
    run = a_run("x", requiredStatuses=["unit", "lint"], statusChecks=statuses)
    assert rendered(a_snapshot(enqueued(1, "testing", "x"), runs=(run,)))[5].endswith("1/2 checks  1 min 35 s")


def test_bisections_are_listed_separately():
    lines = rendered(a_snapshot(enqueued(1, "testing", "x", position=1), runs=(a_run("x", isBisection=True),)))
    assert lines[3] == "Bisecting"
    assert lines[4].split()[:2] == ["1", "#1"]


def test_waiting_and_not_ready_pull_requests_are_shown_with_the_reason():
    why = {"code": "draft", "message": "It is a draft.", "waitingFor": [7]}
    lines = rendered(
        a_snapshot(enqueued(1, "pending", position=1), enqueued(2, "not_ready", position=None, reason=why))
    )
    assert [line for line in lines if line in ("Waiting", "Not ready")] == ["Waiting", "Not ready"]
    assert lines[-2].endswith("It is a draft. Waits for #7.")


def test_finished_pull_requests_are_shown_with_the_time_ago():
    assert "1 min 35 s ago" in rendered(a_snapshot(finished=(9,)))[4]


def test_an_empty_queue_says_so():
    assert rendered(a_snapshot())[-1] == "The queue is empty."


def test_an_error_is_shown_together_with_the_last_snapshot():
    lines = rendered(a_snapshot(enqueued(1, "pending"), error="It does not answer."))
    assert "Cannot refresh, retrying: It does not answer." in lines[1]
    assert any("#1" in line for line in lines)


@pytest.mark.parametrize("height", [12, 20, 60])
def test_the_view_fits_the_screen_and_counts_hidden_pull_requests(height: int):
    pull_requests = [enqueued(number, "pending", position=number) for number in range(1, 40)]
    lines = rendered(a_snapshot(*pull_requests, finished=tuple(range(50, 60))), height=height)
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


def test_keys_that_arrive_together_are_told_apart():
    assert KEY_PATTERN.findall("x\x1b[C\x1bOD\tq") == ["x", "\x1b[C", "\x1bOD", "\t", "q"]


MAIN = QueueName.of("github.com/acme/app", "main")
NEXT = QueueName.of("github.com/acme/app", "next")


def concluded_response(number: int, minute: int) -> dict[str, Any]:
    ended = {"state": "merged", "isCurrentlySubmittedToQueue": False, "stateChangedAt": f"2026-11-14T10:{minute}:00Z"}
    return SUBMITTED | {"id": str(number), "prNumber": number} | ended


class Server:
    """Returns the queue, the latest submissions, and pull requests by number."""

    def __init__(self, *enqueued_numbers: int) -> None:
        self.enqueued = enqueued_numbers
        self.deleted = set[str]()
        self.latest = [concluded_response(9, minute=15)]
        self.by_number = {
            1: SUBMITTED | {"id": "1", "prNumber": 1},
            2: SUBMITTED | {"id": "2", "prNumber": 2, "estimatedMergeAt": "2026-11-14T11:00:00Z"},
        }

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        match request.url.path.rpartition("/")[2]:
            case "getQueue" if body["targetBranch"] in self.deleted:
                problem = a_problem("queue_not_found", retryable=False)
                return httpx2.Response(404, json=problem | {"detail": "There is no queue."})
            case "getQueue":
                pull_requests = [enqueued(number, "pending", position=number) for number in self.enqueued]
                members = {"enqueuedPullRequests": pull_requests, "stateReason": None, "branch": body["targetBranch"]}
                return httpx2.Response(200, json=QUEUE_RESPONSE | members)
            case "listPullRequests":
                return httpx2.Response(200, json={"pullRequests": self.latest})
            case _:
                found = [self.by_number[pr["number"]] for pr in body["prs"]]
                return httpx2.Response(200, json={"pullRequests": found, "notFound": []})


def a_client(server: Server) -> Client:
    return Client("http://mergeyard.example", "my_token", transport=httpx2.MockTransport(server))


def test_a_pull_request_that_left_the_queue_stays_among_the_finished():
    server = Server(1, 2)
    with a_client(server) as client:
        first = fetch_snapshot(client, MAIN)
        assert [pull_request.pr_number for pull_request in first.finished] == [9]
        server.enqueued = (2,)
        server.by_number[1] = concluded_response(1, minute=20)
        second = fetch_snapshot(client, MAIN, first)
        assert [pull_request.pr_number for pull_request in second.finished] == [1, 9]
        assert fetch_snapshot(client, MAIN, second).finished == second.finished


def test_another_queue_is_read_when_it_is_chosen():
    with a_client(Server(2)) as client, SnapshotPoller(client, (MAIN, NEXT)) as poller:
        assert poller.latest.name == MAIN
        poller.choose(+1)
        assert poller.latest.name == NEXT
        assert "Reading the queue…" in rendered(LoadingQueue(name=NEXT))
        eventually(lambda: isinstance(poller.latest, QueueSnapshot))
        assert (poller.latest.name, poller.chosen) == (NEXT, 1)
        poller.choose(+1)
        assert poller.chosen == 0


def test_a_queue_that_cannot_be_read_says_why():
    server = Server(2)
    server.deleted.add("next")
    with a_client(server) as client, SnapshotPoller(client, (MAIN, NEXT)) as poller:
        poller.choose(-1)
        eventually(lambda: poller.latest.error)
        assert poller.latest.error == "There is no queue."
        assert rendered(poller.latest)[1] == f"Cannot refresh, retrying: {poller.latest.error}"
