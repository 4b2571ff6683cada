"""Texts of comments and statuses at a forge, and the escaping of text from others."""

import re

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import MovedHead, Requirement, Status, StatusState
from mergeyard.domain.states import REASON_MESSAGES, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.service.comments import texts
from mergeyard.service.comments.commands import Command, Verb, parse_command
from mergeyard.service.views import ReasonView, SubmissionView, view_submission
from tests.support.builders import QueueWorld, a_world

PAGE = "https://queue.example.com/pulls/github.com/acme/app/1"


def comment_on(world: QueueWorld, number: int, *failed: Status, batch: tuple[int, ...] = (), page_url: str = "") -> str:
    view = view_submission(world.queue, world.submission(number), world.now)
    return texts.render_comment(
        view, batch=tuple(map(PullRequestNumber, batch)), failed_checks=failed, page_url=page_url, prefix="/merge"
    )


def comment_in(state: PullRequestState, reason: Reason, *, fork: bool = False, prefix: str = "/merge") -> str:
    """The comment on a pull request that is in this state for this reason."""
    world = a_world(prs=1)
    view = view_submission(world.queue, world.submission(1), world.now)
    pull_request = replace(view.submission.pull_request, fork=fork)
    submission = replace(view.submission, state=state, reason=reason, pull_request=pull_request)
    shown = replace(view, submission=submission, reason=ReasonView(reason, REASON_MESSAGES[reason]), position=None)
    return texts.render_comment(shown, prefix=prefix)


def failed_check(context: str, url: str = "") -> Status:
    return Status(context=context, state=StatusState.FAILURE, at=Instant(0), url=url)


def test_a_comment_shows_state_position_and_reason():
    text = comment_on(a_world(prs=1), 1)
    assert text == (
        "<!-- mergeyard -->\n"
        "### 🧪 Testing for `main` · position 1\n"
        "\n"
        "Waiting for required checks: unit.\n"
        "\n"
        "Reason: `waiting_for_checks`\n"
        "\n"
        "Commands: `/merge cancel` removes this pull request from the queue, `/merge restart` tests it again.\n"
    )


def test_a_comment_links_to_the_page_of_the_pull_request():
    text = comment_on(a_world(prs=1), 1, page_url=PAGE)
    assert f"\n\n[Details and current position]({PAGE}) · Reason: `waiting_for_checks`\n\n" in text


def test_a_comment_shows_the_estimate_only_when_it_is_written():
    """So that a changed estimate alone does not change the text that the publisher compares."""
    view = view_submission((world := a_world(prs=1)).queue, world.submission(1), world.now)
    estimated = replace(view, estimated_merge_at=Instant(1_800_000_000_000))
    assert texts.render_comment(estimated) == texts.render_comment(view)
    assert ("- Expected to merge at about 2027-01-15 08:00 UTC, as of 07:50 UTC\n") in texts.render_comment(
        estimated, written_at=Instant(1_799_999_400_000)
    )


def test_a_comment_has_the_estimate_that_the_page_has():
    world = a_world(prs=2)
    world.queue = replace(world.queue, durations=(600_000,))
    world.fails(2)
    for number, is_expected in ((1, True), (2, False)):
        view = view_submission(world.queue, world.submission(number), world.now)
        assert (view.estimated_merge_at is not None) is is_expected
        assert ("Expected to merge" in texts.render_comment(view, written_at=world.now)) is is_expected


@pytest.mark.parametrize(
    ("state", "reason", "headline"),
    [
        (PullRequestState.PENDING, Reason.WAITING_FOR_SLOT, "### 🕒 Queued for `main`\n"),
        (PullRequestState.PENDING_FAILURE, Reason.CAUSE_UNKNOWN, "### 🔎 Failing, cause not confirmed\n"),
        (PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, "### 🎉 Merged into `main`\n"),
    ],
)
def test_the_headline_names_the_branch_where_that_makes_a_sentence(
    state: PullRequestState, reason: Reason, headline: str
):
    assert headline in comment_in(state, reason)


