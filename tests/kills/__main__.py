"""Kills the real server before, during and after everything that it does to the world, and holds it to its promises.

    python -m tests.kills --kills 1000 --store both --seed 1

The seed chooses what people do and at which boundaries servers die; which of them they come to first, the machine
decides. `--boundary` names those that alone are wanted.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.kills.boundaries import OUT_OF_REACH, StoreKind
from tests.kills.toll import Toll
from tests.kills.world import Outcome, World

KILLS_PER_WORLD = 25
ENOUGH = 4
"""With so many kills per boundary, on the average, none is left out by chance."""


class Campaign:
    def __init__(self, stores: Sequence[StoreKind], only: Sequence[str]) -> None:
        self.tolls = [Toll(store, only) for store in stores]
        self.outcome = Outcome()

    @property
    def kills(self) -> int:
        return sum(toll.kills.total() for toll in self.tolls)

    def run(self, kills: int, seed: int) -> None:
        with Progress() as progress:
            bar = progress.add_task("kills", total=kills)
            while self.kills < kills:
                toll = self.tolls[seed % len(self.tolls)]
                progress.update(bar, description=f"kills, {toll.store}, seed {seed}")
                outcome = one_world(seed, toll, min(KILLS_PER_WORLD, kills - self.kills))
                self.outcome.add(outcome)
                progress.console.print(
                    f"{toll.store}, seed {seed}: {self.kills} kills in all; {outcome}", soft_wrap=True
                )
                progress.update(bar, completed=self.kills)
                seed += 1

    def table(self) -> Table:
        table = Table("boundary", *(toll.store for toll in self.tolls))
        for name in dict.fromkeys(name for toll in self.tolls for name in toll.boundaries):
            table.add_row(name, *(str(toll.kills[name]) if name in toll.boundaries else "–" for toll in self.tolls))
        return table

    def spared(self) -> list[str]:
        """Boundaries at which nobody died, though enough did elsewhere."""
        return [
            f"{toll.store} {name}"
            for toll in self.tolls
            if toll.kills.total() >= ENOUGH * len(toll.boundaries)
            for name in toll.spared
        ]


def one_world(seed: int, toll: Toll, deaths: int) -> Outcome:
    """What it leaves behind is kept only when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-kills-"))
    try:
        world = World(folder, seed, toll)
        try:
            outcome = world.run(deaths)
        finally:
            world.close()
    except BaseException as trouble:
        trouble.add_note(f"This was --store {toll.store} --seed {seed}; its logs and repositories are in {folder}.")
        raise
    shutil.rmtree(folder)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--store", choices=[*StoreKind, "both"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--boundary", action="append", default=[])
    options = parser.parse_args()
    stores = tuple(StoreKind) if options.store == "both" else (StoreKind(options.store),)
    campaign, begun = Campaign(stores, options.boundary), monotonic()
    try:
        campaign.run(options.kills, options.seed)
    finally:
        Console().print(campaign.table())
    for name, why in OUT_OF_REACH.items():
        print(f"Never written here: {name} ({why}).")
    print(f"{campaign.kills} kills in {monotonic() - begun:.0f} s; {campaign.outcome}.")
    if spared := campaign.spared():
        sys.exit(f"Nobody died at: {', '.join(spared)}.")


if __name__ == "__main__":
    main()
