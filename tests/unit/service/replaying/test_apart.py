"""A replay has a process of its own: it answers the same, and ends when nobody waits for it any more."""

import asyncio
import os
from pathlib import Path

import pytest

from mergeyard.service.errors import Refused
from mergeyard.service.replaying import apart
from mergeyard.service.replaying.apart import answered_apart
from mergeyard.sim.replaying.whatif import Question, answer
from tests.support.asynchronous import asynchronous
from tests.support.pasts_to_replay import a_past, failed, green, merged

AT_ONCE = 10
"""Seconds, on a machine that is busy."""


def children() -> set[str]:
    """The processes that this one has begun to replay in, by their numbers."""
    begun = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {child for child in begun if apart.ROOM.encode() in Path(f"/proc/{child}/cmdline").read_bytes()}


@asynchronous
async def test_it_answers_what_would_be_answered_here():
    question = Question(a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)]), {"concurrency": 2})
    assert await answered_apart(question) == answer(question)


@asynchronous
async def test_where_nothing_came_no_process_is_needed():
    question = Question(a_past(), {})
    assert await answered_apart(question) == answer(question)


def endless() -> Question:
    """A hundred at once, three of four bad: it would be replayed for minutes."""
    everybody = [failed(at=0, until=10) if place % 4 else merged(at=0, until=10) for place in range(500)]
    return Question(a_past(*everybody), {"concurrency": 100})


@asynchronous
async def test_it_ends_at_once_with_whoever_asked():
    asked = asyncio.create_task(answered_apart(endless()))
    while not (begun := children()):
        await asyncio.wait([asked], timeout=0.01)
    asked.cancel()
    async with asyncio.timeout(AT_ONCE):
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert begun.isdisjoint(children())


@asynchronous
async def test_a_question_that_breaks_the_replay_is_an_error_of_ours_with_its_words():
    past = a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)])
    with pytest.raises(RuntimeError, match="ValidationError"):
        await answered_apart(Question(past, {"concurrency": "many"}))


@asynchronous
async def test_what_takes_too_long_is_ended_and_refused_with_what_to_do():
    async with asyncio.timeout(AT_ONCE):
        with pytest.raises(Refused, match="choose a shorter period"):
            await answered_apart(endless(), 1)
    assert not children()
