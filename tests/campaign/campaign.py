"""Runs rounds on all cores, each in a folder of its own, which is kept only when the round had a fault."""

import asyncio
import gc
import os
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from random import Random

from tests.campaign.isolation import config_canary
from tests.campaign.round import METHODS, Outcome, RoundPlan, method_of, play_round
from tests.support.log_capture import without_logs


def replay_command(seed: int) -> str:
    return f".venv/bin/python -m tests.campaign --round {seed}"


def run_round(seed: int) -> Outcome:
    """An exception counts as a fault of the round."""
    folder = Path(tempfile.mkdtemp(prefix=f"mergeyard-campaign-{seed}-"))
    try:
        with without_logs(), config_canary(folder):
            outcome = asyncio.run(play_round(seed, folder / "round"))
    except Exception as error:
        message = f"{type(error).__name__}: {error} ({traceback.extract_tb(error.__traceback__)[-1]})"
        return Outcome(seed=seed, plan=RoundPlan.draw(seed, Random(seed)), faults=(message, f"see {folder}"))
    if outcome.faults:
        return outcome
    shutil.rmtree(folder)
    gc.collect()
    return outcome


def run_rounds(landings: int, seed: int) -> Iterator[Outcome]:
    """Runs rounds, starting with this seed, until this many landings with each merge method were checked."""
    checked = Counter[str]()
    seeds = (each for each in count(seed) if checked[method_of(each)] < landings)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(run_round, next(seeds)) for _ in range(os.cpu_count() or 1)}
        while running:
            done, left = wait(running, return_when=FIRST_COMPLETED)
            running: set[Future[Outcome]] = set(left)
            for future in done:
                yield (outcome := future.result())
                checked[outcome.plan.method] += len(outcome.sizes)
                if any(checked[method] < landings for method in METHODS):
                    running.add(pool.submit(run_round, next(seeds)))
