"""The hosts that the suite runs on."""

from pathlib import Path

import pytest

from tests.contract.host.stage import PlainStage, Stage

STAGES = {"plain": PlainStage}


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return STAGES[request.param](tmp_path)


@pytest.fixture
def plain(tmp_path: Path) -> PlainStage:
    return PlainStage(tmp_path)
