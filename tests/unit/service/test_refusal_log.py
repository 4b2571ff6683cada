"""Refused requests are logged and counted, and no client can fill the log with them."""

import asyncio
from collections.abc import Callable
from typing import Any

from structlog.testing import capture_logs

from mergeyard.domain.instants import Instant
from mergeyard.domain.tokens import Token
from mergeyard.service.background import Background
from mergeyard.service.measuring import REGISTRY
from mergeyard.service.refusal_log import MAX_LINES, MAX_LINES_PER_ADDRESS, WINDOW_MS, RefusalKind, RefusalLog
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock

REJECTED = RefusalKind.TOKEN_REJECTED


class Desk:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.background = Background(self.clock)
        self.refusals = RefusalLog(self.clock, self.background)

    def record(self, times: int, address: Callable[[int], str] = lambda _: "192.0.2.7") -> None:
        for number in range(times):
            self.refusals.record(REJECTED, address(number), path="/v1/getQueue")

    def let_a_window_pass(self) -> None:
        self.clock.move_to(Instant(self.clock.now() + WINDOW_MS))


def counted() -> float:
    return REGISTRY.get_sample_value("mergeyard_refused_requests_total", {"kind": REJECTED}) or 0.0


def suppressed(lines: list[Any]) -> dict[str, int]:
    return {line["client"]: line["count"] for line in lines if line["event"] == "refusals_suppressed"}


@asynchronous
async def test_a_refusal_names_the_token_where_it_is_known():
    token = Token(id="t1", name="ci", digest=b"", created_at=Instant(0))
    with capture_logs() as lines:
        Desk().refusals.record(RefusalKind.SCOPE_MISSING, "192.0.2.7", token, path="/v1/createQueue", request_id="r1")
    assert lines == [
        {
            "event": "scope_missing", "log_level": "warning", "client": "192.0.2.7", "token_id": "t1",
            "token_name": "ci", "path": "/v1/createQueue", "request_id": "r1",
        }
    ]  # fmt: skip


@asynchronous
async def test_an_address_gets_a_few_lines_a_minute_and_the_rest_is_counted_and_reported():
    desk, before = Desk(), counted()
    with capture_logs() as lines:
        desk.record(MAX_LINES_PER_ADDRESS + 30)
        assert len(lines) == MAX_LINES_PER_ADDRESS
        await desk.background.close()
        desk.let_a_window_pass()
        desk.record(1)
    assert counted() - before == MAX_LINES_PER_ADDRESS + 31
    assert suppressed(lines) == {"192.0.2.7": 30}
    assert [line["event"] for line in lines[MAX_LINES_PER_ADDRESS:]] == ["refusals_suppressed", "token_rejected"]


@asynchronous
async def test_what_was_suppressed_is_reported_without_another_refusal():
    desk = Desk()
    with capture_logs() as lines:
        slept = desk.clock.next_to_sleep()
        desk.record(MAX_LINES_PER_ADDRESS + 1)
        async with asyncio.timeout(5):
            await slept
        desk.let_a_window_pass()
        (task,) = desk.background._tasks  # pyright: ignore[reportPrivateUsage]
        await task
    assert suppressed(lines) == {"192.0.2.7": 1}


@asynchronous
async def test_many_addresses_together_get_a_limited_number_of_lines():
    desk = Desk()
    with capture_logs() as lines:
        desk.record(3 * MAX_LINES, address=lambda number: f"2001:db8::{number:x}")
        assert len(lines) == MAX_LINES
        desk.let_a_window_pass()
        desk.record(1)
        await desk.background.close()
    assert suppressed(lines) == {"others": 2 * MAX_LINES}


@asynchronous
async def test_one_address_does_not_silence_another():
    desk = Desk()
    with capture_logs() as lines:
        desk.record(50)
        desk.record(1, address=lambda _: "192.0.2.8")
        await desk.background.close()
    assert lines[-1]["client"] == "192.0.2.8"
