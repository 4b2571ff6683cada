"""Stories are told without a log: with it, every trouble that they bring about would be drawn at length."""

import logging
from collections.abc import Generator

import pytest
import structlog


@pytest.fixture(autouse=True)
def no_log() -> Generator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
