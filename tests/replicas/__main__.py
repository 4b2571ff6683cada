"""Injects faults into replicas, world after world, and checks every promise at the end of each.

    python -m tests.replicas --kills 100 --seed 1 --replicas 3

The seed chooses the actions of people and the faults. The exact moment of a fault depends on the machine.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from rich.progress import Progress

from tests.replicas.faults import FaultCounts, Faults
from tests.replicas.world import Outcome, World
from tests.support.postgres import shared_server

KILLS_PER_WORLD = 25


def campaign(kills: int, seed: int, replicas: int) -> tuple[FaultCounts, Outcome]:
    counts, outcome = FaultCounts(), Outcome()
    with Progress() as progress:
        bar = progress.add_task(f"kills, seed {seed}", total=kills)
        while counts.kills < kills:
            more_counts, more_outcome = one_world(
                seed,
                min(KILLS_PER_WORLD, kills - counts.kills),
                replicas,
                lambda running_counts: progress.update(bar, completed=counts.kills + running_counts.kills),
            )
            add(counts, more_counts)
            add(outcome, more_outcome)
            seed += 1
            progress.update(bar, description=f"kills, seed {seed}")
    return counts, outcome


def one_world(
    seed: int, kills: int, replicas: int, progress: Callable[[FaultCounts], object]
) -> tuple[FaultCounts, Outcome]:
    """Its folder is kept only when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-replicas-"))
    world = World(folder, shared_server().fresh_database(), seed, replicas)
    faults = Faults(world.installation, seed)
    try:
        outcome = world.run(lambda: faults.inject(kills, progress))
    except BaseException as error:
        error.add_note(f"Seed {seed}; logs and repositories are in {folder}.")
        raise
    finally:
        world.close()
    shutil.rmtree(folder)
    return faults.counts, outcome


def add(total: Struct, more: Struct) -> None:
    for field in total.__struct_fields__:
        setattr(total, field, getattr(total, field) + getattr(more, field))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=3)
    options = parser.parse_args()
    counts, outcome = campaign(options.kills, options.seed, options.replicas)
    print(f"{counts}; {outcome}.")


if __name__ == "__main__":
    main()
