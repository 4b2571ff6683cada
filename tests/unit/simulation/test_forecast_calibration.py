"""Calibration of forecasts: compared with simulated days of which the queue knows only its own history."""

import pytest

from tests.support.forecast_calibration import CONFIGS, a_day_trace, measure_calibration

WELL_CALIBRATED = ("single mode", "lanes")


@pytest.mark.long
def test_on_a_short_day_forecasts_hold_more_often_than_estimates():
    forecast, estimate = measure_calibration(CONFIGS["single mode"], a_day_trace(1, hours=5), simulations=9)
    assert forecast.merged > 20
    assert 0.8 <= forecast.p90_rate <= 1
    assert 0.3 <= forecast.median_rate <= 0.7
    assert estimate.p90_rate < forecast.p90_rate
    assert estimate.median_rate < forecast.median_rate


@pytest.mark.long
@pytest.mark.parametrize("setting", WELL_CALIBRATED)
def test_over_long_days_90_percent_merge_by_p90_and_half_by_p50(setting: str):
    forecast, estimate = measure_calibration(CONFIGS[setting], *map(a_day_trace, range(1, 6)), simulations=9)
    assert 0.85 <= forecast.p90_rate <= 0.97
    assert 0.4 <= forecast.median_rate <= 0.6
    assert estimate.p90_rate < 0.85


@pytest.mark.long
@pytest.mark.parametrize("setting", CONFIGS)
def test_with_all_settings_forecasts_hold_more_often_than_estimates(setting: str):
    forecast, estimate = measure_calibration(CONFIGS[setting], a_day_trace(1), simulations=9)
    assert forecast.p90_rate > max(0.7, estimate.p90_rate)
    assert forecast.median_rate > estimate.median_rate
