"""A queue on the screen: everything that is there, in the room that there is."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import convert
from rich.console import Console

from mergeyard.cli.top.drawing import shared, view
from mergeyard.cli.top.looking import Seen
from mergeyard.cli.top.scene import Scene
from mergeyard.client import Queue, Run, SubmittedPullRequest
from tests.support.answers import ENQUEUED, RUN, SHOWN_QUEUE, SUBMITTED

BEGUN = datetime.fromisoformat(RUN["createdAt"])
NOW = BEGUN + timedelta(seconds=95)


def enqueued(number: int, state: str, run: str | None = None, **members: Any) -> dict[str, Any]:
    return ENQUEUED | {"prNumber": number, "state": state, "testRunId": run, "id": str(number)} | members


def a_run(name: str, **members: Any) -> Run:
    return convert(RUN | {"id": name} | members, Run)


def a_scene(*pulls: dict[str, Any], runs: tuple[Run, ...] = (), concluded: tuple[int, ...] = ()) -> Scene:
    queue = convert(SHOWN_QUEUE | {"enqueuedPullRequests": list(pulls)}, Queue)
    over = SUBMITTED | {"state": "merged", "isCurrentlySubmittedToQueue": False, "stateChangedAt": RUN["createdAt"]}
    ended = tuple(convert(over | {"prNumber": number}, SubmittedPullRequest) for number in concluded)
    return Scene(queue=queue, runs={run.id: run for run in runs}, concluded=ended)


def drawn(seen: Seen | Scene, *, width: int = 100, height: int = 40) -> list[str]:
    out = Console(width=width, highlight=False)
    with out.capture() as captured:
        out.print(view(seen if isinstance(seen, Seen) else Seen(seen), NOW, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_line_is_drawn_batch_behind_batch():
    runs = (a_run("x"), a_run("y", dependentPrs=[1, 2]))
    pulls = (enqueued(1, "testing", "x"), enqueued(2, "testing", "x"), enqueued(3, "tests_passed", "y"))
    lines = drawn(a_scene(*pulls, runs=runs))
    assert lines[0].startswith("main of github.com/acme/app   RUNNING   3 in the line   0 waiting   0 not ready")
    assert lines[1] == "main ← 1+2… ← 3✓"
    assert [line.split()[:2] for line in lines[4:7]] == [["←", "#1"], ["+", "#2"], ["←", "#3"]]
    assert lines[4].endswith("0/1 checks  1 min 35 s")
    assert lines[6].endswith("0/1 checks  1 min 35 s  upon #1, #2")


def test_checks_that_reported_are_counted_among_those_that_must():
    said = [{"context": name, "url": "", "state": state} for name, state in (("unit", "success"), ("else", "failure"))]
    run = a_run("x", requiredStatuses=["unit", "lint"], statusChecks=said)
    assert drawn(a_scene(enqueued(1, "testing", "x"), runs=(run,)))[4].endswith("1/2 checks  1 min 35 s")


def test_whoever_seeks_the_guilty_one_stands_beside_the_line():
    lines = drawn(a_scene(enqueued(1, "pending_failure", "x"), runs=(a_run("x", isBisection=True),)))
    assert lines[1] == "main"
    assert lines[3] == "Seeking the guilty one"
    assert lines[4].split()[:2] == ["⋔", "#1"]


def test_who_waits_and_who_is_not_ready_is_told_with_the_reason():
    why = {"code": "draft", "message": "It is a draft.", "waitingFor": [7]}
    lines = drawn(a_scene(enqueued(1, "pending", position=1), enqueued(2, "not_ready", position=None, reason=why)))
    assert [line for line in lines if line in ("Waiting", "Not ready")] == ["Waiting", "Not ready"]
    assert lines[-2].endswith("It is a draft. Waits for #7.")


def test_those_who_left_are_told_with_how_long_ago():
    assert "1 min 35 s ago" in drawn(a_scene(concluded=(9,)))[4]


def test_an_empty_queue_says_so():
    assert drawn(a_scene())[-1] == "Nobody is in the queue."


def test_trouble_is_told_and_the_last_picture_stays():
    lines = drawn(Seen(a_scene(enqueued(1, "pending")), "It does not answer."))
    assert "is asked again: It does not answer." in lines[1]
    assert any("#1" in line for line in lines)


@pytest.mark.parametrize("height", [12, 20, 60])
def test_it_fits_on_the_screen_and_says_how_many_more_there_are(height: int):
    pulls = [enqueued(number, "pending", position=number) for number in range(1, 40)]
    lines = drawn(a_scene(*pulls, concluded=tuple(range(50, 60))), height=height)
    assert len(lines) <= height
    hidden = [int(line.split()[-2]) for line in lines if line.endswith(" more")]
    assert sum(hidden) + sum("#" in line for line in lines) == 49
    assert all(len(line) <= 60 for line in drawn(a_scene(*pulls), width=60))


def test_words_of_a_newer_server_are_drawn_as_well():
    assert "teleporting" in "".join(drawn(a_scene(enqueued(1, "teleporting"))))


@pytest.mark.parametrize(
    ("needs", "room", "shares"),
    [([1, 2], 10, [1, 2]), ([5, 5], 4, [2, 2]), ([1, 9], 6, [1, 5]), ([3], 0, [0]), ([2, 2], -3, [0, 0]), ([], 3, [])],
)
def test_room_is_shared_row_by_row(needs: list[int], room: int, shares: list[int]):
    assert shared(needs, room) == shares
