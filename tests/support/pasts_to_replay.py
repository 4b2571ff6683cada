"""Small pasts of a queue, made by hand in minutes: who came, which runs there were, and how each ended.

a_past(
    merged(at=0, until=10), failed(at=0, until=20),
    runs=[green(0, since=0, until=10), red(1, since=10, until=20)],
    concurrency=1,
)
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.states import RunStatus
from mergeyard.sim.replaying.history import Arrival, End, History, Place, Setting, Tried
from mergeyard.sim.replaying.replay import Replay, Replayed
from mergeyard.sim.replaying.truth import find_out
from mergeyard.sim.replaying.whatif import under

UNTIL = 10_000


def minute(number: float) -> Instant:
    return Instant(round(number * MINUTE))


def merged(*, at: float, until: float, **more: Any) -> Arrival:
    return _came(End.MERGED, at, until, more)


def failed(*, at: float, until: float, **more: Any) -> Arrival:
    return _came(End.FAILED, at, until, more)


def left(*, at: float, until: float, **more: Any) -> Arrival:
    return _came(End.LEFT, at, until, more)


def green(*stack: Place, since: float, until: float, tests: int = 1) -> Tried:
    return _tried(RunStatus.SUCCEEDED, stack, since, until, tests)


def red(*stack: Place, since: float, until: float, tests: int = 1) -> Tried:
    return _tried(RunStatus.FAILED, stack, since, until, tests)


def stopped(*stack: Place, since: float, until: float, tests: int = 1) -> Tried:
    return _tried(RunStatus.CANCELLED, stack, since, until, tests)


def a_past(*arrivals: Arrival, runs: Sequence[Tried] = (), **settings: Any) -> History:
    """Each has its place as its number, unless it has one of its own."""
    numbered = [
        replace(each, number=each.number or PrNumber(place + 1), head=each.head or Sha(f"head of {place}"))
        for place, each in enumerate(arrivals)
    ]
    return History(
        since=minute(0),
        until=minute(UNTIL),
        arrivals=tuple(numbered),
        runs=tuple(sorted(runs, key=lambda run: run.started_at)),
        settings=(Setting(minute(0), replace(Config(), **settings)),),
    )


def replay(history: History, **wishes: Any) -> Replayed:
    return Replay(history, find_out(history), under(history, wishes)).run()


def ends(replayed: Replayed) -> list[tuple[str, float]]:
    """Of each, in the order in which they first came: how it ended, and in which minute."""
    return [(each.end.value, each.ended_at / MINUTE) for _, each in sorted(replayed.outcomes.items())]


def _came(end: End, at: float, until: float, more: dict[str, Any]) -> Arrival:
    usual: dict[str, Any] = {"number": PrNumber(0), "head": Sha("")}
    return Arrival(**usual | more, at=minute(at), end=end, ended_at=minute(until))


def _tried(status: RunStatus, stack: tuple[Place, ...], since: float, until: float, tests: int) -> Tried:
    return Tried(
        stack=stack, tests=tests, base=Sha("base"), started_at=minute(since), decided_at=minute(until), status=status
    )
