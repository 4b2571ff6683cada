"""The commands that ask a server, against a real one: what they do, what they print, and how they end."""

import json
import os
import pty
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeyard.cli import token
from mergeyard.cli.server import SECONDS_TO_FINISH
from tests.support.premises import Premises, new_token
from tests.support.surroundings import command
from tests.support.terminal import Terminal, a_queue_at_work

HOSTILE = "Paint \x1b[31mred [bold]bold[/] \u202eturned"
SHOWN = "Paint �[31mred [bold]bold[/] �turned"


@pytest.fixture(scope="module")
def premises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Premises]:
    with a_queue_at_work(tmp_path_factory.mktemp("cli")) as premises:
        yield premises


@pytest.fixture(scope="module")
def ended(premises: Premises) -> dict[str, int]:
    """One pull request of every end."""
    numbers = {
        "merged": premises.open_pr({"a.txt": "1"}, title=HOSTILE),
        "failed": premises.open_pr({"bad": "1"}),
        "cancelled": premises.open_pr({"c.txt": "1"}),
    }
    premises.submit(numbers["cancelled"])
    premises.cancel(numbers["cancelled"])
    premises.submit(numbers["merged"], numbers["failed"])
    premises.wait_for_end(numbers["merged"], numbers["failed"])
    return numbers


@pytest.fixture
def terminal(premises: Premises) -> Terminal:
    return Terminal(premises.server.url, new_token(premises.server.config))


def without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


# Pull requests


def test_a_pull_request_is_submitted_shown_restarted_and_cancelled(premises: Premises, terminal: Terminal):
    premises.ci.working = False
    number = premises.open_pr({"d.txt": "1"}, title="Count the sheep")
    submitted = terminal.done("submit", str(number), "--priority", "HIGH", "--no-batch")
    assert submitted.startswith(f"#{number} Count the sheep  not_ready\n")
    assert "priority   high\n" in submitted
    premises.wait_for("testing", number)
    assert terminal.answered("restart", str(number))["prNumber"] == number
    shown = terminal.done("status", "--head", f"topic-{number}", "--timeline")
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  not_ready        It was submitted", shown, re.MULTILINE)
    assert terminal.answered("cancel", str(number))["state"] == "cancelled"
    premises.ci.working = True


def test_what_is_printed_for_programs_is_what_the_api_answers(
    premises: Premises, terminal: Terminal, ended: dict[str, int]
):
    number = ended["merged"]
    assert terminal.answered("status", str(number)) == without(premises.pull(number), "timeline")
    assert terminal.answered("status", str(number), "--timeline") == premises.pull(number)
    assert terminal.answered("queue", "show") == premises.api.post("getQueue")
    assert terminal.answered("queue", "list") == premises.api.post("listQueues")
    assert terminal.answered("top") == premises.api.post("getQueue")
    run = premises.run_of(number)
    assert terminal.answered("runs", "show", run["id"]) == run
    results = terminal.answered("runs", "list", "--since", "1h")
    assert {result["prNumber"] for result in results["testingResults"]} >= {number}


@pytest.mark.parametrize(("end", "code"), [("merged", 0), ("failed", 1), ("cancelled", 2)])
def test_whoever_waits_learns_the_end_by_the_code(terminal: Terminal, ended: dict[str, int], end: str, code: int):
    number = str(ended[end])
    for asked in (("status", number, "--wait"), ("watch", number)):
        answer = terminal.run(*asked)
        assert answer.exit_code == code
        assert end in answer.stdout


def test_waiting_for_the_end_tells_no_timeline_that_was_not_asked_for(terminal: Terminal, ended: dict[str, int]):
    number = str(ended["merged"])
    assert "timeline" not in terminal.answered("status", number, "--wait")
    assert "timeline" in terminal.answered("status", number, "--wait", "--timeline")


