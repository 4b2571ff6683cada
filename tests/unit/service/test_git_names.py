"""Names of branches and repositories, and the trailers of our commits."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.service import git_names
from mergeyard.service.git_names import is_branch, is_owner, is_repository_name, is_target_branch

CHARACTERS = "aZ0é-./@{}~^:?*[]\\ \t\n\x7f\x80('\"$%😀"
TOKENS = ["..", "@{", ".lock", "HEAD", "refs/heads/", "mergeyard"]
pieces = st.sampled_from([*CHARACTERS, *TOKENS])


def is_accepted_by_git(name: str, folder: Path) -> bool:
    command = ["git", "check-ref-format", "--branch", name]
    environment = {"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0


@example(["HEAD"])
@example(["@"])
@example(["@{-1}"])
@example(["-", "x"])
@example(["a.lock"])
@example(["a", ".lock", "/", "b"])
@given(st.lists(pieces, min_size=1, max_size=5))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_branch_name_is_valid_if_git_accepts_it(tmp_path: Path, parts: list[str]):
    name = "".join(parts)
    assert is_branch(name) == is_accepted_by_git(name, tmp_path)


def test_a_target_branch_has_at_most_255_bytes():
    assert is_target_branch("a" * 255)
    assert not is_target_branch("a" * 256)
    assert not is_target_branch("é" * 128)


@pytest.mark.parametrize("name", ["mergeyard/x", "-x", "", "HEAD", "a b"])
def test_test_branches_and_invalid_names_are_not_target_branches(name: str):
    assert not is_target_branch(name)


@pytest.mark.parametrize("name", ["main", "release/1.0", "mergeyards", "@", "feature/#12", "日本"])
def test_ordinary_branches_are_target_branches(name: str):
    assert is_target_branch(name)


@pytest.mark.parametrize("name", ["acme", "a.b_c-d", ".github", "_", "0", "a" * 100])
def test_ordinary_repository_names_are_valid(name: str):
    assert is_repository_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "é", "a" * 101, "a\n", "a\0"])
def test_other_repository_names_are_invalid(name: str):
    assert not is_repository_name(name)


@pytest.mark.parametrize(
    "name", ["acme", ".github", "a.b_c-d", "acme/tools", "acme/tools/inner", "a" * 100, "/".join(["a" * 100] * 21)]
)
def test_an_owner_can_be_nested_groups(name: str):
    assert is_owner(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "..",
        "a/..",
        "../a",
        "a/./b",
        "a/.b",
        ".a/b",
        "a/-b",
        "a b",
        "a/b\n",
        "a/b\0",
        "a\\b",
    ],
)
def test_a_group_cannot_be_empty_hidden_or_relative(name: str):
    assert not is_owner(name)


@pytest.mark.parametrize("name", ["acme/app.git", "app.git/x", "/".join(["a"] * 22), "a/" + "b" * 101])
def test_an_owner_cannot_be_inside_a_repository_or_nested_too_deep(name: str):
    assert not is_owner(name)


NUMBER, RUN = PullRequestNumber(12), RunId("6f1f2c9e-0000-8000-a000-000000000000")
HEAD = Sha("5" * 40)


@pytest.mark.parametrize("head", [HEAD, Sha("5" * 64)])
def test_the_trailers_of_a_commit_are_found_in_its_message(head: Sha):
    squashed = f"Greet\n\n{git_names.format_trailers(NUMBER, RUN, head)}"
    assert git_names.parse_pull_request_trailer(squashed) == NUMBER
    assert git_names.parse_run_trailer(squashed) == RUN
    assert git_names.parse_head_trailer(squashed) == head
    assert git_names.has_trailers_of(squashed, NUMBER, RUN)
    assert not git_names.has_trailers_of(squashed, PullRequestNumber(1), RUN)


def test_a_merge_commit_names_no_head_because_it_contains_it():
    assert git_names.parse_head_trailer(git_names.format_trailers(NUMBER, RUN)) is None


def test_a_message_without_trailers_has_no_pull_request():
    assert git_names.parse_pull_request_trailer("Merge branch 'main'") is None
