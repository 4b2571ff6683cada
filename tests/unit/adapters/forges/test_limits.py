"""Limits are kept: silence when it is asked for, and a reserve for landings."""

from collections.abc import Mapping

import pytest

from mergeyard.adapters.forges.limits import Limits
from mergeyard.domain.instants import MINUTE, SECOND, Instant, later
from mergeyard.ports.host import HostTrouble
from tests.support.clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def limits(clock: HandClock) -> Limits:
    return Limits("a forge", clock)


def budget(left: int, renewed_at: Instant, of: int = 5000) -> Mapping[str, str]:
    return {
        "x-ratelimit-limit": str(of),
        "x-ratelimit-remaining": str(left),
        "x-ratelimit-reset": str(renewed_at // SECOND),
    }


def is_silent(limits: Limits) -> bool:
    try:
        limits.check()
    except HostTrouble:
        return True
    return False


def spares(limits: Limits) -> bool:
    try:
        limits.spare()
    except HostTrouble:
        return False
    return True


# Silence


def test_at_first_everything_may_be_asked(limits: Limits):
    limits.check()
    limits.spare()


@pytest.mark.parametrize("status", [403, 429])
def test_whoever_is_told_to_wait_waits_so_long_and_no_longer(limits: Limits, clock: HandClock, status: int):
    limits.note(status, {"retry-after": "30"})
    clock.move_to(later(clock.now(), 30 * SECOND - 1))
    assert is_silent(limits)
    clock.move_to(later(clock.now(), 1))
    assert not is_silent(limits)


def test_the_words_name_the_forge_and_the_seconds(limits: Limits):
    limits.note(429, {"retry-after": "30"})
    with pytest.raises(HostTrouble, match="a forge asks us to wait for 30 seconds"):
        limits.check()


def test_too_many_requests_without_any_time_are_a_minute(limits: Limits, clock: HandClock):
    limits.note(429, {})
    clock.move_to(later(clock.now(), MINUTE - 1))
    assert is_silent(limits)
    clock.move_to(later(clock.now(), 1))
    assert not is_silent(limits)


def test_a_budget_that_is_used_up_is_waited_for_until_it_is_renewed(limits: Limits, clock: HandClock):
    renewed_at = later(clock.now(), 20 * MINUTE)
    limits.note(403, budget(0, renewed_at))
    clock.move_to(later(renewed_at, -1))
    assert is_silent(limits)
    clock.move_to(renewed_at)
    assert not is_silent(limits)


def test_what_is_forbidden_for_another_reason_is_no_reason_to_wait(limits: Limits, clock: HandClock):
    limits.note(403, budget(4000, later(clock.now(), MINUTE)))
    limits.note(403, {})
    assert not is_silent(limits)


@pytest.mark.parametrize("given", ["soon", "-5", "", "1e3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_time_that_is_no_number_counts_as_none(limits: Limits, given: str):
    limits.note(200, {"retry-after": given, "x-ratelimit-remaining": given, "x-ratelimit-reset": given})
    assert not is_silent(limits)
    assert spares(limits)


# Trouble


def test_whoever_fails_again_and_again_is_asked_ever_more_seldom(limits: Limits, clock: HandClock):
    pauses = list[int]()
    for _ in range(9):
        limits.note(503, {})
        begun = clock.now()
        while is_silent(limits):
            clock.move_to(later(clock.now(), SECOND))
        pauses.append((clock.now() - begun) // SECOND)
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_what_fails_at_the_same_time_counts_once(limits: Limits, clock: HandClock):
    for _ in range(20):
        limits.note(503, {})
    clock.move_to(later(clock.now(), SECOND))
    assert not is_silent(limits)


def test_a_key_that_does_not_fit_is_not_tried_at_once_again(limits: Limits):
    limits.note(401, {})
    limits.note(401, {})
    assert is_silent(limits)


def test_one_good_answer_and_all_is_well(limits: Limits, clock: HandClock):
    for _ in range(5):
        limits.note(503, {})
        clock.move_to(later(clock.now(), MINUTE))
    limits.note(200, {})
    limits.note(503, {})
    assert not is_silent(limits)


# The reserve


def test_the_last_tenth_is_kept(limits: Limits, clock: HandClock):
    limits.note(200, budget(500, later(clock.now(), MINUTE)))
    assert spares(limits)
    limits.note(200, budget(499, later(clock.now(), MINUTE)))
    assert not spares(limits)
    assert not is_silent(limits)


def test_a_renewed_budget_may_be_spent_before_anybody_told_of_it(limits: Limits, clock: HandClock):
    limits.note(200, budget(0, later(clock.now(), MINUTE)))
    clock.move_to(later(clock.now(), MINUTE))
    assert spares(limits)


def test_an_answer_that_says_nothing_of_a_budget_changes_nothing(limits: Limits, clock: HandClock):
    limits.note(200, budget(1, later(clock.now(), MINUTE)))
    limits.note(200, {})
    assert not spares(limits)


def test_names_without_an_x_are_understood_as_well(limits: Limits, clock: HandClock):
    headers = budget(1, later(clock.now(), MINUTE))
    limits.note(200, {name.removeprefix("x-"): value for name, value in headers.items()})
    assert not spares(limits)
