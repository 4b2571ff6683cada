"""The messages and authors of the commits that the queue creates."""

import re
import subprocess
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mergeyard.domain.config import MAX_TEMPLATE_LENGTH
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.ports.forge import PullRequestText
from mergeyard.ports.git import Commit, Signature
from mergeyard.service import commit_messages, git_names
from mergeyard.service.commit_messages import (
    DEFAULT_TEMPLATE,
    TEMPLATE_FIELDS,
    Squash,
    find_template_problem,
    merge_message,
    rebase_message,
    sanitize_line,
    squash_message,
)

NUMBER, RUN = PullRequestNumber(12), RunId("6f1f2c9e-0000-8000-a000-000000000000")
HEAD = Sha("5" * 40)
OWN = f"Mergeyard-Pull-Request: 12\nMergeyard-Run: {RUN}\n"
TRAILERS = f"\n\n{OWN}"
HEAD_TRAILER = f"Mergeyard-Head: {HEAD}\n"
SQUASH_TRAILERS = TRAILERS + HEAD_TRAILER

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


def a_commit(message: str = "Greet", name: str = "Ada", email: str = "ada@example.org", at: int = 1) -> Commit:
    author = Signature(name, email, f"{at} +0000")
    committer = Signature("Mergeyard", "mergeyard@example.org", "9 +0000")
    return Commit(HEAD, (Sha("1" * 40),), Sha("2" * 40), author, committer, message)


def a_squash(title: str = "Greet", body: str = "", *commits: Commit, **values: Any) -> Squash:
    """By Ada, with one commit of hers unless others are given."""
    text = PullRequestText(title=title, body=body, author_name="Ada", author_email="ada@example.org")
    values = {"text": text, "commits": commits or (a_commit(),)} | values
    return Squash(number=NUMBER, head=HEAD, **values)


def squashed(title: str = "Greet", body: str = "", *commits: Commit, template: str = "", **values: Any) -> str:
    return squash_message(a_squash(title, body, *commits, **values), RUN, template)


# The messages of teams, byte for byte.


def test_a_merge_message_has_the_number_and_the_title():
    assert merge_message(NUMBER, "Greet", RUN) == "Merge pull request #12: Greet" + TRAILERS


def test_a_squash_message_without_a_body_is_its_title():
    assert squashed() == "Greet (#12)" + SQUASH_TRAILERS


def test_a_squash_message_has_title_body_co_authors_and_sign_offs():
    message = squashed(
        "Greet the user",
        "Users expect it.\r\n\r\n- in German\r\n- in French\r\n\r\nCloses #4\r\n",
        a_commit("Greet\n\nSigned-off-by: Ada <ada@example.org>"),
        a_commit("In German\n\nSigned-off-by: Bob <bob@example.org>", "Bob", "bob@example.org"),
        a_commit("In French\n\nCo-authored-by: Cleo <Cleo@example.org>\nCo-authored-by: Bob <BOB@example.org>"),
        a_commit("Fix\n\nSigned-off-by: Ada <ada@example.org>", "Cleo", "cleo@example.org"),
    )
    assert (
        message
        == f"""Greet the user (#12)

Users expect it.

- in German
- in French

Closes #4

Co-authored-by: Bob <bob@example.org>
Co-authored-by: Cleo <Cleo@example.org>
Signed-off-by: Ada <ada@example.org>
Signed-off-by: Bob <bob@example.org>
Mergeyard-Pull-Request: 12
Mergeyard-Run: {RUN}
Mergeyard-Head: {HEAD}
"""
    )
    assert parse_trailers_with_git(message) == message[message.index("Co-authored-by") :]


def test_messages_on_gitlab_contain_no_reference():
    assert merge_message(NUMBER, "Greet", RUN, "!") == "Merge request 12: Greet" + TRAILERS
    assert squashed(number_prefix="!") == "Greet (merge request 12)" + SQUASH_TRAILERS


