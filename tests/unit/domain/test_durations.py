"""Runs that came to their end, and runs that were stopped."""

from mergeyard.domain.durations import LongerThan, cut_short, whole

DURATIONS = (10, LongerThan(40), 20, LongerThan(30))


def test_whoever_came_to_an_end_is_told_from_whoever_was_stopped():
    assert whole(DURATIONS) == [10, 20]
    assert cut_short(DURATIONS) == [40, 30]
