"""The repository of a checkout, and the queue that a command takes for it."""

import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer
from msgspec import json

from mergeyard.cli.connection_options import (
    choose_names,
    choose_queue,
    parse_remote_url,
    read_current_branch,
    read_origin,
)
from mergeyard.client import Client, QueueName
from tests.support.api_examples import QUEUE_RESPONSE, a_problem


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/app.git",
        "https://github.com/acme/app",
        "https://user:secret@GitHub.com:443/acme/app/",
        "http://github.com/acme/app.git/",
        "ssh://git@github.com/acme/app.git",
        "ssh://git@github.com:2222/acme/app.git",
        "git@github.com:acme/app.git",
        "github.com:acme/app",
        "git@github.com:/acme/app.git",
        "git://github.com/acme/app.git",
    ],
)
def test_remote_names_the_repository(url: str):
    assert str(parse_remote_url(url)) == "github.com/acme/app"


def test_groups_within_groups_and_escaped_names_are_kept():
    assert str(parse_remote_url("git@gitlab.com:group/sub/app.git")) == "gitlab.com/group/sub/app"
    assert str(parse_remote_url("https://gitlab.com/group/a%20b.git")) == "gitlab.com/group/a b"


@pytest.mark.parametrize(
    "url",
    [
        "/srv/git/acme/app.git",
        "../app",
        "./a:b",
        "file:///srv/git/acme/app.git",
        "",
        "https://github.com/app",
        "https://[x/acme/app",
    ],
)
def test_a_local_path_names_no_repository(url: str):
    assert parse_remote_url(url) is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a checkout of the branch `topic`, without a remote."""
    monkeypatch.delenv("GIT_DIR", raising=False)
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "topic", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def set_origin(folder: Path, url: str) -> None:
    subprocess.run(["git", "remote", "add", "origin", url], cwd=folder, check=True)


def test_origin_and_branch_are_read_in_any_folder_of_the_checkout(folder: Path, monkeypatch: pytest.MonkeyPatch):
    set_origin(folder, "git@github.com:acme/app.git")
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert str(read_origin()) == "github.com/acme/app"
    assert read_current_branch() == "topic"


def test_without_a_checkout_there_is_no_origin_and_no_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert read_origin() is None
    assert read_current_branch() is None


def test_without_git_there_is_no_origin(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(folder))
    assert read_origin() is None


# The queue


def chosen(*names: str, repo: str | None = None, branch: str | None = None, refused: bool = False) -> QueueName:
    """The queue that a command takes when the token can read these queues."""

    def respond(_: httpx2.Request) -> httpx2.Response:
        if refused:
            return httpx2.Response(403, content=json.encode(a_problem("insufficient_scope", retryable=False)))
        return httpx2.Response(200, content=json.encode({"queues": [a_queue(name) for name in names]}))

    with Client("https://queue.example.com", "my_token", transport=httpx2.MockTransport(respond)) as client:
        return choose_queue(client, repo, branch)


def a_queue(name: str) -> dict[str, Any]:
    path, branch = name.split(":")
    host, owner, repo = path.split("/")
    return QUEUE_RESPONSE | {"repo": {"host": host, "owner": owner, "name": repo}, "branch": branch}


def refusal(capsys: pytest.CaptureFixture[str], *names: str, **options: Any) -> str:
    with pytest.raises(typer.Exit):
        chosen(*names, **options)
    return capsys.readouterr().err


APP, OTHER, NEXT = "github.com/acme/app:main", "github.com/acme/other:main", "github.com/acme/app:next"


def test_the_queue_of_the_origin_is_taken(folder: Path):
    set_origin(folder, "git@github.com:Acme/App.git")
    assert chosen(OTHER, APP) == QueueName.of("github.com/acme/app", "main")
    assert chosen(OTHER, APP, NEXT, branch="next") == QueueName.of("github.com/acme/app", "next")
    assert chosen(OTHER, APP, repo="github.com/acme/other") == QueueName.of("github.com/acme/other", "main")


def test_an_origin_without_a_queue_stops_the_command_even_if_there_is_only_one_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    set_origin(folder, "https://github.com/acme/app.git")
    error, hint, *listed = refusal(capsys, OTHER).splitlines()
    assert error == ("error: The token can read no queue for github.com/acme/app (the remote origin of this checkout).")
    assert (hint, listed) == (
        "hint: Choose one with --repo and --branch:", ["  --repo github.com/acme/other --branch main"],
    )  # fmt: skip


LOCAL_ORIGINS = ("/srv/git/acme/app.git", "file:///srv/git/acme/app", "repos/Acme/app.git/", "acme/app")


@pytest.mark.parametrize("origin", LOCAL_ORIGINS)
def test_an_origin_that_is_a_path_stands_only_for_the_repository_of_its_last_folders(
    folder: Path, capsys: pytest.CaptureFixture[str], origin: str
):
    set_origin(folder, origin)
    error, hint, *listed = refusal(capsys, OTHER).splitlines()
    assert error == f"error: The token can read no queue for {origin} (the remote origin of this checkout)."
    assert (hint, listed) == (
        "hint: Choose one with --repo and --branch:", ["  --repo github.com/acme/other --branch main"],
    )  # fmt: skip
    assert chosen(OTHER, APP) == QueueName.of("github.com/acme/app", "main")
    assert chosen(OTHER, repo="github.com/acme/other") == QueueName.of("github.com/acme/other", "main")
    assert f"no queue for next of {origin} (" in refusal(capsys, OTHER, APP, branch="next")
    assert "no queue for" in refusal(capsys, "github.com/beacme/app:main", "github.com/acme/happ:main")


@pytest.mark.usefixtures("folder")
def test_without_an_origin_the_only_queue_is_taken(capsys: pytest.CaptureFixture[str]):
    assert chosen(OTHER) == QueueName.of("github.com/acme/other", "main")
    assert "several queues" in refusal(capsys, OTHER, APP)
    assert "hint: Create a queue with `mergeyard queue create`." in refusal(capsys)


def test_a_token_that_cannot_read_queues_uses_origin_and_branch(folder: Path):
    set_origin(folder, "https://github.com/acme/app.git")
    assert chosen(refused=True, branch="main") == QueueName.of("github.com/acme/app", "main")


# Names of options and variables


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((None, None, None), ("git.local/a/b", "main")),
        ((None, "next", None), ("git.local/a/b", "next")),
        ((None, None, "git.local/c/d:next"), ("git.local/c/d", "next")),
    ],
)
def test_options_come_before_variables(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str | None, str | None, str | None], expected: tuple[str, str]
):
    monkeypatch.setenv("MERGEYARD_QUEUE", "git.local/a/b:main")
    assert choose_names(*options) == expected
    monkeypatch.delenv("MERGEYARD_QUEUE")
    monkeypatch.setenv("MERGEYARD_REPO", "git.local/a/b")
    monkeypatch.setenv("MERGEYARD_BRANCH", "main")
    assert choose_names(*options) == expected


def test_the_branch_of_a_queue_variable_belongs_to_its_repository(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERGEYARD_QUEUE", "git.local/a/b:main")
    assert choose_names("git.local/c/d", None, None) == ("git.local/c/d", None)
    monkeypatch.setenv("MERGEYARD_BRANCH", "next")
    assert choose_names("git.local/c/d", None, None) == ("git.local/c/d", "next")