def test_trailers_at_the_end_of_the_body_join_ours_and_stay_once():
    body = "Polite.\n\nReviewed-by: Eve <eve@example.org>\nSigned-off-by: Ada <ada@example.org>\n\nFixes: #4"
    signed = a_commit("Greet\n\nSigned-off-by: Ada <ada@example.org>\nCo-authored-by: Bob <b@example.org>")
    message = squashed("Greet", f"{body}\nCo-authored-by: Bobby <B@example.org>", signed)
    block = message.partition("Polite.\n\n")[2]
    assert block == (
        "Reviewed-by: Eve <eve@example.org>\nSigned-off-by: Ada <ada@example.org>\nFixes: #4\n"
        "Co-authored-by: Bobby <B@example.org>\n" + OWN + HEAD_TRAILER
    )
    assert parse_trailers_with_git(message) == block


@pytest.mark.parametrize("text", ["Note: it is polite.", "Closes #4", "See https://example.org/: it is polite."])
def test_a_last_paragraph_of_text_stays_apart_from_the_trailers(text: str):
    assert squashed("Greet", text) == f"Greet (#12)\n\n{text}" + SQUASH_TRAILERS


def test_a_subject_that_looks_like_a_trailer_stays_the_subject():
    message = squashed("re-greet: politely", template="{title}")
    assert message == "re-greet: politely" + SQUASH_TRAILERS
    assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER


@pytest.mark.parametrize(
    "rule", ["---", "--- a/file", "---\t", "# ------------------------ >8 ------------------------"]
)
def test_a_line_that_ends_a_message_for_git_does_not_hide_the_trailers(rule: str):
    message = squashed("Greet", f"Polite.\n\n{rule}\n\nMore.")
    assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER
    assert "More." in message


def test_comments_of_a_pull_request_template_are_removed():
    assert squashed("Greet", "<!-- Why? -->\nPolite<!---->.\n<!--\nHow?\n-->\n") == (
        "Greet (#12)\n\nPolite." + SQUASH_TRAILERS
    )
    assert "<!-- open" in squashed("Greet", "Polite <!-- open")


def test_a_rebased_commit_keeps_its_message():
    message = "Greet\n\nBecause it is polite:\n\n\n    \thello\n"
    assert rebase_message(NUMBER, message, RUN, HEAD) == message.rstrip() + SQUASH_TRAILERS


@pytest.mark.parametrize(
    "trailers",
    [
        "Signed-off-by: Ada <ada@example.org>\n",
        "Reviewed-by: Ada <ada@example.org>\nFixes: #4\n",
        "(cherry picked from commit 1234567)\nSigned-off-by: Ada <ada@example.org>\n",
    ],
)
@pytest.mark.parametrize("rule", ["", "---\n\n", f"# {'-' * 24} >8 {'-' * 24}\n\n"])
def test_git_finds_the_trailers_of_a_rebased_commit_and_ours(rule: str, trailers: str):
    message = rebase_message(NUMBER, f"Greet\n\nPolite.\n\n{rule}{trailers}", RUN, HEAD)
    found = [line for line in trailers.splitlines(keepends=True) if not line.startswith("(")]
    assert parse_trailers_with_git(message) == "".join(found) + OWN + HEAD_TRAILER
    assert rebase_message(NUMBER, message, RUN, HEAD) == message


@pytest.mark.parametrize("end", ["    code: indented", "Note: this is text", "Fix-it: now\nand text", "---"])
def test_git_finds_our_trailers_after_any_text_of_a_rebased_commit(end: str):
    for message in (end, f"Greet\n\n{end}", f"Greet\n{end}"):
        assert parse_trailers_with_git(rebase_message(NUMBER, message, RUN, HEAD)) == OWN + HEAD_TRAILER


SCISSORS = f"# {'-' * 24} >8 {'-' * 24}"


@pytest.mark.parametrize("before", ["", "\0", "\x1b ", "\n\t", "Mergeyard-Run: x\n", "\u2028"])
@pytest.mark.parametrize("first", [SCISSORS, "---", "--- a/file"])
def test_a_first_line_that_ends_a_message_for_git_does_not_hide_the_trailers(first: str, before: str):
    text = f"{before}{first}\n\nPolite."
    for message in (rebase_message(NUMBER, text, RUN, HEAD), squashed("Greet", text, template="{body}")):
        assert message == f"-{first}\n\nPolite." + SQUASH_TRAILERS
        assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER


@pytest.mark.parametrize("line", ["Re\u017folves: #4", "lin\u212a: x", "A-\u017f: x", "(CHERRY PICKED FROM COMMIT 1)"])
def test_a_line_that_git_does_not_accept_joins_no_trailers(line: str):
    text = f"Greet\n\nReviewed-by: Eve\n{line}"
    for message in (rebase_message(NUMBER, text, RUN, HEAD), squashed("Greet", text, template="{body}")):
        assert message == text + SQUASH_TRAILERS
        assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER


