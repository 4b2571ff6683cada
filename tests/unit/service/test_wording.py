"""What we write into commits says what people meant, and orders no machine about."""

import re
import subprocess
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.service import wording

NUMBER, RUN = PrNumber(12), RunId("6f1f2c9e-0000-8000-a000-000000000000")
TRAILERS = f"\n\nMergeyard-Pull-Request: 12\nMergeyard-Run: {RUN}\n"
HEAD = Sha("5" * 40)
OF_HEAD = f"Mergeyard-Head: {HEAD}\n"

OBEYED = re.compile(
    r"\[\s*(?:skip[\W_]*(?:ci|actions|travis|travis.?ci|circleci|appveyor|azurepipelines|azpipelines|azp|run)"
    r"|(?:ci|actions|travis|azurepipelines|azp)[\W_]*skip|no[\W_]*ci)\s*\]"
    r"|\*{3}no_ci\*{3}|skip-checks\s*:\s*true|--(?:skip-ci|ci-skip)",
    re.IGNORECASE,
)
"""What GitHub, GitLab, Gitea, Azure, Travis, CircleCI, AppVeyor, Drone, Woodpecker, Jenkins, Codeship, Bitbucket,
Buildkite and JFrog take for a command to skip CI."""

ORDERS = [
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


def trailers_that_git_sees(message: str) -> str:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=message, capture_output=True, text=True, check=True).stdout


def test_a_merge_names_the_pull_request_and_its_title():
    assert wording.merge_message(NUMBER, "Greet", RUN) == "Merge pull request #12: Greet" + TRAILERS


def test_a_squash_bears_the_title():
    assert wording.squash_message(NUMBER, "Greet", RUN, HEAD) == "Greet (#12)" + TRAILERS + OF_HEAD


def test_a_rebased_commit_keeps_its_message():
    message = "Greet\n\nBecause it is polite:\n\n    \thello\n\nSigned-off-by: Ada <ada@example.org>\n"
    assert wording.rebase_message(NUMBER, message, RUN, HEAD) == message.rstrip() + TRAILERS + OF_HEAD


def test_a_commit_that_was_rebased_before_has_the_trailers_once():
    once = wording.rebase_message(NUMBER, "Greet", RUN, HEAD)
    assert wording.rebase_message(NUMBER, once, RUN, HEAD) == once


@pytest.mark.parametrize("order", ORDERS)
def test_no_message_tells_ci_to_rest(order: str):
    title = f"Greet {order}"
    merged = wording.merge_message(NUMBER, title, RUN)
    squashed, rebased = (
        wording.squash_message(NUMBER, title, RUN, HEAD),
        wording.rebase_message(NUMBER, title, RUN, HEAD),
    )
    assert OBEYED.search(title)
    assert not OBEYED.search(f"{merged}{squashed}{rebased}")


def test_a_command_to_skip_ci_that_spans_lines_is_broken():
    message = wording.rebase_message(NUMBER, "Greet\n\n[skip\nMergeyard-Run: x\nci]\n\nskip-checks:\n true", RUN, HEAD)
    assert not OBEYED.search(message)


@pytest.mark.parametrize("title", ["[Core] Skip a step", "Use [x] (skip)", "list[int] and NO_CI", "--skip-checks"])
def test_other_brackets_stay_as_they_are(title: str):
    assert title in wording.merge_message(NUMBER, title, RUN)


def test_a_commit_that_does_not_hold_its_head_names_it():
    assert wording.head_of(wording.squash_message(NUMBER, "Greet", RUN, HEAD)) == HEAD
    assert wording.head_of(wording.merge_message(NUMBER, "Greet", RUN)) is None


def test_no_title_tells_ci_to_rest_once_its_spaces_are_gone():
    assert "[skip ci]" not in wording.merge_message(NUMBER, "Greet [skip \x1b ci]", RUN)


def test_a_title_is_one_line_and_can_add_no_trailer():
    message = wording.merge_message(NUMBER, "Greet\n\nReviewed-by: nobody\n\nMergeyard-Run: another", RUN)
    assert trailers_that_git_sees(message) == TRAILERS.lstrip()


@pytest.mark.parametrize("title", ["", "   ", "\n", "\x00\x1b[31m"])
def test_a_title_of_nothing_still_makes_a_subject(title: str):
    subject = wording.merge_message(NUMBER, title, RUN).splitlines()[0]
    assert subject.startswith("Merge pull request #12: ")
    assert subject.isprintable()


def test_a_long_title_is_cut():
    assert len(wording.squash_message(NUMBER, "x" * 10_000, RUN, HEAD)) < 400


def test_a_long_line_and_a_long_message_of_a_rebased_commit_are_cut():
    line = wording.rebase_message(NUMBER, f"Greet\n\n{'x' * 5000}\n\nSigned-off-by: Ada", RUN, HEAD)
    assert f"\n{'x' * (wording.MAX_LINE_CHARS - 1)}…\n\nSigned-off-by: Ada\n" in line
    whole = wording.rebase_message(NUMBER, "Greet\n" * 100_000, RUN, HEAD)
    assert len(whole) < wording.MAX_MESSAGE_CHARS + 300
    assert wording.pull_request_of(whole) == NUMBER


@pytest.mark.parametrize("text", ["*" * 1_000_000, "[" * 1_000_000, "[skip " * 200_000, "skip-checks " * 80_000])
def test_no_text_takes_long_to_write_into_a_commit(text: str):
    begun = process_time()
    wording.merge_message(NUMBER, text, RUN)
    wording.rebase_message(NUMBER, text, RUN, HEAD)
    assert process_time() - begun < 2


@given(st.text())
def test_whatever_the_title_the_pull_request_is_found_again(title: str):
    assert wording.pull_request_of(wording.merge_message(NUMBER, title, RUN)) == NUMBER
    assert wording.pull_request_of(wording.rebase_message(NUMBER, title, RUN, HEAD)) == NUMBER


def test_a_foreign_message_belongs_to_no_pull_request():
    assert wording.pull_request_of("Merge branch 'main'") is None


@given(st.text())
def test_what_is_harmless_stays_so(text: str):
    assert wording.harmless(wording.harmless(text)) == wording.harmless(text)
