"""Kills the real server before, during and after every effect that it has, and checks that it keeps its promises.

    python -m tests.kills --kills 1000 --store both --seed 1

The seed chooses what users do and at which boundaries a server can be killed; which of them it reaches first depends on
the machine. `--boundary` restricts the kills to the named boundaries.
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

from tests.kills.effects import UNREACHABLE_COMMITS, StoreKind
from tests.kills.killable_server import KillSchedule
from tests.kills.world import Outcome, World

KILLS_PER_WORLD = 25
MIN_KILLS_PER_BOUNDARY = 4
"""With this average number of kills per boundary, a boundary without any was not missed by chance."""


class Campaign:
    def __init__(self, stores: Sequence[StoreKind], only: Sequence[str]) -> None:
        self.schedules = [KillSchedule(store, only) for store in stores]
        self.outcome = Outcome()

    @property
    def kills(self) -> int:
        return sum(schedule.kills.total() for schedule in self.schedules)

    def run(self, kills: int, seed: int) -> None:
        with Progress() as progress:
            bar = progress.add_task("kills", total=kills)
            while self.kills < kills:
                schedule = self.schedules[seed % len(self.schedules)]
                progress.update(bar, description=f"kills, {schedule.store}, seed {seed}")
                outcome = run_world(seed, schedule, min(KILLS_PER_WORLD, kills - self.kills))
                self.outcome.add(outcome)
                progress.console.print(
                    f"{schedule.store}, seed {seed}: {self.kills} kills in all; {outcome}", soft_wrap=True
                )
                progress.update(bar, completed=self.kills)
                seed += 1

    def table(self) -> Table:
        table = Table("boundary", *(schedule.store for schedule in self.schedules))
        for name in dict.fromkeys(name for schedule in self.schedules for name in schedule.boundaries):
            counts = (str(each.kills[name]) if name in each.boundaries else "–" for each in self.schedules)
            table.add_row(name, *counts)
        return table

    def unreached(self) -> list[str]:
        """Boundaries without a kill, once there were enough kills to expect one at each."""
        return [
            f"{schedule.store} {name}"
            for schedule in self.schedules
            if schedule.kills.total() >= MIN_KILLS_PER_BOUNDARY * len(schedule.boundaries)
            for name in schedule.unreached
        ]


def run_world(seed: int, schedule: KillSchedule, kills: int) -> Outcome:
    """Its folder is kept only when a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-kills-"))
    try:
        world = World(folder, seed, schedule)
        try:
            outcome = world.run(kills)
        finally:
            world.close()
    except BaseException as error:
        error.add_note(f"This was --store {schedule.store} --seed {seed}; its logs and repositories are in {folder}.")
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
    campaign, started_at = Campaign(stores, options.boundary), monotonic()
    try:
        campaign.run(options.kills, options.seed)
    finally:
        Console().print(campaign.table())
    for name, why in UNREACHABLE_COMMITS.items():
        print(f"Never written in this campaign: {name} ({why}).")
    print(f"{campaign.kills} kills in {monotonic() - started_at:.0f} s; {campaign.outcome}.")
    if unreached := campaign.unreached():
        sys.exit(f"No server was killed at: {', '.join(unreached)}.")


if __name__ == "__main__":
    main()