ENDS_OF_MESSAGES = st.sampled_from([SCISSORS, "# - >8 -", "---", "--- x", "---\t", "diff --git a/x b/x", "#", "# x"])
TRAILERS_FOR_GIT = st.sampled_from(
    ["A-b: c", "A-b:", "A-b : c", "-b: c", "cc: x", "FIXES: x", "Note: x", "A-b: \u3000x"]
)
ALMOST_TRAILERS = st.sampled_from([": x", "A_b: c", "Re\u017folves: x", "lin\u212a: x", "A-\u017f: x", "\u0130-b: c"])
SPECIAL_FOR_GIT = st.sampled_from(
    [
        "Signed-off-by: x",
        "(cherry picked from commit 1)",
        "(Cherry picked from commit 1)",
        "Conflicts:",
        "\tx",
        " x",
        "",
    ]
)
HOSTILE_LINES = ENDS_OF_MESSAGES | TRAILERS_FOR_GIT | ALMOST_TRAILERS | SPECIAL_FOR_GIT | st.just("Skip-Checks: true")
BREAKS = st.sampled_from(["", "\n", "\n\n", "\r\n", "\0", "\x1b", "\x0b", "\x85", "\u202e", "\u2029", " ", "\n \n"])
hostile_texts = st.lists(st.tuples(BREAKS, HOSTILE_LINES), min_size=1, max_size=5).map(
    lambda parts: "".join(before + line for before, line in parts)
)


@given(hostile_texts, st.sampled_from(["", "{body}", "{body}\n\n{co_authors}", "{sign_offs}\n{body}"]))
@example(f"\0{SCISSORS}\n\nA-b: c", "{body}")
@example("x\n\nA-b: c\n(Cherry picked from commit 1)", "")
@settings(max_examples=100, deadline=None)
def test_git_finds_our_trailers_between_hostile_first_and_last_lines(text: str, template: str):
    signed = a_commit("Greet\n\nSigned-off-by: Bob <b@x>", "Bob", "b@x")
    assert parse_trailers_with_git(rebase_message(NUMBER, text, RUN, HEAD)).endswith(OWN + HEAD_TRAILER)
    assert parse_trailers_with_git(squashed(text, text, signed, template=template)).endswith(OWN + HEAD_TRAILER)


@pytest.mark.parametrize("address", ["a\0b@x", "a\x7f@x", "a\u202eb@x", "a\ud800@x", "a b@x"])
def test_an_address_with_control_characters_is_not_used(address: str):
    text = PullRequestText(title="Greet", author_name="Eve", author_email=address)
    found = Squash(number=NUMBER, head=HEAD, text=text, commits=[a_commit()])
    assert found.author.email == a_commit().author.email


def test_a_commit_that_was_rebased_before_has_the_trailers_once():
    once = rebase_message(NUMBER, "Greet", RUN, HEAD)
    assert rebase_message(NUMBER, once, RUN, HEAD) == once


# Authors and co-authors.


def test_the_author_is_that_of_the_pull_request():
    first, last = a_commit("One", "Bob", "bob@example.org", 1), a_commit("Two", "Cleo", "cleo@example.org", 7)
    assert a_squash("Greet", "", first, last).author == Signature("Ada", "ada@example.org", "7 +0000")


@pytest.mark.parametrize(("name", "address"), [("", "ada@example.org"), ("Ada", ""), ("<>", "a@b"), ("Ada", "a b@c")])
def test_without_a_name_and_an_address_the_author_of_the_first_commit_is_taken(name: str, address: str):
    text = PullRequestText(title="Greet", author_name=name, author_email=address)
    first, last = a_commit("One", "Bob", "bob@example.org", 1), a_commit("Two", "Cleo", "cleo@example.org", 7)
    squash = a_squash("Greet", "", first, last, text=text)
    assert squash.author == Signature("Bob", "bob@example.org", "7 +0000")
    assert commit_messages.list_co_authors(squash) == ["Co-authored-by: Cleo <cleo@example.org>"]


