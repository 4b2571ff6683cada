"""Hears what the service calls an error: something that nobody expected is a violation, whatever came of it."""

import logging
import traceback
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from typing import Any, NoReturn

import structlog


@contextmanager
def heard(errors: list[str]) -> Generator[None]:
    def hear(_: Any, __: str, told: MutableMapping[str, Any]) -> NoReturn:
        if isinstance(error := told.get("exc_info"), BaseException):
            errors.append(_in_short(told["event"], error))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[hear], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)


def _in_short(event: str, error: BaseException) -> str:
    """With the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{event}: {type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"
