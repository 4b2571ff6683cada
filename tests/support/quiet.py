"""Logs nothing for a while, and then as before."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

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
def captured_warnings() -> Generator[list[EventDict]]:
    """Collects the lines that are logged at this level or above, also inside `without_logs`."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        with capture_logs() as lines:
            yield lines
    finally:
        structlog.configure(**before)