def test_people_with_the_same_name_are_told_apart_by_their_addresses():
    commits = (
        a_commit("One", "ada", "ada@other.example"),
        a_commit("Two", "A. L.", "ADA@example.org"),
        a_commit("Three\n\nCo-authored-by: Ada <ada@third.example>", "Ada", "ADA@other.example"),
    )
    assert commit_messages.list_co_authors(a_squash("Greet", "", *commits)) == [
        "Co-authored-by: ada <ada@other.example>",
        "Co-authored-by: Ada <ada@third.example>",
    ]


def test_the_first_address_with_the_name_of_an_author_without_address_is_the_authors():
    """A Git host can hide the address of an account, which the commits of the pull request show."""
    text = PullRequestText(title="Greet", author_name="Ada", author_email="12+ada-l@users.noreply.github.com")
    commits = (
        a_commit("One", "Ada", "ada-l@users.noreply.github.com"),
        a_commit("Two", "ada", "ada@example.org"),
        a_commit("Three", "Ada", "ada@other.example"),
    )
    squash = a_squash("Greet", "Polite.\n\nCo-authored-by: Ada <ADA@example.org>", *commits, text=text)
    assert commit_messages.list_co_authors(squash) == ["Co-authored-by: Ada <ada@other.example>"]


def test_the_author_is_no_co_author_in_the_description_either():
    body = "Polite.\n\nCo-authored-by: A. L. <ADA@example.org>\nCo-authored-by: Bob <b@x.example>\nFixes: #4"
    block = squashed("Greet", body).partition("Polite.\n\n")[2]
    assert block == "Co-authored-by: Bob <b@x.example>\nFixes: #4\n" + OWN + HEAD_TRAILER


def test_no_reply_addresses_of_one_account_are_one_person():
    text = PullRequestText(title="Greet", author_name="ada-l", author_email="12+ada-l@users.noreply.github.com")
    commits = (
        a_commit("One", "Ada Lovelace", "ada-l@users.noreply.github.com"),
        a_commit("Two", "Bob", "7-bob@users.noreply.git.example"),
        a_commit("Three", "Bobby", "bob@users.noreply.git.example"),
        a_commit("Four", "Cleo", "9+ada-l@example.org"),
    )
    assert commit_messages.list_co_authors(a_squash("Greet", "", *commits, text=text)) == [
        "Co-authored-by: Bob <7-bob@users.noreply.git.example>",
        "Co-authored-by: Cleo <9+ada-l@example.org>",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Co-authored-by: Bob",
        "Co-authored-by: <bob@example.org>",
        "Co-authored-by: Bob <bob example>",
        "Co-authored-by: Bob <bob@example.org> and others",
        "Co-authored-by: Bob <bob@example.org",
        "by Co-authored-by: Bob <bob@example.org>",
    ],
)
def test_a_line_without_name_and_address_names_no_co_author(line: str):
    assert commit_messages.list_co_authors(a_squash("Greet", "", a_commit(f"Greet\n\n{line}"))) == []


def test_at_most_100_co_authors_and_sign_offs_are_named():
    commits = [
        a_commit(f"Greet\n\nSigned-off-by: A{at} <{at}@x.example>", f"A{at}", f"{at}@x.example") for at in range(150)
    ]
    message = squashed("Greet", "x" * 100_000, *commits)
    assert (message.count("Co-authored-by:"), message.count("Signed-off-by:")) == (100, 100)
    assert git_names.has_trailers_of(message, NUMBER, RUN)


@pytest.mark.parametrize(("fields", "uses"), [("{body}\n\n", 4), ("{body}\n\n", 40), ("{body}\n\n{commits}\n\n", 20)])
def test_a_long_text_leaves_room_for_the_trailers(fields: str, uses: int):
    signed = a_commit("x" * 200 + "\n\nSigned-off-by: Ada <ada@example.org>")
    commits = (signed, *(a_commit("x" * 200, "Bob", "bob@example.org") for _ in range(249)))
    template = f"{{title}}\n\n{fields * uses}{{co_authors}}\n{{sign_offs}}"
    message = squashed("Greet", "Polite.\n" * 8192, *commits, template=template)
    people = "Co-authored-by: Bob <bob@example.org>\nSigned-off-by: Ada <ada@example.org>\n"
    assert parse_trailers_with_git(message) == people + OWN + HEAD_TRAILER
    assert len(message) < commit_messages.MAX_RENDERED_CHARS + 300


