"""Removes the databases that a test created."""

from collections.abc import Generator

import pytest

from tests.support.postgres import removing_databases


@pytest.fixture(autouse=True)
def no_databases_left() -> Generator[None]:
    with removing_databases():
        yield
