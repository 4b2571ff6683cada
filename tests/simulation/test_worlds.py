"""The whole service in a few simulated worlds, in each of which every promise is kept; `make simulate` plays more."""

import os
import subprocess
import sys

import pytest

from mergeyard.api.fields import format_time
from mergeyard.domain.config import Config
from mergeyard.domain.timestamps import SECOND, later
from tests.simulation.campaign import play, quiet, replay_command
from tests.simulation.process import START
from tests.simulation.script import Push, Script, Submit
from tests.simulation.world import World

PER_TEST = 10


@pytest.mark.parametrize("first", [0, 10, 20])
def test_every_promise_is_kept_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert not broken, f"{broken}\nreplay with: {replay_command(seed)}"


def test_nothing_merges_whose_approval_was_withdrawn():
    for seed in range(PER_TEST):
        broken = play(seed, with_reviews=True).broken
        assert not broken, f"{broken}\nreplay with: {replay_command(seed, with_reviews=True)}"


@pytest.mark.parametrize("first", [0, 10])
def test_every_promise_is_kept_where_head_branches_move(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed, with_heads=True).broken
        assert not broken, f"{broken}\nreplay with: {replay_command(seed, with_heads=True)}"


def test_the_same_seed_is_the_same_world():
    assert play(7) == play(7)
    assert play(7, with_heads=True) == play(7, with_heads=True)


def test_the_same_seed_is_the_same_world_with_any_hash_seed():
    assert play_with_hash_seed(0) == play_with_hash_seed(2)


def play_with_hash_seed(number: int) -> bytes:
    """The faults of a world with many concurrent tests."""
    play_one = "from tests.simulation.campaign import play; print(sorted(play(2679).occurrences.items()))"
    environment = os.environ | {"PYTHONHASHSEED": str(number)}
    return subprocess.run([sys.executable, "-c", play_one], env=environment, check=True, capture_output=True).stdout


PUSHED = 25 * SECOND
"""Long after one poll of the forge, and long before the next."""
SOON = 5 * SECOND


@pytest.mark.parametrize("seed", range(6))
def test_push_is_noticed_in_seconds_whichever_replica_receives_the_notice(seed: int):
    acts = (Submit(at=1000, pr=1), Push(at=PUSHED, pr=1))
    world = World(Script(seed=seed, config=Config(batch=True), replicas=3, has_forge=True, acts=acts))
    with quiet():
        world.play()
        answer = world.api.post("getSubmittedPullRequest", pr={"number": 1})
    world.close()
    assert answer["reason"]["code"] == "pr_pushed"
    assert answer["stateChangedAt"] < format_time(later(START, PUSHED + SOON))
