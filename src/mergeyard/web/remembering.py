"""Remembers for a while what took long to find out: whoever asks the same meanwhile is told the same."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.ports.clock import Clock

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


class Found(Struct, Generic[Answer], frozen=True):
    answer: Answer
    at: Instant


class Remembered(Generic[Question, Answer]):
    def __init__(self, clock: Clock, lasting: int) -> None:
        """`lasting` is in milliseconds."""
        self._clock = clock
        self._lasting = lasting
        self._known = dict[Question, Found[Answer]]()
        self._finding_out = asyncio.Lock()
        """However many ask, the queues themselves must not have to wait."""

    async def answer(self, question: Question, find_out: Callable[[], Awaitable[Answer]]) -> Answer:
        """One thing is found out at a time. Whoever has waited for their turn may find that it is known by then."""
        if question not in self._fresh():
            async with self._finding_out:
                if question not in self._fresh():
                    answer = await find_out()
                    self._known[question] = Found(answer, self._clock.now())
        return self._known[question].answer

    def _fresh(self) -> dict[Question, Found[Answer]]:
        oldest = self._clock.now() - self._lasting
        self._known = {question: found for question, found in self._known.items() if found.at > oldest}
        return self._known
