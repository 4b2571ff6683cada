"""Rate limits are respected: pauses when the forge asks for them, and a reserve for landings."""

from collections.abc import Mapping

import pytest

from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import HostUnavailable
from tests.support.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def limits(clock: ManualClock) -> RateLimits:
    return RateLimits("a forge", clock)


def budget(left: int, renewed_at: Instant, of: int = 5000) -> Mapping[str, str]:
    return {
        "x-ratelimit-limit": str(of),
        "x-ratelimit-remaining": str(left),
        "x-ratelimit-reset": str(renewed_at // SECOND),
    }


def is_paused(limits: RateLimits) -> bool:
    try:
        limits.raise_if_paused()
    except HostUnavailable:
        return True
    return False


def has_more_than_reserve(limits: RateLimits) -> bool:
    try:
        limits.raise_if_only_reserve_left()
    except HostUnavailable:
        return False
    return True


# Pauses


def test_at_first_all_requests_are_allowed(limits: RateLimits):
    limits.raise_if_paused()
    limits.raise_if_only_reserve_left()


@pytest.mark.parametrize("status", [403, 429])
def test_requests_pause_for_the_retry_after_time_and_no_longer(limits: RateLimits, clock: ManualClock, status: int):
    limits.record_response(status, {"retry-after": "30"})
    clock.move_to(later(clock.now(), 30 * SECOND - 1))
    assert is_paused(limits)
    clock.move_to(later(clock.now(), 1))
    assert not is_paused(limits)


def test_the_message_names_the_forge_and_the_seconds(limits: RateLimits):
    limits.record_response(429, {"retry-after": "30"})
    with pytest.raises(HostUnavailable, match="a forge asks us to wait for 30 seconds"):
        limits.raise_if_paused()


def test_too_many_requests_without_a_time_pause_for_a_minute(limits: RateLimits, clock: ManualClock):
    limits.record_response(429, {})
    clock.move_to(later(clock.now(), MINUTE - 1))
    assert is_paused(limits)
    clock.move_to(later(clock.now(), 1))
    assert not is_paused(limits)


def test_requests_pause_until_an_exhausted_budget_is_renewed(limits: RateLimits, clock: ManualClock):
    renewed_at = later(clock.now(), 20 * MINUTE)
    limits.record_response(403, budget(0, renewed_at))
    clock.move_to(later(renewed_at, -1))
    assert is_paused(limits)
    clock.move_to(renewed_at)
    assert not is_paused(limits)


def test_a_403_for_another_reason_does_not_pause(limits: RateLimits, clock: ManualClock):
    limits.record_response(403, budget(4000, later(clock.now(), MINUTE)))
    limits.record_response(403, {})
    assert not is_paused(limits)


@pytest.mark.parametrize("given", ["soon", "-5", "", "1e3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_time_that_is_not_a_number_is_ignored(limits: RateLimits, given: str):
    limits.record_response(200, {"retry-after": given, "x-ratelimit-remaining": given, "x-ratelimit-reset": given})
    assert not is_paused(limits)
    assert has_more_than_reserve(limits)


# Errors


def test_repeated_failures_lengthen_the_pause(limits: RateLimits, clock: ManualClock):
    pauses = list[int]()
    for _ in range(9):
        limits.record_response(503, {})
        started_at = clock.now()
        while is_paused(limits):
            clock.move_to(later(clock.now(), SECOND))
        pauses.append((clock.now() - started_at) // SECOND)
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_concurrent_failures_count_once(limits: RateLimits, clock: ManualClock):
    for _ in range(20):
        limits.record_response(503, {})
    clock.move_to(later(clock.now(), SECOND))
    assert not is_paused(limits)


def test_a_401_pauses_requests(limits: RateLimits):
    limits.record_response(401, {})
    limits.record_response(401, {})
    assert is_paused(limits)


def test_one_good_response_resets_the_pause(limits: RateLimits, clock: ManualClock):
    for _ in range(5):
        limits.record_response(503, {})
        clock.move_to(later(clock.now(), MINUTE))
    limits.record_response(200, {})
    limits.record_response(503, {})
    assert not is_paused(limits)


# The reserve


def test_the_last_tenth_of_the_budget_is_reserved(limits: RateLimits, clock: ManualClock):
    limits.record_response(200, budget(500, later(clock.now(), MINUTE)))
    assert has_more_than_reserve(limits)
    limits.record_response(200, budget(499, later(clock.now(), MINUTE)))
    assert not has_more_than_reserve(limits)
    assert not is_paused(limits)


def test_a_renewed_budget_can_be_used_before_a_response_reports_it(limits: RateLimits, clock: ManualClock):
    limits.record_response(200, budget(0, later(clock.now(), MINUTE)))
    clock.move_to(later(clock.now(), MINUTE))
    assert has_more_than_reserve(limits)


def test_a_response_without_a_budget_changes_nothing(limits: RateLimits, clock: ManualClock):
    limits.record_response(200, budget(1, later(clock.now(), MINUTE)))
    limits.record_response(200, {})
    assert not has_more_than_reserve(limits)


def test_header_names_without_x_are_accepted(limits: RateLimits, clock: ManualClock):
    headers = budget(1, later(clock.now(), MINUTE))
    limits.record_response(200, {name.removeprefix("x-"): value for name, value in headers.items()})
    assert not has_more_than_reserve(limits)
