"""Rate limits are respected: pauses when the forge asks for them, and the last requests are kept for merges."""

import asyncio
from collections.abc import Mapping

import pytest

from mergeyard.adapters.forges.rate_limits import GITHUB_CLOUD_PACE, ORDINARY_WRITES, WRITES, RateLimits, WritePace
from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import AllowanceKept, HostUnavailable, RateLimited, RequestPurpose, requests_for
from tests.support.asynchronous import asynchronous
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


def is_paused(limits: RateLimits, *kinds: str) -> bool:
    try:
        limits.raise_if_paused(*kinds)
    except HostUnavailable:
        return True
    return False


def find_stopped(limits: RateLimits) -> list[RequestPurpose]:
    """The purposes whose requests are not sent."""
    stopped = list[RequestPurpose]()
    for purpose in RequestPurpose:
        try:
            with requests_for(purpose):
                limits.raise_if_kept()
        except RateLimited:
            stopped.append(purpose)
    return stopped


# Pauses


def test_at_first_all_requests_are_allowed(limits: RateLimits):
    limits.raise_if_paused()
    assert find_stopped(limits) == []


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


def measure_pause(limits: RateLimits, clock: ManualClock, *kinds: str) -> int:
    started_at = clock.now()
    while is_paused(limits, *kinds):
        clock.move_to(later(clock.now(), SECOND))
    return (clock.now() - started_at) // SECOND


@pytest.mark.parametrize("kind", ["", "POST /notes"])
def test_a_limit_that_is_exceeded_again_and_again_doubles_the_pause(limits: RateLimits, clock: ManualClock, kind: str):
    pauses = list[int]()
    for _ in range(8):
        limits.record_response(429, {}, kind)
        pauses.append(measure_pause(limits, clock, kind))
        clock.move_to(later(clock.now(), 30 * SECOND))
        limits.record_response(200, {})
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_limit_that_is_exceeded_much_later_starts_with_a_minute(limits: RateLimits, clock: ManualClock):
    for _ in range(3):
        limits.record_response(429, {})
        assert measure_pause(limits, clock) == 60
        clock.move_to(later(clock.now(), MINUTE))


def test_concurrent_requests_that_exceed_the_same_limit_count_once(limits: RateLimits, clock: ManualClock):
    for _ in range(8):
        limits.record_response(429, {})
    assert measure_pause(limits, clock) == 60


def test_a_limit_of_one_kind_of_call_pauses_no_other(limits: RateLimits, clock: ManualClock):
    limits.record_response(429, {"retry-after": "30"}, "POST /notes")
    assert is_paused(limits, "POST /notes")
    assert not is_paused(limits)
    assert not is_paused(limits, "GET /notes")
    limits.record_response(429, {"retry-after": "40"})
    assert is_paused(limits, "GET /notes")
    assert measure_pause(limits, clock, "POST /notes") == 40


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
    assert find_stopped(limits) == []


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


# What is kept

DISPLAY, WAITING, MERGING = RequestPurpose


@pytest.mark.parametrize(
    ("left", "stopped"),
    [
        (1000, []),
        (999, [DISPLAY]),
        (500, [DISPLAY]),
        (499, [DISPLAY, WAITING]),
        (1, [DISPLAY, WAITING]),
        (0, [DISPLAY, WAITING, MERGING]),
    ],
)
def test_requests_stop_in_the_order_of_their_purposes(
    limits: RateLimits, clock: ManualClock, left: int, stopped: list[RequestPurpose]
):
    limits.record_response(200, budget(left, later(clock.now(), MINUTE)))
    assert find_stopped(limits) == stopped
    assert not is_paused(limits)


def test_a_stopped_request_knows_when_it_can_be_sent(limits: RateLimits, clock: ManualClock):
    renewed_at = later(clock.now(), MINUTE)
    limits.record_response(200, budget(499, renewed_at))
    with pytest.raises(AllowanceKept, match="allows 499 more requests for now") as kept:
        limits.raise_if_kept()
    assert (kept.value.until, kept.value.wait_s) == (renewed_at, 60)


