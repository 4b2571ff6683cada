"""Names of branches are those that git takes."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mergeyard.service.names import is_branch, is_owner, is_part_of_a_repository, is_target_branch

CHARACTERS = "aZ0é-./@{}~^:?*[]\\ \t\n\x7f\x80('\"$%😀"
WORDS = ["..", "@{", ".lock", "HEAD", "refs/heads/", "mergeyard"]
pieces = st.sampled_from([*CHARACTERS, *WORDS])


def git_takes(name: str, folder: Path) -> bool:
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
def test_a_branch_is_what_git_takes_for_one(tmp_path: Path, parts: list[str]):
    name = "".join(parts)
    assert is_branch(name) == git_takes(name, tmp_path)


def test_a_target_branch_has_at_most_255_bytes():
    assert is_target_branch("a" * 255)
    assert not is_target_branch("a" * 256)
    assert not is_target_branch("é" * 128)


@pytest.mark.parametrize("name", ["mergeyard/x", "-x", "", "HEAD", "a b"])
def test_our_own_branches_and_bad_names_are_no_targets(name: str):
    assert not is_target_branch(name)


@pytest.mark.parametrize("name", ["main", "release/1.0", "mergeyards", "@", "feature/#12", "日本"])
def test_ordinary_branches_are_targets(name: str):
    assert is_target_branch(name)


@pytest.mark.parametrize("name", ["acme", "a.b_c-d", ".github", "_", "0", "a" * 100])
def test_ordinary_owners_and_names_are_taken(name: str):
    assert is_part_of_a_repository(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "é", "a" * 101, "a\n", "a\0"])
def test_other_owners_and_names_are_not(name: str):
    assert not is_part_of_a_repository(name)


@pytest.mark.parametrize(
    "name", ["acme", ".github", "a.b_c-d", "acme/tools", "acme/tools/inner", "a" * 100, "/".join(["a" * 100] * 21)]
)
def test_an_owner_may_be_groups_within_groups(name: str):
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
def test_no_group_is_empty_hidden_or_leads_elsewhere(name: str):
    assert not is_owner(name)


@pytest.mark.parametrize("name", ["acme/app.git", "app.git/x", "/".join(["a"] * 22), "a/" + "b" * 101])
def test_no_owner_lies_within_a_repository_or_deeper_than_groups_may(name: str):
    assert not is_owner(name)
