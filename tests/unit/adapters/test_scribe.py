"""Reading in another process: it stays for the next body, and ends when nobody asks any more."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from subprocess import Popen

import pytest
from msgspec import json, msgpack

from mergeyard.adapters.scribe import ScribeApart
from mergeyard.api.apart import Question, answer
from mergeyard.ports.scribe import ScribeTrouble
from tests.support.asynchronous import asynchronous
from tests.support.door import PR

QUESTION = msgpack.encode(Question("setImpactedTargets", repeatable=True))
MIB = 1024 * 1024


def a_body(names: int) -> bytes:
    return json.encode(PR | {"impactedTargets": [f"//area/of/many/more:{number}" for number in range(names)]})


@asynccontextmanager
async def a_scribe(**wishes: float) -> AsyncGenerator[ScribeApart]:
    scribe = ScribeApart(**wishes)
    try:
        yield scribe
    finally:
        await scribe.close()


def process_of(scribe: ScribeApart) -> Popen[bytes]:
    assert scribe.process is not None
    return scribe.process


def sorted_out(answered: tuple[bytes, bytes]) -> tuple[bytes, list[str]]:
    """A set has another order in every process."""
    said, long = answered
    return said, sorted(json.decode(long)["names"])


@pytest.mark.parametrize("names", [0, 1, 100_000])
@asynchronous
async def test_it_says_what_would_have_been_said_here(names: int):
    async with a_scribe() as scribe:
        there = await asyncio.to_thread(scribe.read, QUESTION, a_body(names))
        assert sorted_out(there) == sorted_out(answer(QUESTION, a_body(names)))


@asynchronous
async def test_it_works_in_a_process_of_its_own_that_others_go_before():
    async with a_scribe() as scribe:
        scribe.read(QUESTION, b"{}")
        pid = process_of(scribe).pid
        assert pid != os.getpid()
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


@asynchronous
async def test_whoever_asks_meanwhile_waits_and_is_told_by_the_same():
    async with a_scribe() as scribe:
        told = await asyncio.gather(
            *(asyncio.to_thread(scribe.read, QUESTION, a_body(names)) for names in (1, 20_000, 3))
        )
        process = process_of(scribe)
        assert [len(json.decode(long)["names"]) for _, long in told] == [1, 20_000, 3]
        scribe.read(QUESTION, a_body(1))
        assert process_of(scribe) is process


@asynchronous
async def test_when_it_is_closed_the_process_has_ended():
    scribe = ScribeApart()
    scribe.read(QUESTION, b"{}")
    process = process_of(scribe)
    await scribe.close()
    assert process.returncode is not None
    assert scribe.process is None


@asynchronous
async def test_when_whoever_asked_has_died_it_ends_by_itself():
    async with a_scribe() as scribe:
        scribe.read(QUESTION, b"{}")
        process = process_of(scribe)
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.to_thread(process.wait) == 0


@asynchronous
async def test_what_takes_too_long_is_given_up_together_with_the_process():
    async with a_scribe(seconds=0.001) as scribe:
        with pytest.raises(ScribeTrouble):
            await asyncio.to_thread(scribe.read, QUESTION, a_body(100_000))
        assert scribe.process is None


@asynchronous
async def test_after_one_that_was_killed_another_answers():
    async with a_scribe() as scribe:
        scribe.read(QUESTION, b"{}")
        os.kill(process_of(scribe).pid, signal.SIGKILL)
        process_of(scribe).wait()
        with pytest.raises(ScribeTrouble, match="broke off"):
            scribe.read(QUESTION, bytes(MIB))
        assert scribe.read(QUESTION, a_body(1)) == answer(QUESTION, a_body(1))