def test_a_limit_of_the_forge_is_no_outage_and_an_outage_is_no_limit(limits: RateLimits, clock: ManualClock):
    for _ in range(2):
        limits.record_response(503, {})
    with pytest.raises(HostUnavailable, match="a forge failed: the next request is sent in 1 seconds") as failed:
        limits.raise_if_paused()
    assert not isinstance(failed.value, RateLimited)
    clock.move_to(later(clock.now(), SECOND))
    limits.record_response(429, {"retry-after": "30"})
    limits.record_response(503, {})
    with pytest.raises(RateLimited) as limited:
        limits.raise_if_paused()
    assert limited.value.until == later(clock.now(), 30 * SECOND), "the failure does not end the pause"


def test_a_renewed_budget_can_be_used_before_a_response_reports_it(limits: RateLimits, clock: ManualClock):
    limits.record_response(200, budget(0, later(clock.now(), MINUTE)))
    clock.move_to(later(clock.now(), MINUTE))
    assert find_stopped(limits) == []


def test_a_response_without_a_budget_changes_nothing(limits: RateLimits, clock: ManualClock):
    limits.record_response(200, budget(1, later(clock.now(), MINUTE)))
    limits.record_response(200, {})
    assert find_stopped(limits) == [DISPLAY, WAITING]


def test_header_names_without_x_are_accepted(limits: RateLimits, clock: ManualClock):
    headers = budget(1, later(clock.now(), MINUTE))
    limits.record_response(200, {name.removeprefix("x-"): value for name, value in headers.items()})
    assert find_stopped(limits) == [DISPLAY, WAITING]


# Writes


PACE = WritePace(interval_ms=SECOND, per_minute=3, per_hour=5)
ORDINARY = (WRITES, ORDINARY_WRITES)


def paced(clock: ManualClock) -> RateLimits:
    return RateLimits("a forge", clock, PACE)


async def write(limits: RateLimits, *, urgent: bool = False) -> None:
    async with asyncio.timeout(10), limits.write(*([WRITES] if urgent else ORDINARY)):
        await asyncio.sleep(0)


async def write_at_once(limits: RateLimits, clock: ManualClock) -> None:
    """Fails if the write has to wait."""
    await write(limits)
    assert clock.next_wakeup() is None


@asynchronous
async def test_a_write_waits_until_a_second_after_the_last_one():
    clock = ManualClock()
    limits = paced(clock)
    await write_at_once(limits, clock)
    clock.move_to(later(clock.now(), 300))
    second = asyncio.create_task(write(limits))
    await clock.next_sleep()
    assert clock.next_wakeup() == later(clock.now(), 700)
    clock.move_to(later(clock.now(), 700))
    await second
    clock.move_to(later(clock.now(), SECOND))
    await write_at_once(limits, clock)


@asynchronous
async def test_a_write_waits_for_the_reply_to_the_one_before_it():
    clock = ManualClock()
    limits = paced(clock)
    async with asyncio.TaskGroup() as tasks, limits.write(*ORDINARY):
        clock.move_to(later(clock.now(), MINUTE))
        second = tasks.create_task(write(limits))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not second.done()


@pytest.mark.parametrize(("pause", "count", "seconds"), [(SECOND, 3, 58), (MINUTE, 5, 3360)])
@asynchronous
async def test_the_writes_of_a_minute_and_of_an_hour_are_limited(pause: int, count: int, seconds: int):
    clock = ManualClock()
    limits, started_at = paced(clock), clock.now()
    for number in range(count):
        clock.move_to(later(started_at, number * pause))
        await write_at_once(limits, clock)
    with pytest.raises(
        HostUnavailable,
        match=rf"a forge limits how much we write: the next comment or check can be sent in {seconds} seconds",
    ):
        await write(limits)
    await write(limits, urgent=True)


