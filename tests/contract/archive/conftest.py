"""Every kind of database stands under the same contract, and may be moved to every kind."""

from pathlib import Path

import pytest

from tests.contract.archive.places import KINDS, Place, postgres, sqlite


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where no database is yet, or an empty one."""
    return request.param(tmp_path)


@pytest.fixture(params=KINDS, ids=lambda kind: f"to {kind.__name__}")
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Another such place."""
    return request.param(tmp_path / "elsewhere")


@pytest.fixture
def embedded(tmp_path: Path) -> Place:
    return sqlite(tmp_path)


@pytest.fixture
def shared(tmp_path: Path) -> Place:
    return postgres(tmp_path)
