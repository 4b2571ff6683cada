"""Runs many worlds on all cores and reports which of them broke a law."""

import gc
import traceback
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from os import cpu_count

from msgspec import Struct

from tests.model.world import RandomWorld

WORLDS_PER_JOB = 25


class Outcome(Struct, frozen=True):
    seed: int
    decisions: int
    ends: dict[str, int]
    """How many submissions ended in which way."""
    broken: str | None = None
    """The law that was broken, and where."""


def play(seed: int) -> Outcome:
    random_world = RandomWorld(seed)
    broken = None
    try:
        with without_garbage_collection():
            random_world.run()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1].name
        broken = f"{type(error).__name__} in {where}: {error}"
    world = random_world.world
    ends = Counter(f"{submission.state} ({submission.reason})" for submission in world.concluded_submissions.values())
    return Outcome(seed, world.queue.counters.revision, dict(ends), broken)


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """A world is small and short: collecting its garbage while it runs costs more than the garbage itself."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def replay_command(seed: int) -> str:
    return f".venv/bin/python -m tests.model --seed {seed}"


def play_many(seeds: Iterable[int]) -> Iterator[Outcome]:
    with ProcessPoolExecutor(cpu_count()) as pool:
        yield from pool.map(play, seeds, chunksize=WORLDS_PER_JOB)
