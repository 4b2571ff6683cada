"""Stories are told without a log: with it, every trouble that they bring about would be drawn at length."""

from collections.abc import Generator

import pytest

from tests.support.quiet import without_logs


@pytest.fixture(autouse=True)
def no_log() -> Generator[None]:
    with without_logs():
        yield
