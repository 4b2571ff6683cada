"""Plays many worlds on all cores, and says which of them broke a promise."""

import gc
import sys
import traceback
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from os import cpu_count

from msgspec import Struct

from tests.simulation.drawing import draw
from tests.simulation.judging import violations
from tests.simulation.listening import heard
from tests.simulation.script import Script
from tests.simulation.shrinking import shrink
from tests.simulation.weather import Family
from tests.simulation.world import World

WORLDS_PER_JOB = 10


class Outcome(Struct, frozen=True):
    seed: int
    families: frozenset[Family]
    broken: tuple[str, ...]
    """Every promise that was broken, and how."""
    ends: dict[str, int]
    struck: dict[tuple[Family, str], int]
    """How often a family of faults struck, by the phase of the queue."""
    landings: int


def play(seed: int) -> Outcome:
    return played(draw(seed))


def played(script: Script) -> Outcome:
    with without_noise():
        return _played(script)


def _played(script: Script) -> Outcome:
    world = World(script)
    broken, ends = _judged(world)
    landings = sum(transaction.by_service and len(transaction.moves) > 1 for transaction in world.origin.log)
    world.close()
    return Outcome(script.seed, script.families, broken, ends, dict(world.weather.struck), landings)


def _judged(world: World) -> tuple[tuple[str, ...], dict[str, int]]:
    try:
        world.play()
        broken = violations(world)
        stays = world.api.post("listPullRequests", take=100)["pullRequests"]
        return tuple(broken), dict(Counter(f"{stay['state']} ({stay['reason']['code']})" for stay in stays))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})",), {}


def shrunk(script: Script) -> Script:
    """Broken in the same way, and as short as it gets."""
    kinds = {_kind(broken) for broken in played(script).broken}
    return shrink(script, lambda smaller: not kinds.isdisjoint(map(_kind, played(smaller).broken)))


def _kind(broken: str) -> str:
    return broken.partition(":")[0]


def _say_nothing(_: object) -> None:
    """Whatever it is."""


@contextmanager
def without_noise() -> Generator[None]:
    """A world leaves many behind in the middle of something: who was killed does not finish, nor complain."""
    complain, sys.unraisablehook = sys.unraisablehook, _say_nothing
    gc.disable()
    gc.freeze()  # what was there before need not be looked through for what the world leaves
    try:
        with heard([]):
            yield
            gc.collect()
    finally:
        gc.unfreeze()
        gc.enable()
        sys.unraisablehook = complain


def replay_command(seed: int) -> str:
    return f".venv/bin/python -m tests.simulation --seed {seed}"


def play_many(seeds: Iterable[int]) -> Iterator[Outcome]:
    with ProcessPoolExecutor(cpu_count()) as pool:
        yield from pool.map(play, seeds, chunksize=WORLDS_PER_JOB)
