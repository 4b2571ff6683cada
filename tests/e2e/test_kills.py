"""A short campaign of kills at random moments; `python -m tests.e2e.kills` runs a long one."""

from pathlib import Path

import pytest

from tests.e2e.kills import one_world


@pytest.mark.parametrize("seed", [1])
def test_a_server_that_is_killed_again_and_again_keeps_every_promise(tmp_path: Path, seed: int):
    outcome = one_world(tmp_path, seed, kills=6)
    assert outcome.kills >= 6
    assert outcome.decided > 0
