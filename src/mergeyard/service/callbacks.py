"""Calls functions of other parts: one that raises stops neither its caller nor the functions after it."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVarTuple

import structlog

log = structlog.get_logger()

Arguments = TypeVarTuple("Arguments")


def call_each(
    callbacks: Iterable[Callable[[*Arguments], object]],
    *arguments: *Arguments,
    event: str,
    **fields: str,
) -> None:
    """What a callback raises is logged as `event` with these fields. Used after a commit: the caller must reach its
    end, whatever raises."""
    for callback in tuple(callbacks):
        try:
            callback(*arguments)
        except Exception as error:
            with suppress(Exception):  # even a log that raises must not stop the caller
                log.error(event, **fields, error=str(error), exc_info=error)
