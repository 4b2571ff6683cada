"""Random worlds, some every day and two thousand now and then, in each of which every law holds after every turn."""

import pytest

from tests.model.campaign import play, replay_command

WORLDS = 2000
EVERY_DAY = 400
PER_TEST = 40
FIRST_OF_EACH = [
    pytest.param(first, marks=pytest.mark.long if first >= EVERY_DAY else ()) for first in range(0, WORLDS, PER_TEST)
]


@pytest.mark.parametrize("first", FIRST_OF_EACH)
def test_every_law_holds_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert broken is None, f"{broken}\nreplay with: {replay_command(seed)}"
