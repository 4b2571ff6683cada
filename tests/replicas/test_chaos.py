"""A short campaign of faults at random moments; `python -m tests.replicas` runs a long one."""

from pathlib import Path

import pytest

from tests.replicas.faults import Faults
from tests.replicas.world import World
from tests.support.postgres import shared_server

KILLS = 6


@pytest.mark.long
def test_replicas_that_are_killed_and_suspended_repeatedly_keep_every_promise(tmp_path: Path):
    world = World(tmp_path, shared_server().fresh_database(), seed=1)
    faults = Faults(world.installation, seed=1)
    try:
        outcome = world.run(lambda: faults.inject(KILLS))
    finally:
        world.close()
    print(f"{faults.counts}; {outcome}")
    assert faults.counts.kills >= KILLS
    assert outcome.merged > 0
