"""Forecasts held against simulated days, of which the queue knew nothing but its own past."""

import pytest

from tests.support.calibrating import SETTINGS, a_day, calibrated

WELL_ESTIMATED = ("one line", "lanes")


def test_on_a_short_day_forecasts_hold_where_guesses_do_not():
    foretold, guessed = calibrated(SETTINGS["one line"], a_day(1, hours=5), courses=9)
    assert foretold.merged > 20
    assert 0.8 <= foretold.late <= 1
    assert 0.3 <= foretold.middle <= 0.7
    assert guessed.late < foretold.late
    assert guessed.middle < foretold.middle


@pytest.mark.long
@pytest.mark.parametrize("setting", WELL_ESTIMATED)
def test_over_long_days_nine_of_ten_merge_by_p90_and_half_by_p50(setting: str):
    foretold, guessed = calibrated(SETTINGS[setting], *map(a_day, range(1, 6)), courses=9)
    assert 0.85 <= foretold.late <= 0.97
    assert 0.4 <= foretold.middle <= 0.6
    assert guessed.late < 0.85


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
def test_whatever_the_settings_forecasts_hold_more_often_than_guesses(setting: str):
    foretold, guessed = calibrated(SETTINGS[setting], a_day(1), courses=9)
    assert foretold.late > max(0.7, guessed.late)
    assert foretold.middle > guessed.middle
