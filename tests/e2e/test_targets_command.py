"""Impacted targets, computed in a checkout and uploaded to a real server, from the command line."""

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
from tests.e2e.conftest import Build
from tests.support.answers import problem
from tests.support.premises import Premises
from tests.support.repositories import Origin
from tests.support.surroundings import command

GLOBS = 'version = 1\n[targets]\napp = ["app/**"]\ndocs = ["docs/**"]\nALL = ["Makefile"]\n'
QUEUE = ("--repo", "git.local/acme/app", "--target-branch", "main")


class Checkout:
    """A clone of the origin, with a command line in it."""

    def __init__(self, origin: Origin, folder: Path) -> None:
        self.origin = origin
        self.folder = folder
        self.environment = {"MERGEYARD_URL": "", "MERGEYARD_TOKEN": "", "NO_PROXY": "127.0.0.1"}
        subprocess.run(["git", "clone", "--quiet", origin.url, str(folder)], check=True)

    def look_at(self, branch: str) -> None:
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
    origin = Origin.made(tmp_path / "app.git")
    origin.commit("main", {".mergeyard.toml": GLOBS, "app/a": "1"})
    origin.branch("topic", upon="main", files={"app/a": "2", "docs/b": "1"})
    checkout = Checkout(origin, tmp_path / "checkout")
    checkout.look_at("topic")
    return checkout


@pytest.fixture
def premises(build: Build) -> Premises:
    premises = build(mode="parallel")
    premises.origin.commit("main", {".mergeyard.toml": GLOBS})
    return premises


def visit(premises: Premises, folder: Path) -> Checkout:
    """A checkout in a CI whose token may do nothing but this."""
    scope = ("--scope", "targets", "--repo", "git.local/acme/app")
    secret = command(token.app, "create", "--name", "ci", *scope, "--config", str(premises.server.config)).strip()
    checkout = Checkout(premises.origin, folder)
    checkout.environment |= {"MERGEYARD_URL": premises.server.url, "MERGEYARD_TOKEN": secret}
    return checkout


def uploaded(premises: Premises, number: int) -> list[str]:
    """What the pull request's run says that it impacts."""
    premises.submit(number)
    premises.wait_for("merged", number)
    return premises.run_of(number)["impactedTargets"]


# What is printed


def test_targets_are_printed_one_per_line_or_as_the_api_takes_them(checkout: Checkout):
    assert checkout.done("from-paths") == ("app\ndocs\n", "")
    assert json.loads(checkout.done("from-paths", "--json")[0]) == ["app", "docs"]


def test_all_is_one_word(checkout: Checkout):
    checkout.origin.commit("topic", {"Makefile": "1"})
    checkout.look_at("topic")
    assert checkout.done("from-paths")[0] == "ALL\n"
    assert json.loads(checkout.done("from-paths", "--json")[0]) == "ALL"


def test_no_change_prints_nothing(checkout: Checkout):
    assert checkout.done("from-paths", "--head", "origin/main") == ("", "")


def test_a_checkout_can_be_asked_from_any_folder_in_it(checkout: Checkout):
    checkout.folder /= "docs"
    assert checkout.done("from-paths")[0] == "app\ndocs\n"


def test_a_pull_request_cannot_choose_its_own_globs(checkout: Checkout):
    checkout.origin.commit("topic", {".mergeyard.toml": 'version = 1\n[targets]\nnone = ["**"]\n'})
    checkout.look_at("topic")
    assert checkout.done("from-paths")[0] == "ALL\n"


def test_other_globs_can_be_tried(checkout: Checkout):
    (checkout.folder / "try.toml").write_text('version = 1\n[targets]\nunmatched = "path"\nx = ["app/**"]\n')
    assert checkout.done("from-paths", "--config", "try.toml")[0] == "docs/b\nx\n"


def test_without_globs_every_change_impacts_all_and_that_is_said(checkout: Checkout):
    checkout.origin.commit("main", {".mergeyard.toml": "version = 1\n"})
    checkout.look_at("topic")
    printed, said = checkout.done("from-paths")
    assert printed == "ALL\n"
    assert "has no [targets]" in said


def test_globs_that_are_wrong_are_told_with_their_line(checkout: Checkout):
    checkout.origin.commit("main", {".mergeyard.toml": "version = 1\n[targets]\napp = 3\n"})
    checkout.look_at("topic")
    assert ".mergeyard.toml line 3, targets.app: expected a list" in checkout.refused("from-paths")


def test_a_base_that_is_not_there_is_told(checkout: Checkout):
    assert "There is no commit origin/gone" in checkout.refused("from-paths", "--base", "origin/gone")


# What is uploaded


def test_what_is_computed_is_uploaded_for_the_commit_it_was_computed_from(premises: Premises, tmp_path: Path):
    number = premises.open_pr({"app/a": "1", "docs/b": "1"})
    checkout = visit(premises, tmp_path / "checkout")
    checkout.look_at("topic-1")
    printed, said = checkout.done("from-paths", "--upload", *QUEUE, "--pr", str(number))
    head = premises.origin.tip("topic-1")
    assert printed == "app\ndocs\n"
    assert said == f"Pull request {number} at {head[:12]} impacts 2 targets.\n"
    assert uploaded(premises, number) == ["app", "docs"]


