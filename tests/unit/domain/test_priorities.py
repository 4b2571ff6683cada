"""What priorities are called."""

import pytest

from mergeyard.domain.priorities import LOWEST, PRIORITIES, URGENT, named, shown


def test_every_name_stands_for_a_priority_and_the_first_is_urgent():
    assert PRIORITIES == {"urgent": URGENT, "high": 10, "medium": 100, "low": 200}
    assert all(URGENT <= priority <= LOWEST for priority in PRIORITIES.values())


@pytest.mark.parametrize(("word", "priority"), [("urgent", 0), ("low", 200), ("0", 0), ("007", 7), ("255", 255)])
def test_a_priority_is_read_by_its_name_or_as_a_number(word: str, priority: int):
    assert named(word) == priority


@pytest.mark.parametrize("word", ["", "Urgent", "256", "-1", "1.5", "0001", "٣", "soon"])
def test_what_is_neither_is_none(word: str):
    assert named(word) is None


def test_a_priority_is_shown_by_its_name_if_it_has_one():
    assert [shown(priority) for priority in (0, 10, 11)] == ["urgent", "high", "11"]
