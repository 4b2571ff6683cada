"""Every kind of database fulfills the same contract and can be transferred to every kind."""

from pathlib import Path

import pytest

from tests.contract.archive.databases import KINDS, Database, postgres, sqlite


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A database that does not exist yet or is empty."""
    return request.param(tmp_path)


@pytest.fixture(params=KINDS, ids=lambda kind: f"to {kind.__name__}")
def other_database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Another such database."""
    return request.param(tmp_path / "elsewhere")


@pytest.fixture
def embedded(tmp_path: Path) -> Database:
    return sqlite(tmp_path)


@pytest.fixture
def shared(tmp_path: Path) -> Database:
    return postgres(tmp_path)
