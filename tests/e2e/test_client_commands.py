"""Client commands against a real server: effects, output and exit codes."""

import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from mergeyard import __version__
from mergeyard.cli import token
from mergeyard.cli.server import SHUTDOWN_TIMEOUT_S
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId
from mergeyard.web import formats, pull_request_list
from tests.support.environment import ServerEnvironment, new_token, run_command
from tests.support.terminal import COMMAND, CommandLine, a_running_environment, a_screen

HOSTILE = "Paint \x1b[31mred [bold]bold[/] \u202eturned"
SHOWN = "Paint �[31mred [bold]bold[/] �turned"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEnvironment]:
    with a_running_environment(tmp_path_factory.mktemp("cli")) as env:
        yield env


@pytest.fixture(scope="module")
def concluded(env: ServerEnvironment) -> dict[str, int]:
    """One pull request for every outcome."""
    numbers = {
        "merged": env.open_pr({"a.txt": "1"}, title=HOSTILE),
        "failed": env.open_pr({"bad": "1"}),
        "cancelled": env.open_pr({"c.txt": "1"}),
    }
    env.submit(numbers["cancelled"])
    env.cancel(numbers["cancelled"])
    env.submit(numbers["merged"], numbers["failed"])
    env.wait_for_end(numbers["merged"], numbers["failed"])
    return numbers


@pytest.fixture
def terminal(env: ServerEnvironment) -> CommandLine:
    return CommandLine(env.server.url, new_token(env.server.config))


def without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


# Pull requests


def test_a_pull_request_is_submitted_shown_restarted_and_cancelled(env: ServerEnvironment, terminal: CommandLine):
    env.ci.enabled = False
    number = env.open_pr({"d.txt": "1"}, title="Count the sheep")
    submitted = terminal.run_ok("submit", str(number), "--priority", "HIGH", "--no-batch")
    assert submitted.startswith(f"#{number} Count the sheep  Not ready\n")
    assert re.search(r"^  priority   high, set by \w+$", submitted, re.MULTILINE)
    assert "batching   off: tested alone\n" in submitted
    assert f"page       {env.server.url}/pulls/git.local/acme/app/{number}?branch=main\n" in submitted
    env.wait_for("testing", number)
    assert terminal.run_json("restart", str(number))["prNumber"] == number
    shown = terminal.run_ok("status", "--head", f"topic-{number}", "--timeline")
    time = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+"
    assert re.search(rf"{time}  Not ready        The pull request was submitted to the queue", shown, re.MULTILINE)
    assert terminal.run_json("cancel", f"#{number}")["state"] == "cancelled"
    env.ci.enabled = True


def test_force_names_the_head_that_the_user_sees(env: ServerEnvironment, terminal: CommandLine):
    env.ci.enabled = False
    number = env.open_pr({"forced.txt": "1"}, title="Stop the fire")
    head = env.origin.tip(f"topic-{number}")
    refused = " ".join(terminal.run_failing(64, "submit", str(number), "--force").split())
    assert "must name the head that was reviewed" in refused
    assert "pass its head with --sha HEAD" in refused
    environment = {name: value for name, value in (os.environ | terminal.environment).items() if value is not None}
    for answer, code in (("n", 130), ("y", 0)):
        with a_screen((*COMMAND, "submit", str(number), "--force"), environment) as screen:
            screen.wait_for_text("Stop the fire. Its head is")
            assert head in screen.output.replace("\r\n", "")
            screen.press(f"{answer}\r")
            assert screen.wait_for_exit() == code
    assert terminal.run_json("status", str(number))["forceEnqueued"]
    terminal.run_ok("cancel", str(number), "--yes")
    assert terminal.run_json("submit", str(number), "--force", "--sha", head)["forceEnqueued"]
    terminal.run_ok("cancel", str(number), "--yes")
    env.ci.enabled = True


def test_the_commit_message_is_shown_before_a_pull_request_is_submitted(env: ServerEnvironment, terminal: CommandLine):
    number = env.open_pr({"m.txt": "1"}, title=HOSTILE)
    shown = terminal.run("message", str(number))
    assert shown.stdout.startswith(f"Merge pull request #{number}: Paint [31mred [bold]bold[/] turned\n\nMergeyard-")
    assert f"#{number}: The queue pushes the tested commit, which contains" in shown.stderr
    preview = terminal.run_json("message", str(number))
    assert preview == env.api.post("previewCommitMessage", pr={"number": number})
    assert shown.stdout.rstrip() == preview["commitMessages"][0].rstrip()


