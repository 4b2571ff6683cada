"""What priorities are called."""

from mergeyard.domain.priorities import LOWEST, PRIORITIES
from mergeyard.domain.pulls import URGENT


def test_every_name_stands_for_a_priority_and_the_first_is_urgent():
    assert PRIORITIES == {"urgent": URGENT, "high": 10, "medium": 100, "low": 200}
    assert all(URGENT <= priority <= LOWEST for priority in PRIORITIES.values())