def test_the_text_of_a_commit_after_a_sign_off_does_not_hide_it():
    text = "Greet \u0130.\n\nSigned-off-by: Ada <ada@example.org>\n\n" + "Polite.\n" * 100_000
    people = a_commit(text), a_commit("signed-off-by:Bob\nSigned-off-by:  \nNo Signed-off-by: Cleo")
    assert commit_messages.list_sign_offs(people) == ["Signed-off-by: Ada <ada@example.org>", "Signed-off-by: Bob"]


# Templates.


FULL = """{title}

{body}

{{{number}}} by {author}: {branch} into {base}
{url}

{commits}

{sign_offs}"""


def test_a_template_has_all_fields():
    commits = a_commit("One\n\nDetails\n\nSigned-off-by: Bob <b@x.example>"), a_commit("Two", "Bob", "b@x.example")
    message = squashed(
        "Greet {body}",
        "Polite {title}.",
        *commits,
        template=FULL,
        branch="greet",
        base="main",
        url="https://git.example.com/12",
    )
    assert message == (
        "Greet {body}\n\nPolite {title}.\n\n{12} by Ada: greet into main\nhttps://git.example.com/12\n\n"
        "- One\n- Two\n\nSigned-off-by: Bob <b@x.example>\n" + OWN + HEAD_TRAILER
    )


def test_what_has_no_value_leaves_no_empty_lines():
    assert squashed(template="{title}\nby {author}\n{url}\nend\n\n{body}\n\n{sign_offs}\n") == (
        "Greet\n\nby Ada\nend" + SQUASH_TRAILERS
    )


def test_the_first_template_that_can_be_used_counts():
    squash = a_squash()
    assert squash_message(squash, RUN, "A {title}", "B {title}").startswith("A Greet\n")
    assert squash_message(squash, RUN, "", "B {title}").startswith("B Greet\n")
    assert squash_message(squash, RUN, "{titel}", "B {title}").startswith("B Greet\n")
    assert squash_message(squash, RUN, " ", "") == squash_message(squash, RUN, DEFAULT_TEMPLATE)


@pytest.mark.parametrize(
    ("template", "title", "body", "subject"),
    [
        ("{body}", "Greet", "", "Greet"),
        ("{body}", "Greet", "\n\nPolite.\nMore.", "Polite."),
        ("\n\n{title}", "Greet", "", "Greet"),
        ("{body}", "", "", "(no title)"),
        ("{body}", "Mergeyard-Run: x", "", "(no title)"),
        ("{title} {title}", "x" * 300, "", "x" * 200 + " " + "x" * 98 + "…"),
    ],
)
def test_the_subject_is_never_empty_and_bounded(template: str, title: str, body: str, subject: str):
    message = squashed(title, body, template=template)
    assert message.partition("\n")[0] == subject
    assert message.partition("\n")[2].startswith("\n")


KNOWN = "title, number, reference, body, author, branch, base, url, co_authors, sign_offs, commits"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{titel}", f"unknown field {{titel}}; known are {KNOWN}"),
        ("{Title}", f"unknown field {{Title}}; known are {KNOWN}"),
        ("{}", f"unknown field {{}}; known are {KNOWN}"),
        ("{title\u202e}", "expected text without control characters"),
        ("{title}\n{", "line 2 has a single {; write {{ for the character"),
        ("{title} }", "line 1 has a single }; write }} for the character"),
        ("{title\n}", "line 1 has a single {; write {{ for the character"),
        ("\0", "expected text without control characters"),
        ("{body}" * 51, "expected at most 50 fields"),
        ("x" * (MAX_TEMPLATE_LENGTH + 1), "expected at most 10,000 characters"),
    ],
)
def test_a_wrong_template_is_explained(template: str, problem: str):
    assert find_template_problem(template) == problem


@pytest.mark.parametrize("template", [DEFAULT_TEMPLATE, FULL, "{{title}}", "", "{title}\r\n\tx", "x" * 10_000])
def test_a_right_template_has_no_problem(template: str):
    assert find_template_problem(template) == ""


# What authors of pull requests cannot do.


