"""`mergeyard targets`: computes impacted targets in a checkout and uploads them to a real server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from mergeyard.cli import app, token
from tests.e2e.conftest import StartEnvironment
from tests.support.api_examples import a_problem
from tests.support.environment import ServerEnvironment, run_command
from tests.support.repositories import Origin

GLOBS = 'version = 1\n[targets]\napp = ["app/**"]\ndocs = ["docs/**"]\nALL = ["Makefile"]\n'
QUEUE = ("--repo", "git.local/acme/app", "--branch", "main")


class Checkout:
    """A clone of the origin in which commands are run."""

    def __init__(self, origin: Origin, folder: Path) -> None:
        self.origin = origin
        self.folder = folder
        self.environment = {
            "MERGEYARD_URL": "", "MERGEYARD_TOKEN": "", "NO_PROXY": "127.0.0.1", "XDG_CONFIG_HOME": "/dev/null",
        }  # fmt: skip
        subprocess.run(["git", "clone", "--quiet", origin.url, str(folder)], check=True)

    def check_out(self, branch: str) -> None:
        subprocess.run(["git", "fetch", "--quiet"], cwd=self.folder, check=True)
        subprocess.run(["git", "checkout", "--quiet", "--detach", f"origin/{branch}"], cwd=self.folder, check=True)

    def targets(self, *arguments: str, given: str = "") -> Result:
        with chdir(self.folder):
            return CliRunner(env=self.environment).invoke(app, ["targets", *arguments], input=given)

    def done(self, *arguments: str, given: str = "") -> tuple[str, str]:
        answer = self.targets(*arguments, given=given)
        assert answer.exit_code == 0, answer.output
        return answer.stdout, answer.stderr

    def refused(self, *arguments: str, given: str = "", code: int = 1) -> str:
        answer = self.targets(*arguments, given=given)
        assert (answer.exit_code, answer.stdout) == (code, ""), answer.output
        return answer.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    origin = Origin.create(tmp_path / "app.git")
    origin.commit("main", {".mergeyard.toml": GLOBS, "app/a": "1"})
    origin.branch("topic", base="main", files={"app/a": "2", "docs/b": "1"})
    checkout = Checkout(origin, tmp_path / "checkout")
    checkout.check_out("topic")
    return checkout


@pytest.fixture
def env(start_env: StartEnvironment) -> ServerEnvironment:
    env = start_env(mode="parallel")
    env.origin.commit("main", {".mergeyard.toml": GLOBS})
    return env


def ci_checkout(env: ServerEnvironment, folder: Path) -> Checkout:
    """A checkout in a CI whose token can only upload impacted targets."""
    scope = ("--scope", "targets", "--repo", "git.local/acme/app")
    secret = run_command(token.app, "create", "--name", "ci", *scope, "--config", str(env.server.config)).strip()
    checkout = Checkout(env.origin, folder)
    checkout.environment |= {"MERGEYARD_URL": env.server.url, "MERGEYARD_TOKEN": secret}
    return checkout


def uploaded(env: ServerEnvironment, number: int) -> list[str]:
    """The impacted targets of the pull request's run."""
    env.submit(number)
    env.wait_for("merged", number)
    return env.run_of(number)["impactedTargets"]


# Output


def test_targets_are_printed_one_per_line_or_as_the_api_takes_them(checkout: Checkout):
    assert checkout.done("from-paths") == ("app\ndocs\n", "")
    assert json.loads(checkout.done("from-paths", "--json")[0]) == {"impactedTargets": ["app", "docs"]}


def test_all_is_printed_as_one_name(checkout: Checkout):
    checkout.origin.commit("topic", {"Makefile": "1"})
    checkout.check_out("topic")
    assert checkout.done("from-paths")[0] == "ALL\n"
    assert json.loads(checkout.done("from-paths", "--json")[0]) == {"impactedTargets": "ALL"}


def test_no_change_prints_nothing(checkout: Checkout):
    assert checkout.done("from-paths", "--head", "origin/main") == ("", "")


