"""Random worlds, some every day and two thousand now and then, in each of which every law holds after every turn."""

import pytest

from tests.model.campaign import play, replay_command
from tests.support.every_day import only_first

WORLDS = 2000
EVERY_DAY = 400
PER_TEST = 40


@pytest.mark.parametrize("first", only_first(EVERY_DAY // PER_TEST, range(0, WORLDS, PER_TEST)))
def test_every_law_holds_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert broken is None, f"{broken}\nreplay with: {replay_command(seed)}"
