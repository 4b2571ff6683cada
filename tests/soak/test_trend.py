"""The slope of a line is found, together with how sure one may be of it."""

from random import Random

import pytest

from tests.soak.trend import Slope, slope


def test_a_straight_line_has_its_slope_and_no_error():
    found = slope(range(100), [3.0 + 2.0 * at for at in range(100)])
    assert found.each == pytest.approx(2.0)
    assert found.error == pytest.approx(0.0, abs=1e-9)


def test_noise_is_not_taken_for_growth():
    random = Random(1)
    found = slope(range(1000), [random.gauss(100, 10) for _ in range(1000)])
    assert found.surely_more_than < 0 < found.each + 3 * found.error


def test_growth_is_seen_through_noise():
    random = Random(1)
    found = slope(range(1000), [random.gauss(100, 10) + at / 10 for at in range(1000)])
    assert found.surely_more_than > 0.08


@pytest.mark.parametrize("across", [[], [1.0], [1.0, 1.0, 1.0, 1.0]])
def test_of_too_little_nothing_is_said(across: list[float]):
    assert slope(across, across) == Slope(0.0, float("inf"))
