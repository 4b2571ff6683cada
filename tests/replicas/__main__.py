"""Sets replicas under fire, world after world, and holds them to their promises in the end of each.

    python -m tests.replicas --kills 100 --seed 1 --replicas 3

The seed chooses what people do and what befalls whom. Where exactly a fault hits, the machine decides.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from rich.progress import Progress

from tests.replicas.faults import Faults, Toll
from tests.replicas.world import Outcome, World
from tests.support.postgres import shared_server

KILLS_PER_WORLD = 25


def campaign(kills: int, seed: int, replicas: int) -> tuple[Toll, Outcome]:
    toll, outcome = Toll(), Outcome()
    with Progress() as progress:
        bar = progress.add_task(f"kills, seed {seed}", total=kills)
        while toll.kills < kills:
            more, came_of_it = one_world(
                seed,
                min(KILLS_PER_WORLD, kills - toll.kills),
                replicas,
                lambda rising: progress.update(bar, completed=toll.kills + rising.kills),
            )
            add(toll, more)
            add(outcome, came_of_it)
            seed += 1
            progress.update(bar, description=f"kills, seed {seed}")
    return toll, outcome


def one_world(seed: int, kills: int, replicas: int, progress: Callable[[Toll], object]) -> tuple[Toll, Outcome]:
    """What it leaves behind is kept only when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-replicas-"))
    world = World(folder, shared_server().fresh_database(), seed, replicas)
    faults = Faults(world.installation, seed)
    try:
        outcome = world.run(lambda: faults.rage(kills, progress))
    except BaseException as trouble:
        trouble.add_note(f"This was seed {seed}; its logs and repositories are in {folder}.")
        raise
    finally:
        world.close()
    shutil.rmtree(folder)
    return faults.toll, outcome


def add(total: Struct, more: Struct) -> None:
    for field in total.__struct_fields__:
        setattr(total, field, getattr(total, field) + getattr(more, field))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=3)
    options = parser.parse_args()
    toll, outcome = campaign(options.kills, options.seed, options.replicas)
    print(f"{toll}; {outcome}.")


if __name__ == "__main__":
    main()
