"""Names of branches and repositories, and commit messages."""

import re
import subprocess
from pathlib import Path
from time import process_time

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
TRAILERS = f"\n\nMergeyard-Pull-Request: 12\nMergeyard-Run: {RUN}\n"
HEAD = Sha("5" * 40)
HEAD_TRAILER = f"Mergeyard-Head: {HEAD}\n"

SKIP_CI = re.compile(
    r"\[\s*(?:skip[\W_]*(?:ci|actions|travis|travis.?ci|circleci|appveyor|azurepipelines|azpipelines|azp|run)"
    r"|(?:ci|actions|travis|azurepipelines|azp)[\W_]*skip|no[\W_]*ci)\s*\]"
    r"|\*{3}no_ci\*{3}|skip-checks\s*:\s*true|--(?:skip-ci|ci-skip)",
    re.IGNORECASE,
)
"""Text that GitHub, GitLab, Gitea, Azure, Travis, CircleCI, AppVeyor, Drone, Woodpecker, Jenkins, Codeship, Bitbucket,
Buildkite and JFrog treat as a command to skip CI."""

SKIP_CI_COMMANDS = [
    "[skip ci]",
    "[ci skip]",
    "[no ci]",
    "[no-ci]",
    "[skip actions]",
    "[actions skip]",
    "[SKIP CI]",
    "[ skip ci ]",
    "[skip-ci]",
    "[ci-skip]",
    "[skip_ci]",
    "[ci_skip]",
    "[skipci]",
    "[skip   ci]",
    "[skip\tci]",
    "[ci/skip]",
    "[\u017fKIP ci]",
    "[[skip ci]]",
    "[x[ci skip]]",
    "[skip travis]",
    "[skip travis ci]",
    "[skip azurepipelines]",
    "[azurepipelines skip]",
    "[azp skip]",
    "[skipRun]",
    "***NO_CI***",
    "******no_ci******",
    "skip-checks: true",
    "skip-checks:true",
    "Skip-Checks :  true",
    "--skip-ci",
    "----ci-skip",
]


def parse_trailers_with_git(message: str) -> str:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=message, capture_output=True, text=True, check=True).stdout


def test_a_merge_message_has_the_number_and_the_title():
    assert git_names.merge_message(NUMBER, "Greet", RUN) == "Merge pull request #12: Greet" + TRAILERS


def test_a_squash_message_has_the_title():
    assert git_names.squash_message(NUMBER, "Greet", RUN, HEAD) == "Greet (#12)" + TRAILERS + HEAD_TRAILER


def test_a_rebased_commit_keeps_its_message():
    message = "Greet\n\nBecause it is polite:\n\n    \thello\n\nSigned-off-by: Ada <ada@example.org>\n"
    assert git_names.rebase_message(NUMBER, message, RUN, HEAD) == message.rstrip() + TRAILERS + HEAD_TRAILER


def test_a_commit_that_was_rebased_before_has_the_trailers_once():
    once = git_names.rebase_message(NUMBER, "Greet", RUN, HEAD)
    assert git_names.rebase_message(NUMBER, once, RUN, HEAD) == once


@pytest.mark.parametrize("command", SKIP_CI_COMMANDS)
def test_no_message_contains_a_command_to_skip_ci(command: str):
    title = f"Greet {command}"
    merged = git_names.merge_message(NUMBER, title, RUN)
    squashed, rebased = (
        git_names.squash_message(NUMBER, title, RUN, HEAD),
        git_names.rebase_message(NUMBER, title, RUN, HEAD),
    )
    assert SKIP_CI.search(title)
    assert not SKIP_CI.search(f"{merged}{squashed}{rebased}")


def test_a_command_to_skip_ci_that_spans_lines_is_broken():
    message = git_names.rebase_message(
        NUMBER, "Greet\n\n[skip\nMergeyard-Run: x\nci]\n\nskip-checks:\n true", RUN, HEAD
    )
    assert not SKIP_CI.search(message)


@pytest.mark.parametrize("title", ["[Core] Skip a step", "Use [x] (skip)", "list[int] and NO_CI", "--skip-checks"])
def test_other_brackets_stay_as_they_are(title: str):
    assert title in git_names.merge_message(NUMBER, title, RUN)


def test_a_squash_commit_names_its_head():
    assert git_names.parse_head_trailer(git_names.squash_message(NUMBER, "Greet", RUN, HEAD)) == HEAD
    assert git_names.parse_head_trailer(git_names.merge_message(NUMBER, "Greet", RUN)) is None


def test_removing_control_characters_does_not_create_a_command_to_skip_ci():
    assert "[skip ci]" not in git_names.merge_message(NUMBER, "Greet [skip \x1b ci]", RUN)


def test_a_title_is_one_line_and_cannot_add_a_trailer():
    message = git_names.merge_message(NUMBER, "Greet\n\nReviewed-by: Mallory\n\nMergeyard-Run: another", RUN)
    assert parse_trailers_with_git(message) == TRAILERS.lstrip()


@pytest.mark.parametrize("title", ["", "   ", "\n", "\x00\x1b[31m"])
def test_an_empty_title_still_gives_a_subject(title: str):
    subject = git_names.merge_message(NUMBER, title, RUN).splitlines()[0]
    assert subject.startswith("Merge pull request #12: ")
    assert subject.isprintable()


def test_a_long_title_is_truncated():
    assert len(git_names.squash_message(NUMBER, "x" * 10_000, RUN, HEAD)) < 400


def test_long_lines_and_messages_of_rebased_commits_are_truncated():
    line = git_names.rebase_message(NUMBER, f"Greet\n\n{'x' * 5000}\n\nSigned-off-by: Ada", RUN, HEAD)
    assert f"\n{'x' * (git_names.MAX_LINE_CHARS - 1)}…\n\nSigned-off-by: Ada\n" in line
    whole = git_names.rebase_message(NUMBER, "Greet\n" * 100_000, RUN, HEAD)
    assert len(whole) < git_names.MAX_MESSAGE_CHARS + 300
    assert git_names.parse_pull_request_trailer(whole) == NUMBER


@pytest.mark.parametrize("text", ["*" * 1_000_000, "[" * 1_000_000, "[skip " * 200_000, "skip-checks " * 80_000])
def test_no_text_takes_long_to_process(text: str):
    started = process_time()
    git_names.merge_message(NUMBER, text, RUN)
    git_names.rebase_message(NUMBER, text, RUN, HEAD)
    assert process_time() - started < 2


@given(st.text())
def test_the_pull_request_number_is_found_in_the_message_whatever_the_title(title: str):
    assert git_names.parse_pull_request_trailer(git_names.merge_message(NUMBER, title, RUN)) == NUMBER
    assert git_names.parse_pull_request_trailer(git_names.rebase_message(NUMBER, title, RUN, HEAD)) == NUMBER


def test_a_message_without_trailers_has_no_pull_request():
    assert git_names.parse_pull_request_trailer("Merge branch 'main'") is None


@given(st.text())
def test_sanitizing_twice_changes_nothing_more(text: str):
    assert git_names.sanitize_line(git_names.sanitize_line(text)) == git_names.sanitize_line(text)
