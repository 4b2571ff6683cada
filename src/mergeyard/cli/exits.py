"""The codes with which commands end, so that scripts can tell what happened, and how to end with words."""

from enum import IntEnum
from typing import NoReturn

import typer

from mergeyard.cli.plainly import say


class Ends(IntEnum):
    DONE = 0
    """Whoever waited for a pull request: it was merged."""
    FAILED = 1
    CANCELLED = 2
    REFUSED = 3
    UNREACHABLE = 4
    DIFFERS = 5
    """What landed is not what was recorded."""
    WRONG_USE = 64
    UNFORESEEN = 70
    """A fault of ours, and no word about any pull request."""


def stop_with(words: str, code: Ends = Ends.FAILED) -> NoReturn:
    say(words)
    raise typer.Exit(code)
