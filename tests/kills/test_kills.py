"""A few kills around landings; `python -m tests.kills` runs any number of them, at every boundary."""

from pathlib import Path
from typing import get_args

import pytest

from mergeyard.ports.writes import Write
from tests.kills.effects import ANYWHERE, UNREACHABLE_COMMITS, WRITE_NAMES, StoreKind
from tests.kills.killable_server import KillSchedule
from tests.kills.world import Outcome, World

AROUND_LANDINGS = (
    *("store.commit:landing_intended:before", "store.commit:landing_intended:during"),
    *("store.commit:landing_intended:after", "store.commit:landing_over:before", "store.commit:landing_over:after"),
    *("git.push:landing:before", "git.push:landing:during", "git.push:landing:after"),
    *("git.push:head_moved:before", "git.push:head_moved:during", "git.push:head_moved:after"),
    *("host.mark_merged:during", "host.mark_merged:after"),
)


def run_world(folder: Path, schedule: KillSchedule, kills: int, kills_at_first_start: int = 0) -> Outcome:
    world = World(folder, 1, schedule, kills_at_first_start)
    try:
        return world.run(kills)
    finally:
        world.close()


def test_server_killed_around_landings_keeps_every_promise(tmp_path: Path):
    schedule = KillSchedule(StoreKind.SQLITE, only=AROUND_LANDINGS)
    outcome = run_world(tmp_path, schedule, 6)
    print(f"{dict(schedule.kills)}; {outcome}")
    assert schedule.kills.total() > schedule.kills[ANYWHERE]
    assert outcome.merged


@pytest.mark.long
@pytest.mark.parametrize("store", StoreKind)
def test_server_killed_before_during_and_after_every_effect_keeps_every_promise(tmp_path: Path, store: StoreKind):
    schedule = KillSchedule(store)
    outcome = run_world(tmp_path, schedule, 40, kills_at_first_start=2)
    assert len(schedule.kills) > 20
    assert outcome.concluded


def test_every_write_has_a_name():
    assert WRITE_NAMES.keys() == {*get_args(Write)}
    assert UNREACHABLE_COMMITS.keys() <= {*WRITE_NAMES.values()}
