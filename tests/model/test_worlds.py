"""A few random worlds; every law holds in each after every decision. `make worlds` plays any number of them."""

import pytest

from tests.model.campaign import play, replay_command

WORLDS = 40


def test_every_law_holds_in_every_world():
    for seed in range(WORLDS):
        broken = play(seed).broken
        assert broken is None, f"{broken}\nreplay with: {replay_command(seed)}"


@pytest.mark.parametrize("seed", [9117, 12238])
def test_history_is_pruned_after_a_run_is_replaced_by_one_on_another_base(seed: int):
    assert play(seed).broken is None