def test_json_output_is_the_api_response(env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]):
    number = concluded["merged"]
    assert terminal.run_json("status", str(number)) == without(env.submission(number), "timeline")
    assert terminal.run_json("status", str(number), "--timeline") == env.submission(number)
    assert terminal.run_json("queue", "show") == env.api.post("getQueue")
    assert terminal.run_json("queue", "list") == env.api.post("listQueues")
    assert terminal.run_json("top") == env.api.post("getQueue")
    run = env.run_of(number)
    assert terminal.run_json("runs", "show", run["id"]) == run
    results = terminal.run_json("runs", "list", "--since", "1h")
    assert {result["prNumber"] for result in results["testingResults"]} >= {number}


@pytest.mark.parametrize(("outcome", "code"), [("merged", 0), ("failed", 1), ("cancelled", 2)])
def test_exit_code_of_a_wait_is_the_outcome(terminal: CommandLine, concluded: dict[str, int], outcome: str, code: int):
    number = str(concluded[outcome])
    for asked in (("status", number, "--wait"), ("watch", number)):
        answer = terminal.run(*asked)
        assert answer.exit_code == code
        assert {"merged": "Merged", "failed": "Failed", "cancelled": "Removed"}[outcome] in answer.stdout


def test_status_of_a_failed_pull_request_names_the_failed_checks(
    env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]
):
    run = env.run_of(concluded["failed"])
    (url,) = {check["url"] for check in run["statusChecks"]}
    shown = terminal.run_ok("status", str(concluded["failed"]))
    assert re.search(rf"^  reason .*\n  ✗ unit  failed  {re.escape(url)}", shown, re.MULTILINE)


def test_a_run_is_found_by_the_beginning_of_its_id(
    env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]
):
    run = env.run_of(concluded["failed"])
    assert f"\n{run['id'][:8]}  #{concluded['failed']} " in terminal.run_ok("runs")
    shown = terminal.run_ok("runs", "show", run["id"][:8])
    assert shown.startswith(f"{run['id']}  Failed\n")
    assert f"  ✗ unit  failed  {run['statusChecks'][0]['url']}" in shown
    ambiguous = terminal.run_failing(64, "runs", "show", "")
    assert {run["id"], env.run_of(concluded["merged"])["id"]} <= set(ambiguous.split())
    unknown = terminal.run_failing(3, "runs", "show", "g7")
    assert "has no test run g7: " in unknown
    assert "(test_run_not_found, " in unknown
    assert unknown.endswith("\nhint: `mergeyard runs` lists the latest ones.\n")


