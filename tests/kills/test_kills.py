"""A few kills around landings; `python -m tests.kills` runs any number of them, at every boundary."""

from pathlib import Path
from typing import get_args

from mergeyard.ports.writes import Write
from tests.kills.effects import ANYWHERE, UNREACHABLE_COMMITS, WRITE_NAMES, StoreKind
from tests.kills.killable_server import KillSchedule
from tests.kills.world import World

AROUND_LANDINGS = (
    *("store.commit:landing_intended:before", "store.commit:landing_intended:during"),
    *("store.commit:landing_intended:after", "store.commit:landing_over:before", "store.commit:landing_over:after"),
    *("git.push:landing:before", "git.push:landing:during", "git.push:landing:after"),
    *("git.push:head_moved:before", "git.push:head_moved:during", "git.push:head_moved:after"),
    *("host.mark_merged:during", "host.mark_merged:after"),
)


def test_server_killed_around_landings_keeps_every_promise(tmp_path: Path):
    schedule = KillSchedule(StoreKind.SQLITE, only=AROUND_LANDINGS)
    world = World(tmp_path, 1, schedule, kills_at_first_start=0)
    try:
        outcome = world.run(6)
    finally:
        world.close()
    print(f"{dict(schedule.kills)}; {outcome}")
    assert schedule.kills.total() > schedule.kills[ANYWHERE]
    assert outcome.merged


def test_every_write_has_a_name():
    assert WRITE_NAMES.keys() == {*get_args(Write)}
    assert UNREACHABLE_COMMITS.keys() <= {*WRITE_NAMES.values()}