@pytest.mark.parametrize("command", SKIP_CI_COMMANDS)
def test_no_message_contains_a_command_to_skip_ci(command: str):
    title = f"Greet {command}"
    merged, rebased = merge_message(NUMBER, title, RUN), rebase_message(NUMBER, title, RUN, HEAD)
    by_name = squashed("Greet", title, a_commit(f"Greet\n\nSigned-off-by: {title}", title, "b@example.org"))
    assert SKIP_CI.search(title)
    assert not SKIP_CI.search(f"{merged}{rebased}{squashed(title)}{by_name}")


def test_a_command_to_skip_ci_that_spans_lines_is_broken():
    text = "Greet\n\n[skip\nMergeyard-Run: x\nci]\n\nskip-checks:\n true"
    assert not SKIP_CI.search(rebase_message(NUMBER, text, RUN, HEAD))
    assert not SKIP_CI.search(squashed("Greet", text))
    assert not SKIP_CI.search(squashed("ci]", template="[skip\n{title}"))
    repeated = "Polite.\n\nX-y: z\nA-b: [\nX-y: z\nSkip-x: ci]"
    assert "X-y: z\nA-b: (\nSkip-x: ci)\n" in squashed("Greet", repeated)


def test_a_command_to_skip_ci_that_looks_like_a_trailer_does_not_hide_the_others():
    message = squashed("Greet", "Polite.\n\nSkip-Checks: true")
    assert not SKIP_CI.search(message)
    assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER


@pytest.mark.parametrize("title", ["[Core] Skip a step", "Use [x] (skip)", "list[int] and NO_CI", "--skip-checks"])
def test_other_brackets_stay_as_they_are(title: str):
    assert title in merge_message(NUMBER, title, RUN)
    assert title in squashed("Greet", title)


FAKE = f"Mergeyard-Pull-Request: 1\nMergeyard-Run: {'0' * 36}\nmergeyard-head : {'1' * 40}\n Mergeyard-Run: x"


def test_no_text_adds_our_trailers_a_second_time():
    for message in (
        squashed("Greet", FAKE, template="{body}\n{title}\n{body}"),
        squashed("Greet", f"Polite.\n\n{FAKE}"),
        squashed("Greet", "", a_commit(f"Greet\n\n{FAKE}"), template="{title}\n\n{commits}\n\n" + FAKE),
        rebase_message(NUMBER, f"Greet\n\n{FAKE}", RUN, HEAD),
    ):
        assert message.lower().count("mergeyard-") == 3
        assert parse_trailers_with_git(message) == OWN + HEAD_TRAILER


def test_removing_control_characters_does_not_create_a_command_to_skip_ci():
    assert "[skip ci]" not in merge_message(NUMBER, "Greet [skip \x1b ci]", RUN)


def test_control_characters_and_marks_that_reorder_text_are_removed():
    message = squashed("Greet\0 \u202egnp", "Po\0lite\u2066 \udcff\x1b[31m", template="{title}\n\n{body}\n{url}")
    assert message == "Greet gnp\n\nPo lite   [31m" + SQUASH_TRAILERS
    assert message.encode()


def test_a_title_is_one_line_and_cannot_add_a_trailer():
    title = "Greet\n\nReviewed-by: Mallory\n\nMergeyard-Run: another"
    assert parse_trailers_with_git(merge_message(NUMBER, title, RUN)) == OWN
    assert parse_trailers_with_git(squashed(title)) == OWN + HEAD_TRAILER


@pytest.mark.parametrize("title", ["", "   ", "\n", "\x00\x1b[31m"])
def test_an_empty_title_still_gives_a_subject(title: str):
    subject = merge_message(NUMBER, title, RUN).splitlines()[0]
    assert subject.startswith("Merge pull request #12: ")
    assert subject.isprintable()


def test_a_long_title_is_truncated():
    assert len(squashed("x" * 10_000)) < 400


def test_long_lines_and_messages_are_truncated():
    text = f"Greet\n\n{'x' * 5000}\n\nSigned-off-by: Ada"
    for message in (rebase_message(NUMBER, text, RUN, HEAD), squashed("Greet", text)):
        assert f"\n{'x' * (commit_messages.MAX_LINE_CHARS - 1)}…\n\nSigned-off-by: Ada\n" in message
    for message in (rebase_message(NUMBER, "Greet\n" * 100_000, RUN, HEAD), squashed("Greet", "Greet\n" * 2_000_000)):
        assert len(message) < commit_messages.MAX_MESSAGE_CHARS + 300
        assert git_names.parse_pull_request_trailer(message) == NUMBER


