"""Texts of comments and statuses at a forge, and the escaping of text from others."""

import re

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import REASON_MESSAGES, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.service.comments import texts
from mergeyard.service.views import view_submission
from tests.support.builders import QueueWorld, a_world

PAGE = "https://queue.example.com/pulls/github.com/acme/app/1"


def comment_on(world: QueueWorld, number: int, *failed: Status, batch: tuple[int, ...] = (), page_url: str = "") -> str:
    view = view_submission(world.queue, world.submission(number), world.now)
    return texts.render_comment(
        view, batch=tuple(map(PullRequestNumber, batch)), failed_checks=failed, page_url=page_url
    )


def failed_check(context: str, url: str = "") -> Status:
    return Status(context=context, state=StatusState.FAILURE, at=Instant(0), url=url)


def test_a_comment_shows_state_position_and_reason():
    text = comment_on(a_world(prs=1), 1)
    assert text == (
        "<!-- mergeyard -->\n"
        "### 🧪 Testing · position 1 in the queue for main\n"
        "\n"
        "Not all required checks have reported. Not reported: unit.\n"
        "\n"
        "`waiting_for_checks`\n"
    )


def test_a_comment_links_to_the_page_of_the_pull_request():
    text = comment_on(a_world(prs=1), 1, page_url=PAGE)
    assert text.endswith(f"\n\n`waiting_for_checks` · [details]({PAGE})\n")


def test_a_comment_names_the_pull_requests_it_waits_for_and_is_tested_with():
    world = a_world(prs=2)
    world.passes(2)
    text = comment_on(world, 2, batch=(2, 3))
    assert "Waiting for #1." in text
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
    assert text.startswith(f"{texts.COMMENT_MARKER_PREFIX} answers 77 -->\n@ada Only users with write access")


def test_an_unknown_argument_is_quoted():
    assert texts.render_unknown_argument("`x` @all").startswith("Unknown argument `x @all`.")


def test_escaping_keeps_reason_messages_readable():
    for reason in Reason:
        assert texts.escape_markdown(REASON_MESSAGES[reason]).replace("\\", "") == REASON_MESSAGES[reason]


def test_the_title_of_a_draft_stays_short():
    many = [PullRequestNumber(number) for number in range(1_000_000_000, 1_000_000_100)]
    assert texts.render_draft_title(many[:2], "main") == "[Mergeyard] Test #1000000000, #1000000001 on main"
    assert " and 90 more on main" in texts.render_draft_title(many, "main")
    assert len(texts.render_draft_title(many, "a/" * 100)) <= 240
    assert len(texts.render_draft_title([], "a/" * 100)) <= 240


@pytest.mark.parametrize(
    "text", ["www.evil.example/x", "see WWW.evil.example", "https://evil.example", "a@evil.example"]
)
def test_the_words_of_others_become_no_link(text: str):
    assert not re.search(r"www\.|://|@\w", texts.escape_markdown(text), re.IGNORECASE)
    assert texts.escape_markdown(text).replace("\u200b", "") == text
