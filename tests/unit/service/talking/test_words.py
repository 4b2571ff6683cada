"""What people read at a forge, and that nobody's words do more there than being read."""

import re

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import MESSAGES, Reason
from mergeyard.domain.states import PrState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.service.talking import words
from mergeyard.service.talking.words import Told
from mergeyard.service.views import view
from tests.support.builders import Yard, a_yard

PAGE = "https://queue.example.com/pulls/github.com/acme/app/1"


def told(yard: Yard, number: int, *failed: Status, batch: tuple[int, ...] = ()) -> Told:
    shown = view(yard.queue, yard.stay(number), yard.now)
    return Told(view=shown, batch=tuple(map(PrNumber, batch)), failed=failed)


def red(context: str, url: str = "") -> Status:
    return Status(context=context, state=StatusState.FAILURE, at=Instant(0), url=url)


def test_a_comment_tells_state_reason_and_place():
    text = words.comment(told(a_yard(prs=1), 1))
    assert text == (
        "<!-- mergeyard -->\n"
        "### 🧪 Being tested · place 1 in the queue for main\n"
        "\n"
        "Its checks have not all reported. Not reported: unit.\n"
        "\n"
        "`waiting_for_checks`\n"
    )


def test_a_comment_leads_to_our_page_about_it():
    text = words.comment(replace(told(a_yard(prs=1), 1), page=PAGE))
    assert text.endswith(f"\n\n`waiting_for_checks` · [details]({PAGE})\n")


def test_a_comment_names_whom_it_waits_for_and_whom_it_is_tested_with():
    yard = a_yard(prs=2)
    yard.passes(2)
    text = words.comment(told(yard, 2, batch=(2, 3)))
    assert "Waiting for #1." in text
    assert "- Tested together with #3\n" in text


def test_a_comment_names_the_failed_check_with_its_link():
    text = words.comment(told(a_yard(prs=1), 1, red("unit", "https://ci.example.com/7")))
    assert "- Failed: [unit](https://ci.example.com/7)\n" in text


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x/)[y](https://z", "https://x y", ""])
def test_an_address_that_is_none_is_no_link(url: str):
    assert "- Failed: unit\n" in words.comment(told(a_yard(prs=1), 1, red("unit", url)))


def test_the_words_of_others_mention_nobody_and_mean_nothing():
    text = words.comment(told(a_yard(prs=1), 1, red("@everyone <img src=x> [a](b) `c` # d\n# e")))
    assert "- Failed: @\u200beveryone \\<img src=x\\> \\[a\\]\\(b\\) \\`c\\` \\# d \\# e\n" in text


@pytest.mark.parametrize("state", PrState)
def test_every_state_has_a_headline(state: PrState):
    assert words.HEADLINES[state]


def test_only_an_end_is_more_than_pending():
    assert words.STATES == {
        PrState.MERGED: StatusState.SUCCESS,
        PrState.FAILED: StatusState.FAILURE,
        PrState.CANCELLED: StatusState.ERROR,
    }


def test_a_status_says_little_while_it_waits():
    yard = a_yard(prs=1)
    status = words.status(view(yard.queue, yard.stay(1), yard.now), PAGE)
    assert (status.context, status.state, status.url) == ("mergeyard", StatusState.PENDING, PAGE)
    assert status.description == "In the merge queue."


def test_a_status_tells_how_it_ended_in_as_many_letters_as_forges_show():
    yard = a_yard(prs=1)
    stay = yard.stay(1)
    yard.fails(1)
    failed = replace(stay, state=PrState.FAILED, reason=Reason.TEST_RUN_FAILED, words="x" * 200)
    status = words.status(view(yard.queue, failed, yard.now), PAGE)
    assert status.state is StatusState.FAILURE
    assert status.description.startswith("Failed. A required status failed with its changes")
    assert len(status.description) == 140


def test_an_answer_is_found_again_by_its_first_line():
    text = words.answer("77", "ada", words.ONLY_WRITERS)
    assert text.startswith(f"{words.OURS} answers 77 -->\n@ada Only people who may write")


def test_a_word_that_is_not_known_is_quoted():
    assert words.misunderstood("`x` @all").startswith("I do not know what `x @all` means here.")


def test_sentences_of_reasons_are_read_as_they_are_written():
    for reason in Reason:
        assert words.quoted(MESSAGES[reason]).replace("\\", "") == MESSAGES[reason]


def test_the_title_of_a_test_stays_short_however_many_are_tested_on_whatever_branch():
    many = [PrNumber(number) for number in range(1_000_000_000, 1_000_000_100)]
    assert words.test_pull_title(many[:2], "main") == "[Mergeyard] Test #1000000000, #1000000001 on main"
    assert " and 90 more on main" in words.test_pull_title(many, "main")
    assert len(words.test_pull_title(many, "a/" * 100)) <= 240
    assert len(words.test_pull_title([], "a/" * 100)) <= 240


@pytest.mark.parametrize(
    "text", ["www.evil.example/x", "see WWW.evil.example", "https://evil.example", "a@evil.example"]
)
def test_the_words_of_others_become_no_link(text: str):
    assert not re.search(r"www\.|://|@\w", words.quoted(text), re.IGNORECASE)
    assert words.quoted(text).replace("\u200b", "") == text