@pytest.mark.long
@pytest.mark.parametrize("command", [("submit", "--wait"), ("watch",)], ids=" ".join)
def test_an_interrupted_wait_leaves_the_pull_request_in_the_queue(
    env: ServerEnvironment, terminal: CommandLine, command: tuple[str, ...]
):
    env.ci.enabled = False
    number = env.open_pr({"i.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    assert f"{env.run_of(number)['id'][:8]}  #{number}  Testing" in terminal.run_ok("runs", "list")
    given = {name: value for name, value in (os.environ | terminal.environment).items() if value is not None}
    with a_screen([*COMMAND, *command, str(number)], given | {"TERM": "xterm-256color"}) as screen:
        screen.wait_for_text("Testing (position 1)")
        screen.interrupt()
        assert screen.wait_for_exit() == 130
    assert f"Stopped waiting; #{number} stays queued (position 1)." in screen.output
    assert env.cancel(number)["state"] == "cancelled"
    env.ci.enabled = True


def test_status_wait_shows_the_timeline_only_on_request(terminal: CommandLine, concluded: dict[str, int]):
    number = str(concluded["merged"])
    assert "timeline" not in terminal.run_json("status", number, "--wait")
    assert "timeline" in terminal.run_json("status", number, "--wait", "--timeline")


@pytest.mark.long
def test_watch_shows_state_changes_as_they_happen(env: ServerEnvironment, terminal: CommandLine):
    env.ci.enabled = False
    number = env.open_pr({"e.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    with terminal.start("watch", str(number), "--json") as watching:
        assert watching.stdout is not None
        first = [json.loads(watching.stdout.readline())["to"] for _ in range(3)]
        assert first == ["not_ready", "pending", "testing"]
        env.ci.enabled = True
        env.wait_for("merged", number)
        rest = [json.loads(line)["to"] for line in watching.stdout]
        assert (rest, watching.wait()) == (["tests_passed", "merged"], 0)


def test_control_characters_from_outside_are_replaced(terminal: CommandLine, concluded: dict[str, int]):
    number = str(concluded["merged"])
    for asked in (("status", number), ("top",), ("runs", "show", terminal.run_json("status", number)["testRunId"])):
        printed = terminal.run_ok(*asked)
        assert SHOWN in printed
        assert "\x1b" not in printed
        assert "\u202e" not in printed


@pytest.mark.long
def test_spinner_is_not_written_to_the_pipe(terminal: CommandLine, concluded: dict[str, int]):
    ours, theirs = pty.openpty()
    with terminal.start("watch", str(concluded["merged"]), "--json", stderr=theirs) as watching:
        assert watching.stdout is not None
        printed = watching.stdout.read()
    os.close(theirs)
    os.close(ours)
    assert [json.loads(line)["to"] for line in printed.splitlines()][-1] == "merged"


# Queues


def test_queue_is_created_paused_changed_and_deleted(env: ServerEnvironment, terminal: CommandLine):
    env.origin.branch("stable", base="main")
    there = ("--repo", "git.local/acme/app", "--branch", "stable")
    made = terminal.run_json(
        "queue", "create", *there, "--batch", "on", "--mode", "PARALLEL", "--required-statuses", "a"
    )
    assert (made["batch"], made["mode"], made["requiredStatuses"]) == (True, "parallel", ["a"])
    for action, state in (("pause", "PAUSED"), ("drain", "DRAINING"), ("resume", "RUNNING")):
        assert terminal.run_json("queue", action, *there)["state"] == state
    check_pause_with_reason(terminal, *there)
    dropped = terminal.run_json("queue", "update", *there, "--delete-required-statuses", "--concurrency", "7")
    assert (dropped["requiredStatuses"], dropped["concurrency"], dropped["batch"]) == (None, 7, True)
    changed = terminal.run_ok("queue", "update", *there, "--concurrency", "8", "--required-statuses", "b")
    assert changed == "concurrency: 7 → 8\nrequired-statuses: as configured in the repository → b\n"
    assert "Nothing changed" in terminal.run_ok("queue", "update", *there, "--concurrency", "8")
    different = terminal.run_ok("queue", "settings", "--diff", *there).splitlines()
    assert [line.split()[0] for line in different] == ["SETTING", "mode", "concurrency", "batch", "required-statuses"]
    assert terminal.run_json("queue", "settings", *there)["mergeMethod"] == "merge_commit"
    assert "stable of git.local/acme/app  Running\n" in terminal.run_ok("queue", "show", *there)
    terminal.environment |= {"MERGEYARD_REPO": "git.local/acme/app", "MERGEYARD_BRANCH": "stable"}
    assert terminal.run_json("queue", "delete")["deleted"] is True
    assert "(queue_not_found, request " in terminal.run_failing(3, "queue", "show")


def check_pause_with_reason(terminal: CommandLine, *there: str) -> None:
    paused = terminal.run_ok("queue", "pause", *there, "--reason", "Release freeze")
    assert paused.startswith("stable of git.local/acme/app  Paused: Release freeze\nNothing enters, starts or merges")
    (row,) = (line for line in terminal.run_ok("queue", "list").splitlines() if " stable " in line)
    assert row.split()[2:] == ["Paused", "parallel", "0", "0", "0", "Release", "freeze"]
    drained = terminal.run_ok("queue", "drain", *there, "--reason", "Moving")
    assert "Draining: Moving\nThe queue finishes its pull requests" in drained
    resumed = terminal.run_ok("queue", "resume", *there)
    assert resumed.startswith("stable of git.local/acme/app  Running\nThe queue admits, tests and merges")
    refusal = terminal.run_failing(3, "queue", "pause", *there, "--reason", "x" * 501)
    assert refusal.startswith("error: --reason: expected at most 500")


def test_queue_must_be_named_only_if_there_are_several(env: ServerEnvironment, terminal: CommandLine):
    assert terminal.run_json("queue", "show")["branch"] == "main"
    branch = "next\u202e"
    env.origin.branch(branch, base="main")
    terminal.run_ok("queue", "create", "--repo", "git.local/acme/app", "--branch", branch)
    refusal = terminal.run_failing(64, "queue", "show")
    assert "--repo git.local/acme/app --branch main\n" in refusal
    assert "--repo git.local/acme/app --branch next�\n" in refusal
    assert terminal.run_json("queue", "show", "--branch", branch)["branch"] == branch
    assert [queue["branch"] for queue in terminal.run_json("queue", "list", "--branch", branch)["queues"]] == [branch]
    deleted = terminal.run("queue", "delete", "--branch", branch).stderr
    assert deleted == "Deleted the queue for next� of git.local/acme/app.\n"
    assert "can read no queue for git.local/acme/other" in terminal.run_failing(
        64, "queue", "show", "--repo", "git.local/acme/other"
    )


# Events


@pytest.mark.long
def test_events_are_listed_after_a_cursor_and_followed_while_another_command_waits(
    env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]
):
    events = [json.loads(line) for line in terminal.run_ok("events", "--json").splitlines()]
    assert events[0]["type"] == "queue.created"
    assert len(events) > 5
    last = events[-1]["cursor"]
    assert terminal.run_ok("events", "--after", last) == ""
    assert f"#{concluded['cancelled']} " in terminal.run_ok("events", "--after", "0")
    number = env.open_pr({"f.txt": "1"})
    with (
        terminal.start("events", "--follow", "--after", last, "--json") as following,
        terminal.start("submit", str(number), "--wait", "--json") as submitting,
    ):
        assert following.stdout is not None
        assert submitting.stdout is not None
        assert json.loads(following.stdout.readline())["pr_number"] == number
        following.terminate()
        env.wait_for("merged", number)
        assert json.loads(submitting.stdout.read())["state"] == "merged"
        assert submitting.wait() == 0


def test_top_prints_the_queue_once_in_a_pipe(terminal: CommandLine, concluded: dict[str, int]):
    drawn = terminal.run_ok("top")
    assert drawn.startswith("main of git.local/acme/app   Running ")
    assert "\n0 queued (0 testing, 0 bisecting, 0 waiting)   0 not ready   next merge: nothing is queued\n" in drawn
    assert re.search(rf"^Finished\n( .*\n)* +#{concluded['failed']} .* Failed ", drawn, re.MULTILINE)


# Other commands


def test_list_shows_pull_requests_of_a_state_also_ended_ones(
    env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]
):
    assert terminal.run_json("list", "--limit", "2") == env.api.post("listPullRequests", take=2)
    header, *rows = terminal.run_ok("list").splitlines()
    assert header.split() == ["PR", "STATE", "AUTHOR", "TITLE", "SUBMITTED", "REASON"]
    assert {f"#{number}" for number in concluded.values()} <= {row.split()[0] for row in rows}
    for name in ("removed", "cancelled"):
        listed = terminal.run_json("list", "--state", name)["pullRequests"]
        assert {each["state"] for each in listed} == {"cancelled"}
    assert terminal.run("list", "--state", "failing").stderr.startswith("No pull requests. ")


def test_a_check_is_reported(env: ServerEnvironment, terminal: CommandLine):
    env.ci.enabled = False
    number = env.open_pr({"h.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    sha = env.run_of(number)["testBranchSha"]
    url = ("--details-url", "https://ci.example.com/7")
    for name in env.run_of(number)["requiredStatuses"]:
        reported = terminal.run("check", "report", name, "--sha", sha, "--state", "success", *url)
        assert reported.stderr == f"Reported {name} as success for {sha[:12]} of git.local/acme/app.\n"
    arguments = ("report", "other", "--sha", sha, "--state", "failure", "--description", "Broken")
    assert terminal.run_json("check", *arguments) == {"accepted": True}
    env.wait_for("merged", number)
    assert {check["url"] for check in env.run_of(number)["statusChecks"]} >= {url[1]}
    env.ci.enabled = True


def test_pages_are_opened_in_a_browser(env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int]):
    terminal.environment["BROWSER"] = "true"
    key, number = QueueKey(Repo("git.local", "acme", "app"), "main"), PullRequestNumber(concluded["failed"])
    run = RunId(env.run_of(number)["id"])
    pages = {
        ("status", str(number)): formats.pull_request_url(key, number),
        ("list",): pull_request_list.pull_requests_url(key),
        ("queue", "show"): formats.queue_url(key),
        ("runs", "show", run[:12]): formats.run_url(run),
    }
    for command, page in pages.items():
        result = terminal.run(*command, "--web")
        assert (result.stdout, result.stderr) == ("", f"{env.server.url}{page}\n")


def test_version_names_the_server(env: ServerEnvironment, terminal: CommandLine):
    name = env.server.url.removeprefix("http://")
    for command in ("version", "--version"):
        assert terminal.run_ok(command) == f"mergeyard {__version__}\nserver {name} {__version__}\n"
    assert terminal.run_json("version")["server"] == {"name": name, "version": __version__}


def test_the_pull_request_of_the_current_branch_is_found(
    env: ServerEnvironment, terminal: CommandLine, concluded: dict[str, int], tmp_path: Path
):
    terminal.environment["GIT_DIR"] = None
    subprocess.run(["git", "clone", "--quiet", env.origin.url, str(tmp_path)], check=True)
    number = concluded["cancelled"]
    with chdir(tmp_path):
        subprocess.run(["git", "switch", "--quiet", "--create", f"topic-{number}"], check=True)
        assert terminal.run_json("status")["prNumber"] == number
        watched = terminal.run("watch")
        assert watched.exit_code == 2
        assert watched.stderr.startswith(f"The branch topic-{number} is that of #{number} by ")
        subprocess.run(["git", "switch", "--quiet", "--create", "other"], check=True)
        refusal = terminal.run_failing(64, "restart")
        assert "No pull request from the branch other was submitted to the queue for main of git.local/acme/app." in (
            refusal
        )
        assert "hint: Pass the number of a pull request, such as 12." in refusal
        subprocess.run(["git", "switch", "--quiet", "--detach"], check=True)
        assert "no branch is checked out here" in terminal.run_failing(64, "cancel")
        assert "no branch is checked out here" in terminal.run_failing(64, "submit")


def test_a_branch_of_the_same_name_with_another_commit_is_not_taken(
    terminal: CommandLine, concluded: dict[str, int], tmp_path: Path
):
    terminal.environment["GIT_DIR"] = None
    number = concluded["cancelled"]
    subprocess.run(["git", "init", "--quiet", f"--initial-branch=topic-{number}", str(tmp_path)], check=True)
    with chdir(tmp_path):
        refusal = terminal.run_failing(64, "status")
        assert f"#{number} by " in refusal
        assert "is not in this checkout." in refusal


def test_the_open_pull_request_whose_head_is_checked_out_is_submitted(
    env: ServerEnvironment, terminal: CommandLine, tmp_path: Path
):
    terminal.environment["GIT_DIR"] = None
    number = env.open_pr({"inferred.txt": "1"})
    branch, head = f"topic-{number}", env.origin.tip(f"topic-{number}")
    subprocess.run(["git", "clone", "--quiet", "--branch", branch, env.origin.url, str(tmp_path)], check=True)
    with chdir(tmp_path):
        assert terminal.run_json("submit")["prSha"] == head
        env.cancel(number)
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        subprocess.run(["git", *identity, "commit", "--quiet", "--allow-empty", "--message", "Local"], check=True)
        refusal = terminal.run_failing(64, "submit")
        assert f"has the branch {branch} at " in refusal
        assert f"hint: #{number} is at {head[:12]}. Push or pull the branch, or pass the number." in refusal


@pytest.mark.parametrize(
    ("answer", "code", "state"),
    [("n\n", 130, "testing"), pytest.param("y\n", 0, "cancelled", marks=pytest.mark.long)],
)
def test_a_user_at_a_terminal_confirms_the_price(
    env: ServerEnvironment, terminal: CommandLine, answer: str, code: int, state: str
):
    env.ci.enabled = False
    number = env.open_pr({"k.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    given = {name: value for name, value in (os.environ | terminal.environment).items() if value is not None}
    with a_screen([*COMMAND, "cancel", str(number)], given | {"TERM": "xterm-256color"}) as screen:
        screen.wait_for_text("This stops 1 test run and loses ")
        screen.press(answer)
        assert screen.wait_for_exit() == code
    question = f" of CI time. Remove #{number} from the queue for main of git.local/acme/app? [y/N]"
    assert question in " ".join(screen.output.split())
    assert env.state(number) == state
    env.cancel(number)
    env.ci.enabled = True


# Refusals


def test_refusal_of_another_head_names_the_option(terminal: CommandLine, concluded: dict[str, int]):
    refusal = terminal.run_failing(3, "submit", str(concluded["failed"]), "--sha", "1" * 40)
    assert "submit it with --sha HEAD" in refusal
    refusal = terminal.run_failing(3, "submit", str(concluded["failed"]), "--sha", "abc")
    assert refusal.startswith("error: --sha: expected a full commit SHA: 40 or 64 hexadecimal digits. (")


def test_refusal_is_followed_by_the_command_that_helps(terminal: CommandLine):
    there = ("--repo", "git.local/acme/app", "--branch")
    refusal = terminal.run_failing(3, "queue", "create", *there, "main")
    assert refusal.endswith("\nhint: `mergeyard queue update` changes its settings.\n")
    assert "`mergeyard queue create` creates one" in terminal.run_failing(3, "queue", "show", *there, "none")


def test_refusal_is_printed_with_its_code_and_request_id(terminal: CommandLine):
    refusal = terminal.run_failing(3, "status", "999")
    assert refusal.startswith("error: Pull request 999 was never submitted")
    assert re.search(r" \(pr_not_submitted, request \w+\)\nhint: `mergeyard submit N` ", refusal)


def test_token_is_never_printed_and_can_be_read_from_a_file(terminal: CommandLine, tmp_path: Path):
    good, file = terminal.environment["MERGEYARD_TOKEN"] or "", tmp_path / "token"
    terminal.environment["MERGEYARD_TOKEN"] = "my_wrong"
    refusal = terminal.run_failing(6, "queue", "list")
    assert "(invalid_token, " in refusal
    assert "hint: Get a valid token and sign in with `mergeyard login URL`" in refusal
    assert "my_wrong" not in refusal
    file.write_text(f"{good}\n")
    terminal.run_ok("queue", "list", "--token-file", str(file))
    assert "hint: Pass another file with --token-file." in terminal.run_failing(
        64, "queue", "list", "--token-file", "/gone"
    )


def test_token_without_the_read_scope_must_name_the_queue(env: ServerEnvironment, terminal: CommandLine):
    scope = ("--scope", "targets", "--repo", "git.local/acme/app")
    made = run_command(token.app, "create", "--name", "ci", *scope, "--config", str(env.server.config))
    terminal.environment["MERGEYARD_TOKEN"] = made.strip()
    assert "(insufficient_scope, " in terminal.run_failing(6, "targets", "set", "--pr", "1", "a")


# Server shutdown


def test_server_shutdown_ends_event_streams(env: ServerEnvironment, terminal: CommandLine):
    """Open streams would otherwise delay the shutdown until its timeout."""
    number = env.open_pr({"g.txt": "1"})
    last = terminal.run_ok("events", "--json").splitlines()[-1]
    with terminal.start("events", "--follow", "--after", json.loads(last)["cursor"], "--json") as following:
        env.submit(number)
        assert following.stdout is not None
        assert following.stdout.readline()
        env.wait_for("merged", number)
        begun = time.monotonic()
        env.server.stop()
        assert time.monotonic() - begun < SHUTDOWN_TIMEOUT_S
        following.terminate()
    env.server.start()
    env.submission(number)  # once it answers, it also stops as asked
