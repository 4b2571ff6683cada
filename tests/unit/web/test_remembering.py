"""What was found out is remembered for a while, and found out once, however many ask."""

import asyncio

import pytest

from mergeyard.domain.instants import later
from mergeyard.web.remembering import Remembered
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock

WHILE = 1000


class Research:
    """Takes until it is allowed to end, and finds something else every time."""

    def __init__(self) -> None:
        self.results = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        await self.may_end.wait()
        self.results += 1
        return self.results


@asynchronous
async def test_many_who_ask_at_once_share_one_answer_for_a_while():
    clock, research = HandClock(), Research()
    remembered = Remembered[str, int](clock, WHILE)
    asked = [asyncio.create_task(remembered.answer("how", research)) for _ in range(5)]
    await asyncio.sleep(0)
    research.may_end.set()
    assert await asyncio.gather(*asked) == [1] * 5
    clock.move_to(later(clock.now(), WHILE - 1))
    assert await remembered.answer("how", research) == 1
    clock.move_to(later(clock.now(), 1))
    assert await remembered.answer("how", research) == 2


@asynchronous
async def test_another_question_waits_for_its_turn_and_a_known_one_does_not():
    clock, slow, quick = HandClock(), Research(), Research()
    quick.may_end.set()
    remembered = Remembered[str, int](clock, WHILE)
    assert await remembered.answer("known", quick) == 1
    asked = asyncio.create_task(remembered.answer("slow", slow))
    other = asyncio.create_task(remembered.answer("quick", quick))
    await asyncio.sleep(0)
    assert await remembered.answer("known", quick) == 1
    assert not other.done()
    slow.may_end.set()
    assert await asyncio.gather(asked, other) == [1, 2]


@asynchronous
async def test_who_gives_up_leaves_the_question_to_the_next():
    async def give_up() -> int:
        raise TimeoutError

    remembered, research = Remembered[str, int](HandClock(), WHILE), Research()
    research.may_end.set()
    with pytest.raises(TimeoutError):
        await remembered.answer("how", give_up)
    assert await remembered.answer("how", research) == 1
