"""Disables logging: these tests provoke many errors, and each one would print a traceback."""

from collections.abc import Generator

import pytest

from tests.support.log_capture import without_logs


@pytest.fixture(autouse=True)
def no_log() -> Generator[None]:
    with without_logs():
        yield