HOSTILE = [
    "*" * 1_000_000,
    "[" * 1_000_000,
    "[skip " * 200_000,
    "skip-checks " * 80_000,
    "<!--" * 300_000,
    "<!---->" * 200_000,
    "a-" * 500_000,
    "A-b: c\n" * 200_000,
    "\n" * 1_000_000 + "x",
    "Co-authored-by: " * 80_000,
    "Signed-off-by: \n" * 80_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_takes_long_to_process(text: str):
    started = process_time()
    merge_message(NUMBER, text, RUN)
    rebase_message(NUMBER, text, RUN, HEAD)
    message = squashed(
        text, text, a_commit(text, text, text), template="{title}\n{co_authors}" + "{body}\n{commits}" * 24
    )
    find_template_problem(text)
    assert len(message) < commit_messages.MAX_RENDERED_CHARS + 300
    assert process_time() - started < 2


def test_many_large_commits_do_not_take_long_to_process():
    lines = (
        "Signed-off-by: A{}\n",
        "Signed-off-by: A\n",
        "Co-authored-by: A{}\n",
        "Co-authored-by: A <{}@x>\n",
        "Co-authored-by: <{}@x>\n",
    )
    for line in lines:
        commits = [
            a_commit("\n" * 50_000 + "".join(line.format(500 * at + n) for n in range(500))) for at in range(250)
        ]
        started = process_time()
        squashed("Greet", "", *commits, template="{title}\n{commits}\n\n{co_authors}\n{sign_offs}")
        assert process_time() - started < 1


PIECES = st.sampled_from(
    [*"[](){}<>-:#*\n \t", "\r\n", "\0", "\u202e", "skip", "ci", "***", "NO_CI", "--skip-ci", "skip-checks:", "true"]
    + [
        "Mergeyard-Run: x",
        "Mergeyard-Head:",
        FAKE,
        "Signed-off-by: Ada",
        "Co-authored-by: B <b@x>",
        "---",
        "<!--",
        "-->",
    ]
    + [f"{{{field}}}" for field in TEMPLATE_FIELDS]
)
texts = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


@given(texts, texts, texts, texts)
@example("", "A-b: [skip", "Mergeyard-Run: x\nA-b: ci]", "{body}\n{commits}\n{title}")
@settings(max_examples=150, deadline=None)
def test_whatever_authors_write_the_message_obeys_the_rules(title: str, body: str, commit: str, template: str):
    commits = a_commit(commit), a_commit(f"Greet\n\n{body}", title, "b@example.org")
    message = squashed(title, body, *commits, template=template)
    assert not SKIP_CI.search(message)
    assert message.endswith(OWN + HEAD_TRAILER)
    assert len([line for line in message.splitlines() if git_names.OWN_TRAILER_LINE.match(line)]) == 3
    subject, blank, *_ = message.split("\n")
    assert subject.strip()
    assert not blank
    assert commit_messages._CONTROL.sub("", message.replace("\n", "")) == message.replace("\n", "")  # pyright: ignore[reportPrivateUsage]


@given(texts, texts)
@example("fix: x", "A-b: c")
@settings(max_examples=40, deadline=None)
def test_git_finds_our_trailers_whatever_the_body(title: str, body: str):
    assert parse_trailers_with_git(squashed(title, body)).endswith(OWN + HEAD_TRAILER)


@given(st.text())
def test_the_pull_request_number_is_found_in_the_message_whatever_the_title(title: str):
    assert git_names.parse_pull_request_trailer(merge_message(NUMBER, title, RUN)) == NUMBER
    assert git_names.parse_pull_request_trailer(rebase_message(NUMBER, title, RUN, HEAD)) == NUMBER


@given(st.text())
def test_sanitizing_twice_changes_nothing_more(text: str):
    assert sanitize_line(sanitize_line(text)) == sanitize_line(text)


def test_mentions_in_a_description_notify_no_user_again():
    message = squashed("Bump @types/node", "Thanks @ada, @acme/reviewers!\nSee `@grace` and mail ada@example.org.")
    assert "Thanks `@ada`, `@acme/reviewers`!" in message
    assert "See `@grace` and mail ada@example.org." in message
    assert message.startswith("Bump @types/node")
