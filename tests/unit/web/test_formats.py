"""The words and numbers of all pages: durations, estimates, labels of states."""

import pytest

from mergeyard.cli import output
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import (
    PULL_REQUEST_TRANSITIONS,
    TERMINAL_STATES,
    UPDATE_REASONS,
    PullRequestState,
    QueueState,
    RunStatus,
)
from mergeyard.domain.timestamps import DAY, HOUR, MINUTE, SECOND, Instant
from mergeyard.service.comments import texts
from mergeyard.web import formats


@pytest.mark.parametrize(
    ("remaining", "text"),
    [
        (-MINUTE, "now"),
        (4 * SECOND, "now"),
        (55 * SECOND, "~55 s"),
        (5 * MINUTE + 34 * SECOND, "~5 min 30 s"),
        (12 * MINUTE + 34 * SECOND, "~13 min"),
        (3 * HOUR + 10 * MINUTE, "~3 h 10 min"),
    ],
)
def test_an_estimate_is_not_more_exact_than_it_can_be(remaining: int, text: str):
    assert formats.format_time_until(Instant(DAY + remaining), Instant(DAY)) == text


def test_an_unknown_estimate_is_not_a_time():
    assert formats.format_time_until(None, Instant(0)) == "not known yet"


def test_a_time_without_scripts_names_its_zone():
    assert formats.format_time_of_day(Instant(0)) == "00:00 UTC"
    assert formats.format_timestamp(Instant(0)) == "1 Jan 1970, 00:00:00 UTC"


def test_every_state_has_exactly_one_label():
    assert set(formats.PULL_REQUEST_STATE_LABELS) == set(PullRequestState)
    assert set(formats.QUEUE_STATE_LABELS) == set(QueueState)
    assert set(formats.RUN_STATE_LABELS) == set(RunStatus)
    assert set(formats.CHECK_STATE_LABELS) == {*StatusState, "missing", "never", "unfinished"}
    for labels in (formats.PULL_REQUEST_STATE_LABELS, formats.RUN_STATE_LABELS, formats.CHECK_STATE_LABELS):
        assert len(set(labels.values())) == len(labels)


def test_a_title_cannot_reverse_the_text_after_it():
    assert formats.strip_bidi_controls("safe\u202egnp.exe \u05d0") == "safegnp.exe \u05d0"


def test_every_reason_for_an_end_a_restart_or_an_update_has_a_label():
    """The health page and the page of a pull request show labels, not codes."""
    to_states = TERMINAL_STATES | {PullRequestState.PENDING}
    reasons = {
        reason
        for row in PULL_REQUEST_TRANSITIONS
        if row.to in to_states and row.sources != (PullRequestState.NOT_READY,)
        for reason in row.reasons
    }
    assert formats.REASON_LABELS.keys() == reasons | {*UPDATE_REASONS}
    assert formats.format_reason("target_branch_moved") == "target branch moved"
    assert formats.format_reason("a_reason_of_the_past") == "a reason of the past"


def test_every_label_is_the_same_in_comments_and_commands():
    comments = {state: headline.partition(" ")[2] for state, headline in texts.HEADLINES.items()}
    assert comments == formats.PULL_REQUEST_STATE_LABELS
    assert output.STATE_LABELS == formats.PULL_REQUEST_STATE_LABELS | formats.QUEUE_STATE_LABELS
    assert output.RUN_LABELS.items() <= formats.RUN_STATE_LABELS.items()
