"""`mergeyard pr`: pull requests of plain Git repositories, opened and changed from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mergeyard.cli.pr import app
from tests.support.repositories import Origin


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.create(tmp_path / "app.git")
    origin.commit("main", {"a.txt": "1"})
    origin.branch("topic", base="main", files={"b.txt": "1"}, message="Add b\n\nAt length.")
    return origin


def pr(origin: Origin, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, [command, "--repo-path", origin.url, *arguments])


def done(origin: Origin, command: str, *arguments: str) -> str:
    result = pr(origin, command, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(origin: Origin, command: str, *arguments: str) -> str:
    before = origin.refs()
    result = pr(origin, command, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert origin.refs() == before
    return result.stderr


def meta(origin: Origin, number: int = 1) -> dict[str, Any]:
    return json.loads(origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))


def write_meta(origin: Origin, **data: Any) -> None:
    origin.set_ref("refs/pull/1/meta", origin.blob(json.dumps(meta(origin) | data)))


# Opening


def test_open_prints_only_the_number_and_uses_the_message_of_the_head_commit(origin: Origin):
    assert done(origin, "open", "--head", "topic", "--base", "main") == "1\n"
    assert origin.tip("refs/pull/1/head") == origin.tip("topic")
    assert meta(origin) == {
        "title": "Add b",
        "author": "Ada",
        "base": "main",
        "branch": "topic",
        "draft": False,
        "state": "open",
    }


def test_title_author_and_draft_can_be_named(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main", "--title", "Ü\n", "--author", "Grace", "--draft")
    assert {**meta(origin), "title": "Ü\n", "author": "Grace", "draft": True} == meta(origin)


def test_numbers_continue_after_the_greatest_one_even_if_others_are_gone(origin: Origin):
    for number in (1, 2, 3):
        assert done(origin, "open", "--head", "topic", "--base", "main") == f"{number}\n"
    for ref in ("refs/pull/1/head", "refs/pull/1/meta", "refs/pull/3/meta"):
        origin.delete_ref(ref)
    assert done(origin, "open", "--head", "topic", "--base", "main") == "4\n"


@pytest.mark.long
def test_processes_that_open_at_once_get_different_numbers(origin: Origin):
    script = f"""
from typer.testing import CliRunner, Result
from mergeyard.cli.pr import app
arguments = ["open", "--repo-path", {origin.url!r}, "--head", "topic", "--base", "main"]
print("ready", flush=True)
input()
for _ in range(5):
    print(CliRunner().invoke(app, arguments).stdout, end="")
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout
        process.stdout.readline()
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    given = [number for process in processes for number in process.communicate()[0].split()]
    assert sorted(map(int, given)) == list(range(1, 11))


def test_a_branch_that_is_not_there_is_refused_with_advice(origin: Origin):
    assert "Push it first" in refused(origin, "open", "--head", "gone", "--base", "main")


@pytest.mark.parametrize("name", ["main~1", "-x..y", "a b", "", "a\nb", "*"])
def test_invalid_branch_name_is_refused(origin: Origin, name: str):
    assert "name of a branch" in refused(origin, "open", f"--head={name}", "--base", "main")
    assert "name of a branch" in refused(origin, "open", "--head", "topic", f"--base={name}")


