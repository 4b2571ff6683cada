"""What every test of a runner starts from."""

from pathlib import Path

import pytest

from tests.contract.runner.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
