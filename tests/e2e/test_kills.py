"""A short campaign of kills at random moments; `python -m tests.e2e.kills` runs a long one."""

from pathlib import Path

from tests.e2e.kills import one_world


def test_a_server_that_is_killed_again_and_again_keeps_every_promise(tmp_path: Path):
    outcome = one_world(tmp_path, seed=1, kills=6)
    assert outcome.kills >= 6
    assert outcome.decided > 0
