"""The page of states says what the tables say, and the tables say what was promised to users of the API."""

import re
from enum import StrEnum

import pytest

from mergeyard.domain.reasons import MESSAGES, Reason, Refusal
from mergeyard.domain.states import PrState, QueueState, RunStatus
from mergeyard.domain.transitions import PR_TRANSITIONS
from tests.house.states_page import CHANGING, CHANGING_NO_STATE, OF_THE_QUEUE, PAGE, WAITING, page

# The promised table once more, by hand and in plain words: it must not change because the code does.

LIVE = "not_ready pending testing pending_failure tests_passed"
ADMITTED = "pending testing pending_failure tests_passed"

PROMISED_CHANGES = (
    ("-", "not_ready", "submitted"),
    ("not_ready", "pending", "ready"),
    ("not_ready pending", "merged", "merged_directly"),
    ("pending", "testing", "test_run_started"),
    ("pending testing pending_failure", "tests_passed", "test_run_passed successor_passed"),
    ("testing", "pending_failure", "test_run_failed test_run_timeout"),
    ("pending testing pending_failure", "failed", "test_run_failed test_run_timeout failed_by_optimization"),
    ("testing pending_failure tests_passed", "pending", "prerequisite_removed target_branch_moved"),
    ("testing pending_failure tests_passed", "pending", "skip_the_line_interrupted batchmate_removed base_broken"),
    ("testing pending_failure tests_passed", "pending", "bisection bisection_passed mode_switched queue_resumed"),
    ("testing pending_failure", "pending", "tests_restarted"),
    (ADMITTED, "not_ready", "no_longer_mergeable"),
    ("pending", "failed", "merge_conflict contains_removed_commit nothing_to_merge"),
    ("pending", "failed", "no_required_statuses config_invalid start_refused"),
    ("tests_passed", "merged", "merged_by_queue tree_mismatch"),
    ("tests_passed", "failed", "merge_refused"),
    (LIVE, "cancelled", "cancelled_by_user pr_closed not_ready_timeout landing_unknown"),
    (LIVE, "cancelled", "pr_pushed"),  # from not_ready only a fork's, or one that was submitted with its head
    (ADMITTED, "cancelled", "pr_base_changed pr_converted_to_draft"),
    (LIVE, "merged", "merged_manually"),
)
ADDED_CHANGES = (
    ("testing pending_failure tests_passed", "pending", "required_statuses_changed"),
    ("pending", "failed", "pr_too_large invalid_tree breaks_config"),
    (ADMITTED, "not_ready", "waiting_for_maintainer"),
)

PROMISED_WAITS = {
    *("base_branch_mismatch", "draft", "not_mergeable", "mergeability_unknown", "missing_impacted_targets"),
    *("queue_paused", "queue_draining", "switching_modes"),
    *("waiting_for_slot", "waiting_for_batch", "waiting_for_checks"),
    *("waiting_for_prs_ahead", "waiting_for_prs_behind", "waiting_for_base"),
    *("base_broken", "conflicts_with_pr_ahead", "target_branch_missing", "provider_unavailable"),
    "waiting_for_maintainer",
}

every_reason = pytest.mark.parametrize("reason", Reason)

Change = tuple[str, str, str]


def changes(rows: tuple[Change, ...]) -> set[Change]:
    return {
        (source, to, reason)
        for sources, to, reasons in rows
        for source in sources.split()
        for reason in reasons.split()
    }


def changes_in_code() -> set[Change]:
    return {
        (source or "-", row.to, reason) for row in PR_TRANSITIONS for source in row.sources for reason in row.reasons
    }


def test_the_page_is_what_make_states_writes():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make states`"


@pytest.mark.parametrize("words", [PrState, QueueState, RunStatus, Reason, Refusal])
def test_the_page_names_every_state_every_reason_and_every_refusal(words: type[StrEnum]):
    assert [word for word in words if f"| `{word}` |" not in page()] == []


def test_a_pull_request_changes_as_promised_and_no_other_way():
    assert changes_in_code() == changes(PROMISED_CHANGES) | changes(ADDED_CHANGES)


def test_what_was_added_was_not_promised_before():
    assert changes(ADDED_CHANGES).isdisjoint(changes(PROMISED_CHANGES))


def test_no_two_rows_of_the_table_say_the_same():
    rows = [(source, row.to, reason) for row in PR_TRANSITIONS for source in row.sources for reason in row.reasons]
    assert len(rows) == len(set(rows))


@every_reason
def test_every_reason_has_a_whole_sentence_for_people(reason: Reason):
    assert re.fullmatch(r"[A-Z][^|\n]* [^|\n]*\.", MESSAGES[reason])


@every_reason
def test_every_reason_changes_something_or_is_waited_for(reason: Reason):
    assert reason in CHANGING | OF_THE_QUEUE | CHANGING_NO_STATE | PROMISED_WAITS


def test_pull_requests_wait_for_what_was_promised():
    assert WAITING == PROMISED_WAITS
