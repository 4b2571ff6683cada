"""Waits for something to become true, but not for ever."""

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 90.0
PAUSE = 0.05

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found | None], seconds: float = SECONDS, but: Callable[[], object] = lambda: ""
) -> Found:
    """The first thing that looking finds; `but` tells what was there instead when patience ends."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing came of it within {seconds:g} seconds: {but()}"
        time.sleep(PAUSE)
    return found
