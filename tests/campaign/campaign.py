"""Plays rounds on all cores, each in a folder of its own, which is kept only when something was wrong."""

import asyncio
import gc
import os
import shutil
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from random import Random

from tests.campaign.canary import cage
from tests.campaign.plan import Plan
from tests.campaign.round import Outcome, play
from tests.support.quiet import without_logs


def replay_command(seed: int) -> str:
    return f".venv/bin/python -m tests.campaign --round {seed}"


def play_once(seed: int) -> Outcome:
    """A round that breaks off is as bad as one that breaks a promise."""
    folder = Path(tempfile.mkdtemp(prefix=f"mergeyard-campaign-{seed}-"))
    try:
        with without_logs(), cage(folder):
            outcome = asyncio.run(play(seed, folder / "round"))
    except Exception as error:
        words = f"{type(error).__name__}: {error} ({traceback.extract_tb(error.__traceback__)[-1]})"
        return Outcome(seed=seed, plan=Plan.drawn(seed, Random(seed)), faults=(words, f"see {folder}"))
    if outcome.faults:
        return outcome
    shutil.rmtree(folder)
    gc.collect()
    return outcome


def play_until(landings: int, seed: int) -> Iterator[Outcome]:
    """One round after the other, from a seed on, until so many landings were judged."""
    seeds, seen = count(seed), 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        playing = {pool.submit(play_once, next(seeds)) for _ in range(os.cpu_count() or 1)}
        while playing:
            done, left = wait(playing, return_when=FIRST_COMPLETED)
            playing: set[Future[Outcome]] = set(left)
            for future in done:
                yield (outcome := future.result())
                seen += len(outcome.sizes)
                if seen < landings:
                    playing.add(pool.submit(play_once, next(seeds)))
