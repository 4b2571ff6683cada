"""Time is whole milliseconds, passed in as values."""

from mergeyard.domain.timestamps import (
    HOUR,
    MINUTE,
    Instant,
    LongerThan,
    completed_durations,
    earliest,
    later,
    stopped_durations,
)


def test_later_adds_milliseconds():
    assert later(Instant(1000), 5) == 1005


def test_an_hour_is_sixty_minutes_of_sixty_seconds():
    assert HOUR == 60 * MINUTE == 3_600_000


def test_earliest_skips_unknown_times():
    assert earliest(None, Instant(7), None, Instant(5)) == 5


def test_there_is_no_earliest_of_nothing():
    assert earliest(None, None) is None


DURATIONS = (10, LongerThan(40), 20, LongerThan(30))


def test_completed_and_stopped_durations_are_separated():
    assert completed_durations(DURATIONS) == [10, 20]
    assert stopped_durations(DURATIONS) == [40, 30]
