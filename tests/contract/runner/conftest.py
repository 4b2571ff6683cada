"""The environment of every test of a runner."""

from pathlib import Path

import pytest

from tests.contract.runner.environment import RunnerEnvironment


@pytest.fixture
def env(tmp_path: Path) -> RunnerEnvironment:
    return RunnerEnvironment(tmp_path)
