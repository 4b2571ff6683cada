"""Logs nothing for a while, and then as before."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

import structlog


@contextmanager
def without_logs() -> Generator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
