"""Two thousand random worlds, in each of which every law holds after every turn."""

import pytest

from tests.model.campaign import play, replay_command

WORLDS = 2000
PER_TEST = 40


@pytest.mark.parametrize("first", range(0, WORLDS, PER_TEST))
def test_every_law_holds_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert broken is None, f"{broken}\nreplay with: {replay_command(seed)}"
