"""What somebody tells a queue: with what is to be written along, how it is answered, and who waits for that."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Refusal
from mergeyard.ports.writes import Write
from mergeyard.service.repeating import Repeat, kept
from mergeyard.service.written_targets import WrittenTargets

Render = Callable[[Decision], bytes]
Consider = Callable[[Queue], Sequence[Event]]
"""Reads the queue as it is when its turn comes, and says what to tell it, or raises."""


class Asked(Struct, eq=False):
    events: Sequence[Event] | Consider
    outcome: asyncio.Future[bytes]
    writes: tuple[Write, ...] = ()
    render: Render = lambda _: b""
    repeat: Repeat | None = None
    proof: tuple[Write, ...] = ()
    at_hand: WrittenTargets | None = None
    """Of these very targets, should they be stored with the queue: so that nobody writes them out again."""


def new_outcome() -> asyncio.Future[bytes]:
    return asyncio.get_running_loop().create_future()


def how_many_may_share(inbox: Sequence[Asked]) -> int:
    alone = next((at for at, one in enumerate(inbox) if callable(one.events)), len(inbox))
    return max(1, alone)


def sorted_out(
    asked: Sequence[Asked], told: Sequence[Sequence[Event]], decision: Decision
) -> tuple[list[Asked], list[tuple[Asked, Refusal]]]:
    """Whose requests were carried out, and whose were refused."""
    carried, rejected, place = list[Asked](), list[tuple[Asked, Refusal]](), 0
    for one, events in zip(asked, told, strict=True):
        refusals = [decision.refusals[at] for at in range(place, place + len(events)) if at in decision.refusals]
        place += len(events)
        if refusals:
            rejected.append((one, refusals[0]))
        else:
            carried.append(one)
    return carried, rejected


def asked_for(carried: Sequence[Asked], answers: Sequence[bytes], now: Instant) -> Iterator[Write]:
    """What is to be written along."""
    for one, answer in zip(carried, answers, strict=True):
        yield from one.writes
        yield from kept(one.repeat, answer, now)


def fail(asked: Asked, error: Exception) -> None:
    if not asked.outcome.done():
        asked.outcome.set_exception(error)


def succeed(asked: Asked, answer: bytes) -> None:
    if not asked.outcome.done():
        asked.outcome.set_result(answer)
