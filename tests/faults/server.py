"""`mergeyard serve` with a wall clock that can be set while it runs.

    CLOCK_SHIFT=shift.txt python -m tests.surroundings.server serve --config mergeyard.toml

The file contains the number of seconds by which the clock is ahead of the machine's time.
"""

import os
import time
from functools import partial
from pathlib import Path

from mergeyard import __main__, wiring
from mergeyard.adapters.clock import SlewingClock, WallClock

VARIABLE = "CLOCK_SHIFT"
NANOSECONDS = 1_000_000_000


def shifted_time_ns(file: Path) -> int:
    return time.time_ns() + int(file.read_text()) * NANOSECONDS


def main() -> None:
    time_ns = partial(shifted_time_ns, Path(os.environ[VARIABLE]))
    for name, clock in (("WallClock", WallClock), ("SlewingClock", SlewingClock)):
        assert getattr(wiring, name) is clock
        setattr(wiring, name, partial(clock, time_ns))
    __main__.main()


if __name__ == "__main__":
    main()