@pytest.mark.parametrize(
    ("state", "reason", "fork", "commands"),
    [
        (
            PullRequestState.PENDING,
            Reason.WAITING_FOR_SLOT,
            False,
            "Commands: `/merge cancel` removes this pull request from the queue, `/merge --priority high` raises",
        ),
        (PullRequestState.FAILED, Reason.TEST_RUN_FAILED, False, "Commands: `/merge` submits this pull request again."),
        (PullRequestState.CANCELLED, Reason.PR_PUSHED, True, "Commands: `/merge` and the full SHA of the reviewed"),
        (PullRequestState.CANCELLED, Reason.PR_CLOSED, False, ""),
        (PullRequestState.CANCELLED, Reason.PR_BASE_CHANGED, False, ""),
        (PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, False, ""),
    ],
)
def test_a_comment_names_the_commands_that_help_now(state: PullRequestState, reason: Reason, fork: bool, commands: str):
    after_reason = comment_in(state, reason, fork=fork).partition(f"`{reason}`\n")[2].strip()
    assert after_reason.startswith(commands)
    assert bool(after_reason) == bool(commands)


MERGED_COMMIT = Sha("c" * 40)


def comment_on_merged(*moved_heads: MovedHead) -> str:
    view = view_submission((world := a_world(prs=1)).queue, world.submission(1), world.now)
    merged = replace(view.submission, state=PullRequestState.MERGED, merged_sha=MERGED_COMMIT, moved_heads=moved_heads)
    return texts.render_comment(replace(view, submission=merged))


def test_a_comment_names_the_commit_that_merged():
    assert f"- Commit: {MERGED_COMMIT}\n" in comment_on_merged()
    assert "force-pushed" not in comment_on_merged(MovedHead(Sha("d" * 40), Instant(0)))


def test_a_comment_says_that_the_queue_pushed_the_merged_commit_to_the_head_branch():
    assert "the queue force-pushed this commit to `" in comment_on_merged(MovedHead(MERGED_COMMIT, Instant(0)))


def test_a_comment_names_the_reviewed_head_after_the_head_branch_moved():
    head = a_world(prs=1).submission(1).pull_request.head
    assert f"- The reviewed head was {head}. " in comment_on_merged(MovedHead(MERGED_COMMIT, Instant(0)))
    assert head not in comment_on_merged()


def test_a_queue_without_commands_names_none():
    assert "/merge" not in comment_in(PullRequestState.TESTING, Reason.WAITING_FOR_CHECKS, prefix="")


@pytest.mark.parametrize(
    ("provider", "prefix"), [("github", "/merge"), ("gitea", "/merge"), ("gitlab", "!merge"), ("git", "/merge")]
)
def test_gitlab_has_its_own_prefix_because_it_removes_lines_that_start_with_a_slash(provider: str, prefix: str):
    assert texts.command_prefix(provider) == prefix
    assert parse_command(prefix) == Command(verb=Verb.SUBMIT)


def test_a_reply_lists_the_branches_that_have_a_queue():
    text = texts.render_no_queue("dev", ["main", "next"])
    assert text.startswith("No queue merges into `dev`. Branches of this repository that have a queue: `main`, `next`.")
    assert "administrator" in text
    many = texts.render_no_queue("@all `x`", [f"release/{number}" for number in range(12)])
    assert many.startswith("No queue merges into `@all x`.")
    assert many.count("`release/") == 10
    assert " and 2 more." in many


def test_a_comment_names_the_pull_requests_it_waits_for_and_is_tested_with():
    world = a_world(prs=2)
    world.passes(2)
    text = comment_on(world, 2, batch=(2, 3))
    assert "Waiting for the pull requests ahead: #1.\n" in text
    assert "- Tested together with #3\n" in text


def test_a_comment_names_the_failed_check_with_its_link():
    text = comment_on(a_world(prs=1), 1, failed_check("unit", "https://ci.example.com/7"))
    assert "- Failed: [unit](https://ci.example.com/7)\n" in text


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x/)[y](https://z", "https://x y", ""])
def test_an_unsafe_url_is_not_linked(url: str):
    assert "- Failed: unit\n" in comment_on(a_world(prs=1), 1, failed_check("unit", url))


def test_text_from_others_is_escaped_and_mentions_no_user():
    text = comment_on(a_world(prs=1), 1, failed_check("@everyone <img src=x> [a](b) `c` # d\n# e"))
    assert "- Failed: @\u200beveryone \\<img src=x\\> \\[a\\]\\(b\\) \\`c\\` \\# d \\# e\n" in text


def waiting_for_reviews(*names: str) -> SubmissionView:
    """A pull request that lacks one of two approvals."""
    world = a_world()
    world.open_pull_request(1)
    review = Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=1, names=names)
    world.change(1, requirements=(review,))
    world.submit(1)
    return view_submission(world.queue, world.submission(1), world.now)


