"""The states page and its diagrams agree with the tables, and these with what was promised to users of the API."""

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import pytest

from mergeyard.domain.states import (
    PULL_REQUEST_TRANSITIONS,
    REASON_MESSAGES,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
)
from tests.project.states_page import (
    PAGE,
    PR_CHANGE_REASONS,
    QUEUE_CHANGE_REASONS,
    STATELESS_REASONS,
    WAIT_REASONS,
    Arrow,
    pr_arrows,
    queue_arrows,
    render_page,
    run_arrows,
)

# A copy of the promised table, written by hand: it must not change when the code does.

LIVE = "not_ready pending testing pending_failure tests_passed"
ADMITTED = "pending testing pending_failure tests_passed"

PROMISED_CHANGES = (
    ("-", "not_ready", "submitted"),
    ("not_ready", "pending", "ready"),
    ("pending", "testing", "test_run_started"),
    ("pending testing pending_failure", "tests_passed", "test_run_passed successor_passed"),
    ("testing", "pending_failure", "cause_unknown batch_failed"),
    ("pending testing pending_failure", "failed", "test_run_failed test_run_timeout failed_by_optimization"),
    ("testing pending_failure tests_passed", "pending", "prerequisite_removed target_branch_moved"),
    ("testing pending_failure tests_passed", "pending", "skip_the_line_interrupted batchmate_removed base_broken"),
    ("testing pending_failure tests_passed", "pending", "bisection bisection_passed mode_switched queue_resumed"),
    ("testing pending_failure tests_passed", "pending", "tests_restarted"),
    (ADMITTED, "not_ready", "no_longer_mergeable"),
    ("pending", "failed", "merge_conflict contains_removed_commit nothing_to_merge"),
    ("pending", "failed", "config_invalid start_refused"),
    ("tests_passed", "merged", "merged_by_queue merged_directly tree_mismatch"),
    ("tests_passed", "failed", "merge_refused"),
    (LIVE, "cancelled", "cancelled_by_user pr_closed not_ready_timeout landing_unknown"),
    (LIVE, "cancelled", "pr_pushed"),  # from not_ready only a fork's, or one that was submitted with its head
    (ADMITTED, "cancelled", "pr_base_changed pr_converted_to_draft"),
    (LIVE, "merged", "merged_manually"),
)
ADDED_CHANGES = (
    (LIVE, "cancelled", "head_not_moved_back"),
    (LIVE, "merged", "merged_with_another"),
    ("testing pending_failure tests_passed", "pending", "target_branch_missing made_urgent order_changed"),
    ("testing pending_failure tests_passed", "pending", "dependencies_changed contains_waiting_pr"),
    ("testing pending_failure tests_passed", "pending", "conflicts_with_pr_ahead bisection_left_out"),
    ("testing pending_failure tests_passed", "pending", "clearance_withdrawn optimistic_merging_off"),
    ("testing pending_failure tests_passed", "pending", "run_ahead_stopped run_replaced test_branch_not_built"),
    ("testing pending_failure tests_passed", "pending", "test_branch_moved base_commit_missing"),
    ("testing pending_failure tests_passed", "pending", "no_required_statuses config_invalid"),
    ("testing pending_failure tests_passed", "pending", "required_statuses_changed"),
    ("pending", "failed", "invalid_tree breaks_config rebase_differs"),
    (LIVE, "failed", "pr_too_large"),
    (ADMITTED, "not_ready", "waiting_for_maintainer no_required_statuses"),
    (ADMITTED, "not_ready", "changes_requested waiting_for_review waiting_for_code_owner waiting_for_conversations"),
    (ADMITTED, "not_ready", "waiting_for_last_push_approval head_checks_failed waiting_for_head_checks"),
    (ADMITTED, "not_ready", "waiting_for_deployments"),
    (ADMITTED, "not_ready", "blocked_by_host_rule commits_unsigned signing_key_not_accepted host_rule_unreadable"),
)