def test_title_that_cannot_be_encoded_is_refused(origin: Origin):
    assert "at most 65536 are allowed" in refused(
        origin, "open", "--head", "topic", "--base", "main", "--title", "x" * 70_000
    )


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path):
    result = CliRunner().invoke(app, ["list", "--repo-path", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not a Git repository" in result.stderr


# Updating


def test_update_takes_the_new_head_of_the_branch(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main")
    pushed = origin.commit("topic", {"b.txt": "2"}, message="More")
    assert done(origin, "update", "1") == ""
    assert origin.tip("refs/pull/1/head") == pushed
    assert meta(origin)["title"] == "Add b"


def test_updating_changes_what_is_named_and_keeps_the_rest(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main", "--draft")
    write_meta(origin, labels=["kept"])
    before = meta(origin)
    done(origin, "update", "1", "--title", "Better", "--base", "release")
    assert meta(origin) == before | {"title": "Better", "base": "release"}
    done(origin, "update", "1", "--ready")
    assert meta(origin)["draft"] is False
    done(origin, "update", "1", "--draft")
    assert meta(origin) == before | {"title": "Better", "base": "release"}


def test_updating_can_take_another_branch(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main")
    other = origin.branch("other", base="main", files={"c.txt": "1"})
    done(origin, "update", "1", "--head", "other")
    assert (origin.tip("refs/pull/1/head"), meta(origin)["branch"]) == (other, "other")


@pytest.mark.parametrize("state", ["closed", "merged"])
def test_update_of_a_pr_that_is_not_open_is_refused_with_advice(origin: Origin, state: str):
    done(origin, "open", "--head", "topic", "--base", "main")
    write_meta(origin, state=state)
    said = refused(origin, "update", "1", "--title", "x")
    assert f"is {state}" in said
    assert "mergeyard pr open" in said


def test_update_of_a_pr_without_its_branch_asks_for_another(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main")
    origin.delete_ref("topic")
    assert "--head" in refused(origin, "update", "1")


def test_unknown_number_is_refused(origin: Origin):
    for command in ("update", "close"):
        assert "There is no pull request 7" in refused(origin, command, "7")


# Closing and listing


def test_closing_twice_is_harmless_and_keeps_the_head(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main")
    head = origin.tip("refs/pull/1/head")
    for _ in range(2):
        assert json.loads(done(origin, "close", "1", "--json")) == {"number": 1}
    assert (meta(origin)["state"], origin.tip("refs/pull/1/head")) == ("closed", head)


def test_merged_pr_cannot_be_closed(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main")
    write_meta(origin, state="merged")
    assert "is merged" in refused(origin, "close", "1")


def test_json_list_has_every_pr_including_unreadable_ones(origin: Origin):
    for _ in range(2):
        done(origin, "open", "--head", "topic", "--base", "main")
    origin.set_ref("refs/pull/2/meta", origin.blob("no JSON"))
    first, second = json.loads(done(origin, "list", "--json"))["pullRequests"]
    assert first == {"number": 1, "head": origin.tip("topic"), **meta(origin)}
    assert (second["number"], second["state"]) == (2, "unreadable")
    assert "refs/pull/2/meta" in second["message"]


def test_list_for_people_has_plain_columns_and_cuts_titles(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main", "--title", "long " * 60)
    header, row = done(origin, "list").splitlines()
    assert header.split() == ["PR", "STATE", "INTO", "BRANCH", "HEAD", "AUTHOR", "TITLE"]
    assert row.split()[:4] == ["#1", "open", "main", "topic"]
    assert row.endswith("long long…")


def test_list_for_people_shows_titles_without_interpreting_markup(origin: Origin):
    done(origin, "open", "--head", "topic", "--base", "main", "--title", "[red]x\x1b[2J")
    shown = done(origin, "list")
    assert "[red]x" in shown
    assert "\x1b[2J" not in shown


def test_a_repository_without_pull_requests_has_an_empty_list(origin: Origin):
    assert json.loads(done(origin, "list", "--json")) == {"pullRequests": []}
    assert pr(origin, "list").output.startswith("No pull requests. ")


def test_opening_runs_no_program_that_the_repository_names(origin: Origin, tmp_path: Path):
    raw = origin.run("cat-file", "commit", "topic")
    head, _, message = raw.partition(b"\n\n")
    signature = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = b"\n".join((head, signature)) + b"\n\n" + message
    origin.set_ref("topic", origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed).decode().strip())
    program, marker = tmp_path / "program", tmp_path / "it-ran"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    for name in ("gpg.program", "diff.external", "core.pager", "core.fsmonitor"):
        origin.run("config", name, str(program))
    origin.run("config", "log.showSignature", "true")
    assert done(origin, "open", "--head", "topic", "--base", "main") == "1\n"
    assert meta(origin)["title"] == "Add b"
    assert not marker.exists()
