"""Foretelling in another process: it stays for the next question, and ends when nobody asks any more."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import pytest
from msgspec import to_builtins

from mergeyard.adapters.foretelling import ForetellerApart
from mergeyard.domain.queue import Queue
from mergeyard.ports.foretelling import ForetellingTrouble
from mergeyard.sim.foretelling.__main__ import MOST
from mergeyard.sim.foretelling.forecast import foretell
from mergeyard.sim.world import START
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_yard
from tests.support.foretelling import certain


def a_queue(prs: int = 2) -> Queue:
    return certain(a_yard(prs=prs).queue, prs)


@asynccontextmanager
async def a_foreteller(**wishes: float) -> AsyncGenerator[ForetellerApart]:
    foreteller = ForetellerApart(**wishes)
    try:
        yield foreteller
    finally:
        await foreteller.close()


def process_of(foreteller: ForetellerApart) -> Process:
    assert foreteller.process is not None
    return foreteller.process


@asynchronous
async def test_it_says_what_would_have_been_said_here():
    here = foretell(a_queue(), START, map(Random, range(MOST)))
    async with a_foreteller() as foreteller:
        assert to_builtins(await foreteller.foretell(a_queue(), START)) == to_builtins(here)


@asynchronous
async def test_it_works_in_a_process_of_its_own_that_others_go_before():
    async with a_foreteller() as foreteller:
        await foreteller.foretell(a_queue(), START)
        pid = process_of(foreteller).pid
        assert pid != os.getpid()
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


@asynchronous
async def test_whoever_asks_meanwhile_waits_and_is_told_by_the_same():
    async with a_foreteller() as foreteller:
        told = await asyncio.gather(*(foreteller.foretell(a_queue(prs), START) for prs in (1, 2, 3)))
        assert [len(forecast) for forecast in told] == [1, 2, 3]
        process = process_of(foreteller)
        await foreteller.foretell(a_queue(), START)
        assert process_of(foreteller) is process


@asynchronous
async def test_when_it_is_closed_the_process_has_ended():
    foreteller = ForetellerApart()
    await foreteller.foretell(a_queue(), START)
    process = process_of(foreteller)
    await foreteller.close()
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


@asynchronous
async def test_when_whoever_asked_has_died_it_ends_by_itself():
    async with a_foreteller() as foreteller:
        await foreteller.foretell(a_queue(), START)
        process = process_of(foreteller)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0


@asynchronous
async def test_what_takes_too_long_is_given_up_together_with_the_process():
    async with a_foreteller(seconds=0.001) as foreteller:
        with pytest.raises(ForetellingTrouble, match=r"longer than 0\.001 seconds"):
            await foreteller.foretell(a_queue(), START)
        assert foreteller.process is None


@asynchronous
async def test_what_one_asked_for_who_has_left_is_told_to_nobody_else():
    async with a_foreteller() as foreteller:
        for moments in (1, 10, 100):
            asking = asyncio.create_task(foreteller.foretell(a_queue(3), START))
            for _ in range(moments):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert len(await foreteller.foretell(a_queue(2), START)) == 2


@asynchronous
async def test_after_one_that_was_killed_another_answers():
    async with a_foreteller() as foreteller:
        await foreteller.foretell(a_queue(), START)
        os.kill(process_of(foreteller).pid, signal.SIGKILL)
        await process_of(foreteller).wait()
        with pytest.raises(ForetellingTrouble, match="broke off"):
            await foreteller.foretell(a_queue(), START)
        assert len(await foreteller.foretell(a_queue(), START)) == 2
