"""Forecasts and large bodies are computed in other processes, which are reused and end with this one."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from subprocess import Popen

import pytest
from msgspec import json, msgpack, to_builtins

from mergeyard.adapters.subprocesses import ScribeApart, SubprocessForecaster
from mergeyard.api.body_parser_process import answer
from mergeyard.api.large_bodies import Question
from mergeyard.domain.queue import Queue
from mergeyard.ports.external import BodyParserUnavailable, ForecastUnavailable
from mergeyard.simulation.forecast import MAX_SIMULATIONS, forecast_merges
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_world
from tests.support.fake_api import PR
from tests.support.forecasts import with_certain_outcomes
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
    assert forecaster.process is not None
    return forecaster.process


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


@asynchronous
async def test_a_forecast_that_takes_too_long_is_aborted_with_its_process():
    async with open_forecaster(SubprocessForecaster(timeout_s=0.001)) as forecaster:
        with pytest.raises(ForecastUnavailable, match=r"longer than 0\.001 seconds"):
            await forecaster.forecast(a_queue(), START_TIME)
        assert forecaster.process is None


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


QUESTION = msgpack.encode(Question("setImpactedTargets", repeatable=True))
MIB = 1024 * 1024


def a_body(names: int) -> bytes:
    return json.encode(PR | {"impactedTargets": [f"//area/of/many/more:{number}" for number in range(names)]})


@asynccontextmanager
async def open_parser(parser: ScribeApart | None = None) -> AsyncGenerator[ScribeApart]:
    parser = parser or ScribeApart()
    try:
        yield parser
    finally:
        await parser.close()


def parser_process_of(parser: ScribeApart) -> Popen[bytes]:
    assert parser.process is not None
    return parser.process


def sort_names(result: tuple[bytes, bytes]) -> tuple[bytes, list[str]]:
    """A set has another order in every process."""
    parsed, names = result
    return parsed, sorted(json.decode(names)["names"])


@pytest.mark.parametrize("names", [0, 1, 100_000])
@asynchronous
async def test_the_parser_process_returns_the_same_as_this_process(names: int):
    async with open_parser() as parser:
        result = await asyncio.to_thread(parser.parse, QUESTION, a_body(names))
        assert sort_names(result) == sort_names(answer(QUESTION, a_body(names)))


@asynchronous
async def test_the_parser_process_has_a_lower_priority():
    async with open_parser() as parser:
        parser.parse(QUESTION, b"{}")
        pid = parser_process_of(parser).pid
        assert pid != os.getpid()
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


@asynchronous
async def test_concurrent_bodies_wait_for_the_same_process():
    async with open_parser() as parser:
        results = await asyncio.gather(
            *(asyncio.to_thread(parser.parse, QUESTION, a_body(names)) for names in (1, 20_000, 3))
        )
        process = parser_process_of(parser)
        assert [len(json.decode(names)["names"]) for _, names in results] == [1, 20_000, 3]
        parser.parse(QUESTION, a_body(1))
        assert parser_process_of(parser) is process


@asynchronous
async def test_closing_the_parser_ends_its_process():
    parser = ScribeApart()
    parser.parse(QUESTION, b"{}")
    process = parser_process_of(parser)
    await parser.close()
    assert process.returncode is not None
    assert parser.process is None


@asynchronous
async def test_the_parser_process_ends_when_its_input_is_closed():
    async with open_parser() as parser:
        parser.parse(QUESTION, b"{}")
        process = parser_process_of(parser)
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.to_thread(process.wait) == 0


@asynchronous
async def test_a_body_that_takes_too_long_is_aborted_with_its_process():
    async with open_parser(ScribeApart(seconds=0.001)) as parser:
        with pytest.raises(BodyParserUnavailable):
            await asyncio.to_thread(parser.parse, QUESTION, a_body(100_000))
        assert parser.process is None


@asynchronous
async def test_a_killed_parser_process_is_replaced():
    async with open_parser() as parser:
        parser.parse(QUESTION, b"{}")
        os.kill(parser_process_of(parser).pid, signal.SIGKILL)
        parser_process_of(parser).wait()
        with pytest.raises(BodyParserUnavailable, match="broke off"):
            parser.parse(QUESTION, bytes(MIB))
        assert parser.parse(QUESTION, a_body(1)) == answer(QUESTION, a_body(1))
