"""More pull requests are put under way as long as that brings something."""

from tests.soak.pacing import FEWEST, MOST, Pacing


def settled(*rates: float) -> int:
    pacing = Pacing()
    for rate in rates:
        pacing.consider(rate)
    assert pacing.settled
    return pacing.under_way


def test_it_goes_back_to_what_was_best_when_more_brings_nothing():
    assert settled(100, 180, 185) == 2 * FEWEST


def test_it_stays_there_whatever_comes():
    assert settled(100, 101, 5000) == FEWEST


def test_there_is_an_end_to_it():
    assert settled(*(2**power for power in range(20))) == MOST
