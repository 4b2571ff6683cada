"""A replay has a process of its own: it answers the same, and ends when nobody waits for it any more."""

import asyncio
import os
from pathlib import Path

import pytest

from mergeyard.domain.config import Config
from mergeyard.service.errors import Refused
from mergeyard.service.replaying import apart
from mergeyard.service.replaying.apart import answered_apart
from mergeyard.sim.racing.trace import draw
from mergeyard.sim.racing.workload import Workload
from mergeyard.sim.replaying.whatif import Question, answer
from tests.support.asynchronous import asynchronous
from tests.support.pasts_to_replay import a_past, green, merged
from tests.support.replaying import recorded


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


@asynchronous
async def test_it_ends_with_whoever_asked():
    day = recorded(draw(Workload(rate=10, hours=8, workers=100, parts=1), 1), Config()).history()
    asked = asyncio.create_task(answered_apart(Question(day, {"concurrency": 50})))
    while not (begun := children()):
        await asyncio.wait([asked], timeout=0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert begun.isdisjoint(children())


@asynchronous
async def test_a_question_that_breaks_the_replay_is_an_error_of_ours_with_its_words():
    past = a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)])
    with pytest.raises(RuntimeError, match="ValidationError"):
        await answered_apart(Question(past, {"concurrency": "many"}))


@asynchronous
async def test_what_takes_too_long_is_refused_with_what_to_do():
    past = a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)])
    with pytest.raises(Refused, match="choose a shorter period"):
        await answered_apart(Question(past, {}), 0.001)
    assert not children()
