"""A few kills around landings; `python -m tests.kills` runs as many as you like, at every boundary that there is."""

from pathlib import Path
from typing import get_args

import pytest

from mergeyard.ports.writes import Write
from tests.kills import naming
from tests.kills.boundaries import ANYWHERE, OUT_OF_REACH, StoreKind
from tests.kills.toll import Toll
from tests.kills.world import Outcome, World

AROUND_LANDINGS = (
    *("store.commit:landing_intended:before", "store.commit:landing_intended:during"),
    *("store.commit:landing_intended:after", "store.commit:landing_over:before", "store.commit:landing_over:after"),
    *("git.push:landing:before", "git.push:landing:during", "git.push:landing:after"),
    *("host.mark_merged:during", "host.mark_merged:after"),
)


def deaths_in_one_world(folder: Path, toll: Toll, deaths: int, births: int = 0) -> Outcome:
    world = World(folder, 1, toll, births)
    try:
        return world.run(deaths)
    finally:
        world.close()


def test_a_server_that_dies_around_its_landings_keeps_every_promise(tmp_path: Path):
    toll = Toll(StoreKind.SQLITE, only=AROUND_LANDINGS)
    outcome = deaths_in_one_world(tmp_path, toll, 6)
    print(f"{dict(toll.kills)}; {outcome}")
    assert toll.kills.total() > toll.kills[ANYWHERE]
    assert outcome.merged


@pytest.mark.long
@pytest.mark.parametrize("store", StoreKind)
def test_a_server_that_dies_before_during_and_after_whatever_it_does_keeps_every_promise(
    tmp_path: Path, store: StoreKind
):
    toll = Toll(store)
    outcome = deaths_in_one_world(tmp_path, toll, 40, births=2)
    assert len(toll.kills) > 20
    assert outcome.decided


def test_everything_that_is_written_has_a_name():
    assert naming.OF_WRITE.keys() == {*get_args(Write)}
    assert OUT_OF_REACH.keys() <= {*naming.OF_WRITE.values()}
