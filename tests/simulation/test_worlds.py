"""The whole service in simulated worlds, in each of which every promise is kept."""

import os
import subprocess
import sys

import pytest

from tests.simulation.campaign import play, replay_command
from tests.support.every_day import only_first

WORLDS = 200
EVERY_DAY = 100
PER_TEST = 10


@pytest.mark.parametrize("first", only_first(EVERY_DAY // PER_TEST, range(0, WORLDS, PER_TEST)))
def test_every_promise_is_kept_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert not broken, f"{broken}\nreplay with: {replay_command(seed)}"


def test_the_same_seed_is_the_same_world():
    assert play(7) == play(7)


def test_the_same_seed_is_the_same_world_however_words_are_hashed():
    assert played_with_hash_seed(0) == played_with_hash_seed(2)


def played_with_hash_seed(number: int) -> bytes:
    """What struck when, in a world of many tests at a time."""
    play_one = "from tests.simulation.campaign import play; print(sorted(play(2679).struck.items()))"
    environment = os.environ | {"PYTHONHASHSEED": str(number)}
    return subprocess.run([sys.executable, "-c", play_one], env=environment, check=True, capture_output=True).stdout
