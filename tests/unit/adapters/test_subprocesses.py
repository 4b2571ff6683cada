"""Forecasts and replays are computed in another process, which ends when the caller stops waiting."""

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from msgspec import json, to_builtins

from mergeyard.adapters.subprocesses import REPLAY_MODULE, SubprocessForecaster, replay_in_subprocess
from mergeyard.domain.queue import Queue
from mergeyard.ports.external import ForecastUnavailable
from mergeyard.simulation.forecast import MAX_SIMULATIONS, forecast_merges
from mergeyard.simulation.whatif import WhatIfRequest, WhatIfResult, compute_whatif
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_world
from tests.support.forecasts import with_certain_outcomes
from tests.support.replay_histories import a_history, failed_arrival, merged_arrival, passed_run
from tests.support.world.world import START_TIME


def a_queue(prs: int = 2) -> Queue:
    return with_certain_outcomes(a_world(prs=prs).queue, prs)


@asynccontextmanager
async def open_forecaster(forecaster: SubprocessForecaster | None = None) -> AsyncGenerator[SubprocessForecaster]:
    forecaster = forecaster or SubprocessForecaster()
    try:
        yield forecaster
    finally:
        await forecaster.close()


def forecast_process_of(forecaster: SubprocessForecaster) -> Process:
    assert forecaster.simulation.process is not None
    return forecaster.simulation.process


@pytest.mark.long
@asynchronous
async def test_the_forecast_process_returns_the_same_as_this_process():
    expected = forecast_merges(a_queue(), START_TIME, map(Random, range(MAX_SIMULATIONS)))
    async with open_forecaster() as forecaster:
        assert to_builtins(await forecaster.forecast(a_queue(), START_TIME)) == to_builtins(expected)


@asynchronous
async def test_the_forecast_process_has_a_lower_priority():
    async with open_forecaster() as forecaster:
        await forecaster.forecast(a_queue(), START_TIME)
        pid = forecast_process_of(forecaster).pid
        assert pid != os.getpid()
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


@pytest.mark.long
@asynchronous
async def test_concurrent_forecasts_wait_for_the_same_process():
    async with open_forecaster() as forecaster:
        forecasts = await asyncio.gather(*(forecaster.forecast(a_queue(prs), START_TIME) for prs in (1, 2, 3)))
        assert [len(forecast) for forecast in forecasts] == [1, 2, 3]
        process = forecast_process_of(forecaster)
        await forecaster.forecast(a_queue(), START_TIME)
        assert forecast_process_of(forecaster) is process


@asynchronous
async def test_closing_the_forecaster_ends_its_process():
    forecaster = SubprocessForecaster()
    await forecaster.forecast(a_queue(), START_TIME)
    process = forecast_process_of(forecaster)
    await forecaster.close()
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


@asynchronous
async def test_the_forecast_process_ends_when_its_input_is_closed():
    async with open_forecaster() as forecaster:
        await forecaster.forecast(a_queue(), START_TIME)
        process = forecast_process_of(forecaster)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0


ECHO = "from mergeyard.simulation.process import serve_requests; serve_requests(lambda request: request * 100_000)"


@pytest.mark.parametrize("sent", [b"\0\0\0\x02ab", b"\0\0\0\x02a", b"\0\0"])
def test_a_simulation_process_whose_server_was_killed_ends_without_a_traceback(sent: bytes):
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    os.close(reader)
    _, errors = process.communicate(sent)
    assert (process.returncode, errors) == (0, b"")


@asynchronous
async def test_a_forecast_that_takes_too_long_is_aborted_with_its_process():
    async with open_forecaster(SubprocessForecaster(timeout_s=0.001)) as forecaster:
        with pytest.raises(ForecastUnavailable, match="takes too long"):
            await forecaster.forecast(a_queue(), START_TIME)
        assert forecaster.simulation.process is None


@pytest.mark.long
@asynchronous
async def test_the_result_of_a_cancelled_forecast_is_not_returned_to_the_next_caller():
    async with open_forecaster() as forecaster:
        for steps in (1, 10, 100):
            forecasting = asyncio.create_task(forecaster.forecast(a_queue(3), START_TIME))
            for _ in range(steps):
                await asyncio.sleep(0)
            forecasting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await forecasting
            assert len(await forecaster.forecast(a_queue(2), START_TIME)) == 2


@asynchronous
async def test_a_killed_forecast_process_is_replaced():
    async with open_forecaster() as forecaster:
        await forecaster.forecast(a_queue(), START_TIME)
        os.kill(forecast_process_of(forecaster).pid, signal.SIGKILL)
        await forecast_process_of(forecaster).wait()
        with pytest.raises(ForecastUnavailable, match="the forecast process failed"):
            await forecaster.forecast(a_queue(), START_TIME)
        assert len(await forecaster.forecast(a_queue(), START_TIME)) == 2


MAX_WAIT_S = 10
"""Generous, for a busy machine."""


def replay_processes() -> set[str]:
    """The process ids of the replay processes that this process has started."""
    started = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {child for child in started if REPLAY_MODULE.encode() in Path(f"/proc/{child}/cmdline").read_bytes()}


async def replay(request: WhatIfRequest, timeout_s: float = 60) -> WhatIfResult:
    return json.decode(await replay_in_subprocess(json.encode(request), timeout_s), type=WhatIfResult)


@asynchronous
async def test_a_replay_in_a_subprocess_gives_the_same_result():
    request = WhatIfRequest(
        a_history(merged_arrival(at=0, until=10), runs=[passed_run(0, since=0, until=10)]), {"concurrency": 2}
    )
    assert await replay(request) == compute_whatif(request)


def a_slow_replay() -> WhatIfRequest:
    """Concurrency 100, and three of four pull requests fail: its replay takes minutes."""
    arrivals = [failed_arrival(at=0, until=10) if index % 4 else merged_arrival(at=0, until=10) for index in range(500)]
    return WhatIfRequest(a_history(*arrivals), {"concurrency": 100})


@asynchronous
async def test_cancelling_the_caller_ends_the_process():
    task = asyncio.create_task(replay(a_slow_replay()))
    while not (started := replay_processes()):
        await asyncio.wait([task], timeout=0.01)
    task.cancel()
    async with asyncio.timeout(MAX_WAIT_S):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert started.isdisjoint(replay_processes())


@asynchronous
async def test_a_replay_that_fails_is_an_error():
    history = a_history(merged_arrival(at=0, until=10), runs=[passed_run(0, since=0, until=10)])
    with pytest.raises(EOFError):
        await replay(WhatIfRequest(history, {"concurrency": "many"}))
    assert not replay_processes()


@asynchronous
async def test_a_replay_that_takes_too_long_is_ended():
    async with asyncio.timeout(MAX_WAIT_S):
        with pytest.raises(TimeoutError):
            await replay(a_slow_replay(), 1)
    assert not replay_processes()
