"""Random worlds, some in every test run and 2,000 in the long one; every law holds in each after every decision."""

import pytest

from tests.model.campaign import play, replay_command
from tests.support.long_tests import mark_long_after

WORLDS = 2000
QUICK_WORLDS = 40
PER_TEST = 40


@pytest.mark.parametrize("first", mark_long_after(QUICK_WORLDS // PER_TEST, range(0, WORLDS, PER_TEST)))
def test_every_law_holds_in_every_world(first: int):
    for seed in range(first, first + PER_TEST):
        broken = play(seed).broken
        assert broken is None, f"{broken}\nreplay with: {replay_command(seed)}"


@pytest.mark.parametrize("seed", [9117, 12238])
def test_history_is_pruned_after_a_run_is_replaced_by_one_on_another_base(seed: int):
    assert play(seed).broken is None