def test_a_pull_request_is_followed_while_it_moves(premises: Premises, terminal: Terminal):
    premises.ci.working = False
    number = premises.open_pr({"e.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    with terminal.begin("watch", str(number), "--json") as watching:
        assert watching.stdout is not None
        first = [json.loads(watching.stdout.readline())["to"] for _ in range(3)]
        assert first == ["not_ready", "pending", "testing"]
        premises.ci.working = True
        premises.wait_for("merged", number)
        rest = [json.loads(line)["to"] for line in watching.stdout]
        assert (rest, watching.wait()) == (["tests_passed", "merged"], 0)


def test_hostile_words_neither_paint_nor_steer(terminal: Terminal, ended: dict[str, int]):
    number = str(ended["merged"])
    for asked in (("status", number), ("top",), ("runs", "show", terminal.answered("status", number)["testRunId"])):
        printed = terminal.done(*asked)
        assert SHOWN in printed
        assert "\x1b" not in printed
        assert "\u202e" not in printed


def test_what_moves_on_the_terminal_stays_out_of_the_pipe(terminal: Terminal, ended: dict[str, int]):
    ours, theirs = pty.openpty()
    with terminal.begin("watch", str(ended["merged"]), "--json", stderr=theirs) as watching:
        assert watching.stdout is not None
        printed = watching.stdout.read()
    os.close(theirs)
    os.close(ours)
    assert [json.loads(line)["to"] for line in printed.splitlines()][-1] == "merged"


# Queues


def test_a_queue_is_made_steered_changed_and_deleted(premises: Premises, terminal: Terminal):
    premises.origin.branch("stable", upon="main")
    there = ("--repo", "git.local/acme/app", "--branch", "stable")
    made = terminal.answered(
        "queue", "create", *there, "--batch", "on", "--mode", "PARALLEL", "--required-statuses", "a"
    )
    assert (made["batch"], made["mode"], made["requiredStatuses"]) == (True, "parallel", ["a"])
    for word, state in (("pause", "PAUSED"), ("drain", "DRAINING"), ("resume", "RUNNING")):
        assert terminal.answered("queue", word, *there)["state"] == state
    dropped = terminal.answered("queue", "update", *there, "--delete-required-statuses", "--concurrency", "7")
    assert (dropped["requiredStatuses"], dropped["concurrency"], dropped["batch"]) == (None, 7, True)
    assert "stable of git.local/acme/app  RUNNING\n" in terminal.done("queue", "show", *there)
    terminal.environment |= {"MERGEYARD_REPO": "git.local/acme/app", "MERGEYARD_BRANCH": "stable"}
    assert terminal.answered("queue", "delete")["deleted"] is True
    assert "(queue_not_found, request " in terminal.refused(3, "queue", "show")


def test_the_only_queue_need_not_be_named_and_of_several_one_must_be(premises: Premises, terminal: Terminal):
    assert terminal.answered("queue", "show")["branch"] == "main"
    turned = "next\u202e"
    premises.origin.branch(turned, upon="main")
    terminal.done("queue", "create", "--repo", "git.local/acme/app", "--branch", turned)
    refusal = terminal.refused(64, "queue", "show")
    assert "--repo git.local/acme/app --branch main\n" in refusal
    assert "--repo git.local/acme/app --branch next�\n" in refusal
    assert terminal.answered("queue", "show", "--branch", turned)["branch"] == turned
    assert [queue["branch"] for queue in terminal.answered("queue", "list", "--branch", turned)["queues"]] == [turned]
    deleted = terminal.run("queue", "delete", "--branch", turned).stderr
    assert deleted == "Deleted the queue for next� of git.local/acme/app.\n"
    assert "sees no queue for git.local/acme/other" in terminal.refused(
        64, "queue", "show", "--repo", "git.local/acme/other"
    )


# What happened


def test_events_are_told_from_a_cursor_on_and_followed_while_somebody_else_waits(
    premises: Premises, terminal: Terminal, ended: dict[str, int]
):
    told = [json.loads(line) for line in terminal.done("events", "--json").splitlines()]
    assert told[0]["type"] == "queue.created"
    assert len(told) > 5
    last = told[-1]["cursor"]
    assert terminal.done("events", "--after", last) == ""
    assert f"#{ended['cancelled']} " in terminal.done("events", "--after", "0")
    number = premises.open_pr({"f.txt": "1"})
    with (
        terminal.begin("events", "--follow", "--after", last, "--json") as following,
        terminal.begin("submit", str(number), "--wait", "--json") as submitting,
    ):
        assert following.stdout is not None
        assert submitting.stdout is not None
        assert json.loads(following.stdout.readline())["pr_number"] == number
        following.terminate()
        premises.wait_for("merged", number)
        assert json.loads(submitting.stdout.read())["state"] == "merged"
        assert submitting.wait() == 0


def test_a_queue_is_drawn_once_in_a_pipe(terminal: Terminal, ended: dict[str, int]):
    drawn = terminal.done("top")
    assert drawn.startswith("main of git.local/acme/app   RUNNING   0 in the line   0 waiting   0 not ready")
    assert re.search(rf"^Concluded\n( .*\n)* +#{ended['failed']} .* failed ", drawn, re.MULTILINE)


# Refusals


def test_another_head_is_refused_with_the_option_that_names_one(terminal: Terminal, ended: dict[str, int]):
    refusal = terminal.refused(3, "submit", str(ended["failed"]), "--sha", "1" * 40)
    assert "submit it with --sha HEAD" in refusal


def test_a_refusal_is_told_with_its_code_and_the_request(terminal: Terminal):
    refusal = terminal.refused(3, "status", "999")
    assert refusal.startswith("Pull request 999 was never submitted")
    assert re.search(r"\(pr_not_submitted, request \w+\)\n$", refusal)


def test_a_token_is_never_told_and_may_stand_in_a_file(terminal: Terminal, tmp_path: Path):
    good, file = terminal.environment["MERGEYARD_TOKEN"] or "", tmp_path / "token"
    terminal.environment["MERGEYARD_TOKEN"] = "my_wrong"
    refusal = terminal.refused(3, "queue", "list")
    assert "(invalid_token, " in refusal
    assert "my_wrong" not in refusal
    file.write_text(f"{good}\n")
    terminal.done("queue", "list", "--token-file", str(file))
    assert "name another with --token-file" in terminal.refused(64, "queue", "list", "--token-file", "/gone")


def test_who_may_not_look_around_must_name_the_queue(premises: Premises, terminal: Terminal):
    scope = ("--scope", "targets", "--repo", "git.local/acme/app")
    made = command(token.app, "create", "--name", "ci", *scope, "--config", str(premises.server.config))
    terminal.environment["MERGEYARD_TOKEN"] = made.strip()
    assert "(insufficient_scope, " in terminal.refused(3, "targets", "set", "--pr", "1", "a")


# A server that ends


def test_a_server_that_ends_lets_those_go_who_wait_for_events(premises: Premises, terminal: Terminal):
    """They would otherwise hold it up until it breaks off."""
    number = premises.open_pr({"g.txt": "1"})
    last = terminal.done("events", "--json").splitlines()[-1]
    with terminal.begin("events", "--follow", "--after", json.loads(last)["cursor"], "--json") as following:
        premises.submit(number)
        assert following.stdout is not None
        assert following.stdout.readline()
        premises.wait_for("merged", number)
        begun = time.monotonic()
        premises.server.stop()
        assert time.monotonic() - begun < SECONDS_TO_FINISH
        following.terminate()
    premises.server.start()