def test_command_works_in_any_folder_of_the_checkout(checkout: Checkout):
    checkout.folder /= "docs"
    assert checkout.done("from-paths")[0] == "app\ndocs\n"


def test_a_pull_request_cannot_choose_its_own_globs(checkout: Checkout):
    checkout.origin.commit("topic", {".mergeyard.toml": 'version = 1\n[targets]\nnone = ["**"]\n'})
    checkout.check_out("topic")
    assert checkout.done("from-paths")[0] == "ALL\n"


def test_other_globs_can_be_tried(checkout: Checkout):
    (checkout.folder / "try.toml").write_text('version = 1\n[targets]\nunmatched = "path"\nx = ["app/**"]\n')
    assert checkout.done("from-paths", "--config", "try.toml")[0] == "docs/b\nx\n"


def test_without_globs_every_change_impacts_all_with_a_notice(checkout: Checkout):
    checkout.origin.commit("main", {".mergeyard.toml": "version = 1\n"})
    checkout.check_out("topic")
    printed, said = checkout.done("from-paths")
    assert printed == "ALL\n"
    assert "has no [targets]" in said


def test_invalid_globs_are_reported_with_their_key(checkout: Checkout):
    checkout.origin.commit("main", {".mergeyard.toml": "version = 1\n[targets]\napp = 3\n"})
    checkout.check_out("topic")
    assert ".mergeyard.toml: targets.app: expected a list" in checkout.refused("from-paths")


def test_missing_base_is_reported(checkout: Checkout):
    assert "This checkout has no commit origin/gone" in checkout.refused("from-paths", "--base", "origin/gone")


# Upload


@pytest.mark.long
def test_computed_targets_are_uploaded_for_their_commit(env: ServerEnvironment, tmp_path: Path):
    number = env.open_pr({"app/a": "1", "docs/b": "1"})
    checkout = ci_checkout(env, tmp_path / "checkout")
    checkout.check_out("topic-1")
    printed, said = checkout.done("from-paths", "--upload", *QUEUE, "--pr", str(number))
    head = env.origin.tip("topic-1")
    assert printed == "app\ndocs\n"
    assert said == f"Pull request {number} at {head[:12]} impacts 2 targets.\n"
    assert uploaded(env, number) == ["app", "docs"]