@pytest.mark.parametrize("name", ["@acme/db", "@_ann", "@.ann", "@-ann", "@änn"])
def test_a_comment_names_missing_reviewers_without_a_mention(name: str):
    view = waiting_for_reviews(name, "@ada")
    for text in (texts.render_comment(view, prefix="/merge"), texts.render_state(view)):
        assert not re.search(r"@[^\u200b]", text)
        readable = text.replace("\u200b", "").replace("\\", "")
        assert f"Waiting for a review from {name}, @ada (1 of 2 approvals)." in readable


def test_the_status_of_a_pull_request_with_many_missing_reviewers_has_at_most_140_characters():
    status = texts.build_status(waiting_for_reviews(*(f"@{letter * 100}" for letter in "abcdefgh")), PAGE)
    assert status.description.startswith("Not ready. Waiting for a review from @aaa")
    assert len(status.description) == 140


@pytest.mark.parametrize("state", PullRequestState)
def test_every_state_has_a_headline(state: PullRequestState):
    assert texts.HEADLINES[state]


def test_only_concluded_states_have_a_final_status():
    assert texts.STATUS_STATES == {
        PullRequestState.MERGED: StatusState.SUCCESS,
        PullRequestState.FAILED: StatusState.FAILURE,
        PullRequestState.CANCELLED: StatusState.ERROR,
    }


def test_the_status_of_a_queued_pull_request_is_short():
    world = a_world(prs=1)
    status = texts.build_status(view_submission(world.queue, world.submission(1), world.now), PAGE)
    assert (status.context, status.state, status.url) == ("mergeyard", StatusState.PENDING, PAGE)
    assert status.description == "In the merge queue."


def test_the_status_of_a_concluded_pull_request_is_truncated_to_140_characters():
    world = a_world(prs=1)
    submission = world.submission(1)
    world.fails(1)
    failed = replace(submission, state=PullRequestState.FAILED, reason=Reason.TEST_RUN_FAILED, detail="x" * 200)
    status = texts.build_status(view_submission(world.queue, failed, world.now), PAGE)
    assert status.state is StatusState.FAILURE
    assert status.description.startswith("Failed. A required check failed with these changes")
    assert len(status.description) == 140


def test_a_reply_is_recognized_by_its_first_line():
    text = texts.render_reply("77", "ada", texts.WRITE_ACCESS_REQUIRED)
    assert text.startswith(f"{texts.OWN_COMMENT_PREFIX} answers 77 -->\n@ada Only users with write access")


def test_an_unknown_argument_is_quoted():
    assert texts.render_unknown_argument("`x` @all", "/merge").startswith("I do not know `x @all`. The commands are:")


def test_escaping_keeps_reason_messages_readable():
    for reason in Reason:
        assert texts.escape_markdown(REASON_MESSAGES[reason]).replace("\\", "") == REASON_MESSAGES[reason]


@pytest.mark.parametrize("text", ["acme/app#3", "docs/#12", "!5", "&7", "$9", "%2", "~bug", '%"next"', "GH-3", "gh-3"])
def test_the_words_of_others_refer_to_nothing(text: str):
    escaped = texts.escape_markdown(text)
    assert not re.search(r'[#!&$%~][\w"]|GH-\d', escaped, re.IGNORECASE)
    assert escaped.replace("\u200b", "").replace("\\", "") == text


def test_of_a_reason_only_our_own_references_become_links():
    world = a_world(prs=1)
    submission = replace(
        world.submission(1),
        state=PullRequestState.FAILED,
        reason=Reason.MERGE_CONFLICT,
        detail="Conflicts in docs/#12",
        stacked_on=(PullRequestNumber(7),),
    )
    text = texts.render_comment(view_submission(world.queue, submission, world.now), number_prefix="!")
    assert "#12" not in text
    assert text.count("Tested on top of !7.") == 1


def test_the_title_of_a_draft_stays_short():
    many = [PullRequestNumber(number) for number in range(1_000_000_000, 1_000_000_100)]
    assert texts.render_draft_title(many[:2], "main") == (
        "[Mergeyard] Test pull requests 1000000000, 1000000001 on main"
    )
    assert " and 90 more on main" in texts.render_draft_title(many, "main")
    assert len(texts.render_draft_title(many, "a/" * 100)) <= 240
    assert len(texts.render_draft_title([], "a/" * 100)) <= 240


@pytest.mark.parametrize(
    "text", ["www.evil.example/x", "see WWW.evil.example", "https://evil.example", "a@evil.example"]
)
def test_the_words_of_others_become_no_link(text: str):
    assert not re.search(r"www\.|://|@\w", texts.escape_markdown(text), re.IGNORECASE)
    assert texts.escape_markdown(text).replace("\u200b", "") == text
