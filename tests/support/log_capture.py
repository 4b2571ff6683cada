"""Suppresses or captures log entries."""

import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict


@contextmanager
def without_logs() -> Generator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def capture_entries(level: int = logging.INFO) -> Generator[list[EventDict]]:
    """Collects log entries of this level and above, also inside `without_logs`."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
    try:
        with capture_logs() as entries:
            yield entries
    finally:
        structlog.configure(**before)


def capture_warnings() -> AbstractContextManager[list[EventDict]]:
    return capture_entries(logging.WARNING)
