"""Time is whole milliseconds, handed in."""

from mergeyard.domain.instants import HOUR, MINUTE, Instant, earliest, later


def test_later_adds_milliseconds():
    assert later(Instant(1000), 5) == 1005


def test_an_hour_is_sixty_minutes_of_sixty_seconds():
    assert HOUR == 60 * MINUTE == 3_600_000


def test_the_earliest_passes_over_those_that_are_not_known():
    assert earliest(None, Instant(7), None, Instant(5)) == 5


def test_there_is_no_earliest_of_nothing():
    assert earliest(None, None) is None
