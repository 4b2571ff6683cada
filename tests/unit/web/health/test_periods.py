"""The period that a reader chose."""

from datetime import UTC, datetime

import pytest

from mergeyard.domain.instants import DAY, HOUR, Instant
from mergeyard.web.health.periods import LENGTHS, By, chosen, name_of


def at(text: str) -> Instant:
    return Instant(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))


NOW = at("2026-11-15T10:20:30")


def test_a_week_is_today_and_the_six_days_before():
    week = chosen("7d", "day", NOW)
    assert week.since == at("2026-11-09")
    assert week.starts == tuple(at(f"2026-11-{day:02}") for day in range(9, 16))


def test_a_day_is_this_hour_and_the_23_before():
    day = chosen("24h", "", NOW)
    assert (day.since, day.by, len(day.starts)) == (at("2026-11-14T11:00"), By.HOUR, 24)
    assert day.starts[-1] == at("2026-11-15T10:00")


def test_hours_to_come_are_not_drawn():
    hours = chosen("7d", "hour", NOW).starts
    assert (hours[0], hours[-1], len(hours)) == (at("2026-11-09"), at("2026-11-15T10:00"), 6 * 24 + 11)


def test_what_happens_now_is_part_of_it():
    assert chosen("7d", "", NOW).until == NOW + 1


def test_the_period_before_is_as_long_and_ends_at_the_same_time_of_day():
    week = chosen("7d", "", NOW)
    assert week.before == (at("2026-11-02"), at("2026-11-08T10:20:30") + 1)


@pytest.mark.parametrize("now", ["2026-11-15T00:00:00", "2026-11-14T23:59:59.999"])
@pytest.mark.parametrize("length", LENGTHS)
def test_every_part_of_every_period_has_begun(length: str, now: str):
    for by in LENGTHS[length].by:
        period = chosen(length, by, at(now))
        assert period.since % (HOUR if length == "24h" else DAY) == 0
        assert period.starts[-1] <= at(now) < period.starts[-1] + by.length


@pytest.mark.parametrize(
    ("length", "by", "meant"),
    [
        ("", "", ("7d", By.DAY)),
        ("1000d", "second", ("7d", By.DAY)),
        ("90d", "hour", ("90d", By.DAY)),
        ("24h", "day", ("24h", By.HOUR)),
        ("30d", "hour", ("30d", By.HOUR)),
    ],
)
def test_what_nobody_can_choose_is_taken_for_the_usual(length: str, by: str, meant: tuple[str, By]):
    period = chosen(length, by, NOW)
    assert (period.length.name, period.by) == meant


def test_hours_and_days_have_names():
    assert name_of(at("2026-11-09T07:00"), By.HOUR) == "9 Nov 07:00"
    assert name_of(at("2026-11-09"), By.DAY) == "Mon 9 Nov"