@asynchronous
async def test_urgent_writes_do_not_wait_but_count():
    clock = ManualClock()
    limits = paced(clock)
    for _ in range(10):
        await write(limits, urgent=True)
    assert clock.next_wakeup() is None
    with pytest.raises(HostUnavailable, match="in 3600 seconds"):
        await write(limits)
    clock.move_to(later(clock.now(), HOUR))
    await write_at_once(limits, clock)


@pytest.mark.parametrize("urgent", [False, True])
@asynchronous
async def test_writes_that_a_pause_stops_do_not_count(urgent: bool):
    clock = ManualClock()
    limits = paced(clock)
    limits.record_response(429, {"retry-after": "600"}, WRITES)
    for _ in range(PACE.per_hour):
        with pytest.raises(HostUnavailable, match="wait for 600 seconds"):
            await write(limits, urgent=urgent)
    clock.move_to(later(clock.now(), 600 * SECOND))
    await write_at_once(limits, clock)


@asynchronous
async def test_a_pause_that_starts_while_a_write_waits_stops_it():
    clock = ManualClock()
    limits = paced(clock)
    await write(limits)
    second = asyncio.create_task(write(limits))
    await clock.next_sleep()
    limits.record_response(429, {"retry-after": "30"}, ORDINARY_WRITES)
    clock.move_to(later(clock.now(), SECOND))
    with pytest.raises(HostUnavailable, match="wait for 29 seconds"):
        await second


@asynchronous
async def test_only_some_writes_wait_at_a_time():
    clock = ManualClock()
    limits = RateLimits("a forge", clock, GITHUB_CLOUD_PACE)
    await write(limits)
    waiting = [asyncio.create_task(write(limits)) for _ in range(30)]
    await clock.next_sleep()
    with pytest.raises(HostUnavailable, match="in 30 seconds"):
        await write(limits)
    for _ in waiting:
        clock.move_to(later(clock.now(), SECOND))
        while clock.next_wakeup() is None and not all(task.done() for task in waiting):
            await asyncio.sleep(0)
    await asyncio.gather(*waiting)


@asynchronous
async def test_without_a_pace_writes_do_not_wait():
    clock = ManualClock()
    limits = RateLimits("a forge", clock)
    for _ in range(1000):
        await write_at_once(limits, clock)


async def count_writes(limits: RateLimits, clock: ManualClock, duration_ms: int, purpose: RequestPurpose) -> list[int]:
    """How many writes of this purpose are sent in each minute, if one is wanted each second."""
    per_minute = list[int]()
    ends_at = later(clock.now(), duration_ms)
    while clock.now() < ends_at:
        if (ends_at - clock.now()) % MINUTE == 0:
            per_minute.append(0)
        with requests_for(purpose):
            wanted = asyncio.create_task(write(limits))
        for _ in range(5):
            await asyncio.sleep(0)
        clock.move_to(later(clock.now(), SECOND))
        try:
            await wanted
            per_minute[-1] += 1
        except AllowanceKept:
            pass
    return per_minute


@asynchronous
async def test_answers_are_spread_over_the_hour_and_no_silence_is_longer_than_two_minutes():
    clock = ManualClock()
    limits = RateLimits("a forge", clock, GITHUB_CLOUD_PACE)
    per_minute = await count_writes(limits, clock, 2 * HOUR, WAITING)
    silences = [sum(per_minute[start : start + 3]) for start in range(len(per_minute) - 2)]
    assert min(silences) > 0
    hours = [sum(per_minute[start : start + 60]) for start in range(61)]
    assert 300 < max(hours) <= 400, "GitHub accepts 500"


@asynchronous
async def test_progress_gets_half_of_an_hour_and_answers_get_the_rest():
    clock = ManualClock()
    limits = RateLimits("a forge", clock, GITHUB_CLOUD_PACE)
    assert sum(await count_writes(limits, clock, 30 * MINUTE, DISPLAY)) == 200
    assert sum(await count_writes(limits, clock, 10 * MINUTE, WAITING)) > 60
    assert sum(await count_writes(limits, clock, 10 * MINUTE, DISPLAY)) == 0
