"""Ends processes by what they were started with: their home is a folder that only our commands have.

A process that left its group, or whose service was killed, still has that home. One that took over the number of a
process of ours has not, so nobody else is ever hit.
"""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")
"""Linux only. Elsewhere there is nothing to look at, and the group is all that is ended."""
MILLISECONDS_TO_END = 5000
"""One that waits for a disk or a network drive may take for ever."""


def end_all_at_home_in(folder: Path) -> None:
    """Again until no other is found: one may start another while we look."""
    ended = set[int]()
    while found := {number for number in process_numbers() - ended if end_if_at_home(number, folder)}:
        ended |= found


def process_numbers() -> set[int]:
    if not PROCESSES.is_dir():
        return set()
    return {int(entry) for entry in os.listdir(PROCESSES) if entry.isdecimal()}


def end_if_at_home(number: int, folder: Path) -> bool:
    """The handle keeps meaning the same process, while a number may change hands between looking and ending."""
    try:
        handle = os.pidfd_open(number)
    except OSError:
        return False
    try:
        if not is_at_home(number, folder):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        await_end(handle)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def await_end(handle: int) -> None:
    """Until then it may still write into a folder that is about to be removed."""
    ending = select.poll()
    ending.register(handle, select.POLLIN)
    ending.poll(MILLISECONDS_TO_END)


def is_at_home(number: int, folder: Path) -> bool:
    """An ended process that nobody has taken note of yet has no environment any more, and so no home."""
    with suppress(OSError):
        variables = (PROCESSES / str(number) / "environ").read_bytes().split(b"\0")
        return any(variable.startswith(b"HOME=" + os.fsencode(folder) + b"/") for variable in variables)
    return False
