"""The settings, with their defaults and ranges as the contract has them."""

import msgspec
import pytest

from mergeyard.domain.config import (
    LOWEST_PRIORITY,
    PRIORITIES,
    URGENT,
    Config,
    describe_changes,
    format_priority,
    parse_priority,
)

DEFAULTS = {
    "mode": "single",
    "concurrency": 5,
    "bisection_concurrency": 5,
    "batch": False,
    "batching_min_size": 4,
    "batching_max_wait_time_minutes": 5,
    "can_optimistically_merge": False,
    "pending_failure_depth": 0,
    "optimization_mode": "off",
    "speculation": "chain",
    "testing_timeout_minutes": 300,
    "test_retries": 0,
    "required_statuses": None,
    "merge_method": "merge_commit",
    "landing": "tested_commit",
    "direct_merge_mode": "off",
    "create_prs_for_testing_branches": False,
    "comments_enabled": True,
    "commands_enabled": True,
    "status_check_enabled": True,
    "not_ready_timeout_hours": 24,
    "label_commands_enabled": True,
    "enqueueing_label": "merge-queue",
    "move_head_branches": True,
    "head_branch_fallback": "provider_merge",
    "delete_head_branches": False,
    "squash_template": "",
    "extension_enabled": True,
    "state_labels_enabled": False,
    "allowed_bot_submitters": "[]",
    "batching_rules": "[]",
    "test_branch_construction_mode": "rename_temp_branch",
}

RANGES = {
    "concurrency": (1, 1000),
    "bisection_concurrency": (1, 1000),
    "batching_min_size": (1, 100),
    "batching_max_wait_time_minutes": (0, 10_080),
    "pending_failure_depth": (0, 1000),
    "testing_timeout_minutes": (1, 10_080),
    "test_retries": (0, 10),
    "not_ready_timeout_hours": (0, 720),
}

within = pytest.mark.parametrize(("name", "value"), [(name, edge) for name, span in RANGES.items() for edge in span])
outside = pytest.mark.parametrize(
    ("name", "value"), [case for name, (low, high) in RANGES.items() for case in ((name, low - 1), (name, high + 1))]
)


def test_the_defaults_are_those_of_the_contract():
    assert msgspec.to_builtins(Config()) == DEFAULTS


@within
def test_the_ends_of_a_range_are_allowed(name: str, value: int):
    assert getattr(msgspec.convert({name: value}, Config), name) == value


@outside
def test_what_lies_beyond_a_range_is_refused(name: str, value: int):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({name: value}, Config)


def test_a_set_of_required_statuses_cannot_be_empty():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"required_statuses": []}, Config)


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"mode": "zigzag"}, Config)


def test_without_batching_a_batch_is_one():
    assert Config(batch=False, batching_min_size=7).batch_size == 1


def test_with_batching_a_batch_is_as_large_as_its_least_size():
    assert Config(batch=True, batching_min_size=7).batch_size == 7


def test_the_difference_between_settings_names_what_changed_from_what_to_what():
    before = Config(concurrency=5, batch=False, required_statuses=None)
    after = Config(concurrency=4, batch=True, required_statuses=("unit", "lint"))
    assert describe_changes(before, before) == ""
    assert describe_changes(before, after) == "concurrency 5 → 4, batch no → yes, required_statuses none → unit + lint"
    assert describe_changes(after, before).endswith("required_statuses unit + lint → none")
    assert len(describe_changes(before, Config(enqueueing_label="x" * 1000))) < 300


def test_every_name_stands_for_a_priority_and_the_first_is_urgent():
    assert PRIORITIES == {"urgent": URGENT, "high": 10, "medium": 100, "low": 200}
    assert all(URGENT <= priority <= LOWEST_PRIORITY for priority in PRIORITIES.values())


@pytest.mark.parametrize(("word", "priority"), [("urgent", 0), ("low", 200), ("0", 0), ("007", 7), ("255", 255)])
def test_a_priority_is_read_by_its_name_or_as_a_number(word: str, priority: int):
    assert parse_priority(word) == priority


@pytest.mark.parametrize("word", ["", "Urgent", "256", "-1", "1.5", "0001", "٣", "soon"])
def test_text_that_is_neither_name_nor_number_is_no_priority(word: str):
    assert parse_priority(word) is None


def test_a_priority_is_shown_by_its_name_if_it_has_one():
    assert [format_priority(priority) for priority in (0, 10, 11)] == ["urgent", "high", "11"]