PROMISED_WAITS = {
    "no_required_statuses",
    *("base_branch_mismatch", "draft", "not_mergeable", "mergeability_unknown", "missing_impacted_targets"),
    *("queue_paused", "queue_draining", "switching_modes"),
    *("waiting_for_slot", "waiting_for_batch", "waiting_for_checks"),
    *("waiting_for_prs_ahead", "waiting_for_prs_behind", "waiting_for_base"),
    *("base_broken", "conflicts_with_pr_ahead", "target_branch_missing", "provider_unavailable"),
    "waiting_for_maintainer",
}
ADDED_WAITS = {
    *("changes_requested", "waiting_for_review", "waiting_for_code_owner", "waiting_for_last_push_approval"),
    *("waiting_for_conversations", "head_checks_failed", "waiting_for_head_checks", "waiting_for_deployments"),
    *("blocked_by_host_rule", "commits_unsigned", "signing_key_not_accepted", "host_rule_unreadable"),
    *("provider_refused", "rate_limited", "server_failure"),
}

SENTENCE_STARTS = (
    r"(The|A|An|All|New|Another|No|Nothing|Pull requests|Some review conversations|Required checks|Git|This one|They|"
    r"Its|Waiting (for|until)|Merged without|Fix|Close|Submit|Resolve|Rebase|Remove|Squash|See|Check|Change|Create|"
    r"Mark|Upload|Push|Make|Ask|Deploy|Satisfy|compare|the) ?"
)

each_reason = pytest.mark.parametrize("reason", Reason)

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
        (source or "-", row.to, reason)
        for row in PULL_REQUEST_TRANSITIONS
        for source in row.sources
        for reason in row.reasons
    }


def test_page_is_up_to_date_with_make_states():
    assert PAGE.read_text(encoding="utf-8") == render_page(), "run `make states`"


@pytest.mark.parametrize("values", [PullRequestState, QueueState, RunStatus, Reason])
def test_page_names_every_state_and_reason(values: type[StrEnum]):
    assert [value for value in values if f"| `{value}` |" not in render_page()] == []


def test_transitions_are_the_promised_ones_and_no_others():
    assert changes_in_code() == changes(PROMISED_CHANGES) | changes(ADDED_CHANGES)


def test_added_transitions_were_not_promised_before():
    assert changes(ADDED_CHANGES).isdisjoint(changes(PROMISED_CHANGES))


def test_no_transition_is_in_the_table_twice():
    rows = [
        (source, row.to, reason) for row in PULL_REQUEST_TRANSITIONS for source in row.sources for reason in row.reasons
    ]
    assert len(rows) == len(set(rows))


@each_reason
def test_reason_has_a_complete_sentence(reason: Reason):
    assert re.fullmatch(r"[A-Z][^|\n]* [^|\n]*\.", REASON_MESSAGES[reason])


@each_reason
def test_message_fits_into_a_commit_status(reason: Reason):
    """With the label of the state before it; forges show 140 characters."""
    assert len(REASON_MESSAGES[reason]) <= 125


@each_reason
def test_message_has_a_subject(reason: Reason):
    """Each sentence names who acts or what it is about, starts with what the pull request waits for, or asks the reader
    to act."""
    for sentence in re.split(r"(?<=[.:]) ", REASON_MESSAGES[reason]):
        assert re.match(SENTENCE_STARTS, sentence), sentence


@each_reason
def test_reason_changes_something_or_is_waited_for(reason: Reason):
    assert reason in PR_CHANGE_REASONS | QUEUE_CHANGE_REASONS | STATELESS_REASONS | PROMISED_WAITS | ADDED_WAITS


def test_wait_reasons_are_the_promised_ones():
    assert WAIT_REASONS == PROMISED_WAITS | ADDED_WAITS


PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

each_picture = pytest.mark.parametrize(
    ("name", "arrows"),
    [("pull-request-states", pr_arrows), ("queue-states", queue_arrows), ("run-states", run_arrows)],
)


@each_picture
def test_each_transition_is_drawn_once_and_no_others(name: str, arrows: Callable[[], set[Arrow]]):
    drawn = re.findall(r'data-from="(.+?)" data-to="(.+?)"', (PICTURES / f"{name}.svg").read_text())
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == arrows()


@each_picture
def test_page_shows_the_picture(name: str, arrows: Callable[[], set[Arrow]]):
    assert arrows()
    assert f"](../pictures/{name}.svg)" in PAGE.read_text()