def test_the_commands_on_the_page_do_what_it_says(premises: Premises, tmp_path: Path):
    number = premises.open_pr({"app/a": "1", "docs/b": "1"})
    checkout = visit(premises, tmp_path / "checkout")
    checkout.look_at("topic-1")
    page = (Path(__file__).parents[2] / "docs" / "impacted-targets.md").read_text()
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
    assert uploaded(premises, number) == ["app", "docs"]


def test_targets_of_another_commit_than_the_head_do_not_count_for_it(premises: Premises, tmp_path: Path):
    number = premises.open_pr({"app/a": "1"})
    checkout = visit(premises, tmp_path / "checkout")
    checkout.done("from-paths", "--upload", *QUEUE, "--pr", str(number))
    premises.submit(number)
    assert premises.pull(number)["readiness"]["hasImpactedTargets"] is False
    checkout.done("set", "ALL", "--sha", premises.origin.tip("topic-1"), *QUEUE, "--pr", str(number))
    premises.wait_for("merged", number)


def test_targets_come_from_arguments_a_file_and_the_input(premises: Premises, tmp_path: Path):
    checkout = visit(premises, tmp_path / "checkout")
    (checkout.folder / "list").write_text("//lib:a\r\n\n  größe  \n")
    for arguments, given, expected in (
        (("a", "b", "a"), "", ["a", "b"]),
        (("c", "--file", "list"), "", ["//lib:a", "c", "größe"]),
        (("--file", "-"), "x\ny\n", ["x", "y"]),
        (("a", "ALL"), "", ["ALL"]),
        (("--allow-empty", "--file", "-"), "", []),
    ):
        number = premises.open_pr({f"file-{len(expected)}": given or str(arguments)})
        checkout.done("set", *arguments, *QUEUE, "--pr", str(number), given=given)
        assert uploaded(premises, number) == expected


def test_the_servers_own_words_are_passed_on(premises: Premises, tmp_path: Path):
    checkout = visit(premises, tmp_path / "checkout")
    assert "(pr_not_found, request " in checkout.refused("set", "a", *QUEUE, "--pr", "9", code=3)
    checkout.environment["MERGEYARD_TOKEN"] = "my_wrong"
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=3)
    assert "token" in refusal
    assert "my_wrong" not in refusal


# What is refused before anybody is asked


def test_an_empty_list_is_a_mistake_unless_it_is_meant(checkout: Checkout):
    assert "--allow-empty" in checkout.refused("set", *QUEUE, "--pr", "1", code=64)
    assert "--allow-empty" in checkout.refused("set", "--file", "-", *QUEUE, "--pr", "1", given="\n", code=64)


def test_it_is_told_what_is_missing_for_an_upload(checkout: Checkout):
    assert "with --pr N" in checkout.refused("set", "a", *QUEUE, code=64)
    assert "Set MERGEYARD_URL" in checkout.refused("set", "a", *QUEUE, "--pr", "1", code=64)
    checkout.environment |= {"MERGEYARD_URL": "queue.example.com", "MERGEYARD_TOKEN": "x"}
    assert "'queue.example.com' is no address" in checkout.refused("set", "a", *QUEUE, "--pr", "1", code=64)
    checkout.environment["MERGEYARD_URL"] = "https://queue.example.com"
    nameless = ("--repo", "app", "--target-branch", "main")
    assert "names no repository" in checkout.refused("set", "a", *nameless, "--pr", "1", code=64)


def test_a_file_that_cannot_be_read_is_told(checkout: Checkout):
    assert "gone" in checkout.refused("set", "--file", "gone", *QUEUE, "--pr", "1")
    (checkout.folder / "list").write_bytes(b"\xff")
    assert "utf-8" in checkout.refused("set", "--file", "list", *QUEUE, "--pr", "1")


# A server in trouble


class Door(HTTPServer):
    """Answers what it was given, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers = list(answers)
        self.asked: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Door)
        self.server.asked.append(self.rfile.read(int(self.headers["content-length"])))
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


KEPT = json.dumps({"prNumber": 1, "prSha": "1" * 40, "impactedTargets": 1}).encode()
LATER = json.dumps(problem("rate_limited", retryable=True)).encode()
NEVER = json.dumps(problem("pr_not_found", retryable=False)).encode()


@pytest.fixture
def door(checkout: Checkout) -> Iterator[Door]:
    with Door() as door:
        checkout.environment |= {"MERGEYARD_URL": door.url, "MERGEYARD_TOKEN": "x"}
        thread = Thread(target=door.serve_forever, args=(0.01,))
        thread.start()
        yield door
        door.shutdown()
        thread.join()


def test_passing_trouble_is_waited_out(checkout: Checkout, door: Door):
    door.answers = [(503, LATER), (502, b"<html>"), (200, KEPT)]
    assert checkout.done("set", "a", *QUEUE, "--pr", "1")[1] == "Pull request 1 at 111111111111 impacts 1 target.\n"
    assert len(door.asked) == 3
    assert len(set(door.asked)) == 1


def test_a_clear_no_is_not_asked_again(checkout: Checkout, door: Door):
    door.answers = [(409, NEVER)]
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=3)
    assert refusal == "It cannot be.\n(pr_not_found, request r-1)\n"
    door.answers = [(301, b"elsewhere")]
    refusal = checkout.refused("set", "a", *QUEUE, "--pr", "1", code=4)
    assert refusal.startswith(f"{door.url}: It answered 301, but not as Mergeyard does")
    assert len(door.asked) == 2