@pytest.mark.long
def test_commands_of_the_documentation_work(env: ServerEnvironment, tmp_path: Path):
    number = env.open_pr({"app/a": "1", "docs/b": "1"})
    checkout = ci_checkout(env, tmp_path / "checkout")
    checkout.check_out("topic-1")
    page = (Path(__file__).parents[2] / "docs" / "admins" / "impacted-targets.md").read_text()
    scripts = re.findall(
        r"^```sh\n(mergeyard targets from-paths --base origin/main.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    script = "".join(scripts).replace("github.com/acme/app", "git.local/acme/app").replace("--pr 123", f"--pr {number}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    answer = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=checkout.folder,
        env=os.environ | checkout.environment | {"PATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert answer.stdout == "app\ndocs\n" * 2
    assert uploaded(env, number) == ["app", "docs"]


@pytest.mark.long
def test_targets_of_another_commit_than_the_head_do_not_count_for_it(env: ServerEnvironment, tmp_path: Path):
    number = env.open_pr({"app/a": "1"})
    checkout = ci_checkout(env, tmp_path / "checkout")
    checkout.done("from-paths", "--upload", *QUEUE, "--pr", str(number))
    env.submit(number)
    assert env.submission(number)["readiness"]["hasImpactedTargets"] is False
    checkout.done("set", "ALL", "--sha", env.origin.tip("topic-1"), *QUEUE, "--pr", str(number))
    env.wait_for("merged", number)


@pytest.mark.long
def test_targets_come_from_arguments_a_file_and_the_input(env: ServerEnvironment, tmp_path: Path):
    checkout = ci_checkout(env, tmp_path / "checkout")
    (checkout.folder / "list").write_text("//lib:a\r\n\n  größe  \n")
    for arguments, given, expected in (
        (("a", "b", "a"), "", ["a", "b"]),
        (("c", "--file", "list"), "", ["//lib:a", "c", "größe"]),
        (("--file", "-"), "x\ny\n", ["x", "y"]),
        (("a", "ALL"), "", ["ALL"]),
        (("--allow-empty", "--file", "-"), "", []),
    ):
        number = env.open_pr({f"file-{len(expected)}": given or str(arguments)})
        checkout.done("set", *arguments, *QUEUE, "--pr", str(number), given=given)
        assert uploaded(env, number) == expected


def test_messages_of_the_server_are_printed(env: ServerEnvironment, tmp_path: Path):
    checkout = ci_checkout(env, tmp_path / "checkout")
    assert "(pr_not_found, request " in checkout.refused("set", "a", *QUEUE, "--pr", "9", code=3)
    checkout.environment["MERGEYARD_TOKEN"] = "my_wrong"
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=6)
    assert "token" in refusal
    assert "my_wrong" not in refusal


# Refused without asking the server


def test_empty_list_is_refused_unless_it_is_explicitly_allowed(checkout: Checkout):
    assert "--allow-empty" in checkout.refused("set", *QUEUE, "--pr", "1", code=64)
    assert "--allow-empty" in checkout.refused("set", "--file", "-", *QUEUE, "--pr", "1", given="\n", code=64)


def test_missing_options_of_an_upload_are_named(checkout: Checkout):
    assert "with --pr, such as --pr 12" in checkout.refused("set", "a", *QUEUE, code=64)
    assert "set MERGEYARD_URL" in checkout.refused("set", "a", *QUEUE, "--pr", "1", code=64)
    checkout.environment |= {"MERGEYARD_URL": "queue.example.com", "MERGEYARD_TOKEN": "x"}
    assert "'queue.example.com' is not a URL" in checkout.refused("set", "a", *QUEUE, "--pr", "1", code=64)
    checkout.environment["MERGEYARD_URL"] = "https://queue.example.com"
    nameless = ("--repo", "app", "--branch", "main")
    assert "is not a repository name" in checkout.refused("set", "a", *nameless, "--pr", "1", code=64)


def test_unreadable_file_is_reported(checkout: Checkout):
    assert "gone" in checkout.refused("set", "--file", "gone", *QUEUE, "--pr", "1")
    (checkout.folder / "list").write_bytes(b"\xff")
    assert "utf-8" in checkout.refused("set", "--file", "list", *QUEUE, "--pr", "1")


# Server errors


class FakeServer(HTTPServer):
    """Sends the given responses one after the other and records the request bodies."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.asked: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, FakeServer)
        self.server.asked.append(self.rfile.read(int(self.headers["content-length"])))
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


SAVED = json.dumps({"prNumber": 1, "prSha": "1" * 40, "impactedTargets": 1}).encode()
LATER = json.dumps(a_problem("rate_limited", retryable=True)).encode()
REFUSED = json.dumps(a_problem("pr_not_found", retryable=False)).encode()


@pytest.fixture
def server(checkout: Checkout) -> Iterator[FakeServer]:
    with FakeServer() as server:
        checkout.environment |= {"MERGEYARD_URL": server.url, "MERGEYARD_TOKEN": "x"}
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_temporary_errors_are_retried(checkout: Checkout, server: FakeServer):
    server.answers = [(503, LATER), (502, b"<html>"), (200, SAVED)]
    assert checkout.done("set", "a", *QUEUE, "--pr", "1")[1] == "Pull request 1 at 111111111111 impacts 1 target.\n"
    assert len(server.asked) == 3
    assert len(set(server.asked)) == 1


def test_refusal_is_not_retried(checkout: Checkout, server: FakeServer):
    server.answers = [(409, REFUSED)]
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=3)
    assert refusal == "error: It cannot be. (pr_not_found, request r-1)\n"
    server.answers = [(301, b"elsewhere")]
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=4)
    assert refusal.startswith(f"error: {server.url}: The response with status 301 is not from Mergeyard")
    assert len(server.asked) == 2
