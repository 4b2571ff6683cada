"""`mergeyard serve` as it is, in a room whose clock on the wall can be set while it runs.

    WALL=shift.txt python -m tests.surroundings.server serve --config mergeyard.toml

The file holds by how many seconds the wall is ahead of the machine's own time.
"""

import os
import time
from functools import partial
from pathlib import Path

from mergeyard import __main__, wiring
from mergeyard.adapters.clock import CalmClock, WallClock

VARIABLE = "WALL"
NANOSECONDS = 1_000_000_000


def shown_by(file: Path) -> int:
    return time.time_ns() + int(file.read_text()) * NANOSECONDS


def main() -> None:
    wall = partial(shown_by, Path(os.environ[VARIABLE]))
    for name, clock in (("WallClock", WallClock), ("CalmClock", CalmClock)):
        assert getattr(wiring, name) is clock
        setattr(wiring, name, partial(clock, wall))
    __main__.main()


if __name__ == "__main__":
    main()
