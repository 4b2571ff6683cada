"""Time is whole milliseconds, passed in as values."""

import pytest

from mergeyard.domain.timestamps import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Instant,
    LongerThan,
    completed_durations,
    earliest,
    format_clock,
    format_duration,
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


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "–"),
        (-5, "0 s"),
        (0, "0 s"),
        (1, "<1 s"),
        (999, "<1 s"),
        (41_400, "41 s"),
        (59_600, "1 min"),
        (MINUTE + 59 * SECOND, "1 min 59 s"),
        (HOUR - 400, "1 h"),
        (HOUR + 59 * MINUTE + 29 * SECOND, "1 h 59 min"),
        (2 * HOUR - 20 * SECOND, "2 h"),
        (DAY - 1, "1 d"),
        (DAY - 20 * SECOND, "1 d"),
        (2 * DAY + 3 * HOUR + 10 * MINUTE, "2 d 3 h"),
        (400 * DAY, "400 d"),
    ],
)
def test_a_duration_is_rounded_to_two_units(milliseconds: int | None, text: str):
    assert format_duration(milliseconds) == text


def test_a_clock_shows_hours_and_minutes():
    assert format_clock(Instant(3 * DAY + 12 * HOUR + 5 * MINUTE + 59 * SECOND)) == "12:05 UTC"
