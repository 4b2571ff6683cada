"""The load grows as long as the throughput does."""

from tests.soak.load_control import MAX_UNDER_WAY, MIN_UNDER_WAY, LoadController


def settled_load(*rates: float) -> int:
    controller = LoadController()
    for rate in rates:
        controller.adjust(rate)
    assert controller.settled
    return controller.under_way


def test_returns_to_the_best_load_when_more_gains_nothing():
    assert settled_load(100, 180, 185) == 2 * MIN_UNDER_WAY


def test_settled_load_does_not_change():
    assert settled_load(100, 101, 5000) == MIN_UNDER_WAY


def test_load_is_limited():
    assert settled_load(*(2**power for power in range(20))) == MAX_UNDER_WAY
