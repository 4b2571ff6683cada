"""Clears away what a git that was killed left in a mirror: locks that nobody holds, and halves of what it wrote."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mergeyard.adapters.git_cli.process import GRACE, SECONDS_OVER_THE_NETWORK

PATTERNS = (
    *("*.lock", "refs/**/*.lock", "objects/*.lock", "objects/info/*.lock", "objects/pack/*.lock"),
    *("gc.pid", "packed-refs.new", "index-*"),
    *("objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*", "objects/tmp_obj*"),
    *("objects/info/commit-graphs/*.lock", "objects/info/commit-graphs/tmp_graph_*"),
)
BROKEN = ".broken-"
"""How the names of mirrors begin that were given up; whoever gave one up may have been killed before it was removed."""
LONGEST_LIFE = SECONDS_OVER_THE_NETWORK + 2 * GRACE
PROCESSES = Path("/proc")
"""Linux only. Elsewhere age alone tells that nobody can be at work on a file any more."""


def clear_away(mirror: Path) -> None:
    """What is listed before nobody is found at work belongs to nobody, whoever begins to work meanwhile."""
    found = list(leftovers(mirror))
    ours = found if found and not somebody_works_in(mirror) else list(filter(is_too_old, found))
    for path in (*ours, *mirror.parent.glob(f"{BROKEN}*")):
        remove(path)


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink() if path.is_file() else shutil.rmtree(path)


def leftovers(mirror: Path) -> Iterator[Path]:
    for pattern in PATTERNS:
        yield from mirror.glob(pattern)


def is_too_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - LONGEST_LIFE
    except OSError:
        return False


def somebody_works_in(mirror: Path) -> bool:
    """A git is told its repository by an argument, and those that it starts by their environment."""
    if not PROCESSES.is_dir():
        return True
    marks = (b"--git-dir=" + os.fsencode(mirror), b"GIT_DIR=" + os.fsencode(mirror))
    return any(
        mark in words
        for number in os.listdir(PROCESSES)
        if number.isdecimal()
        for words in told_to(number)
        for mark in marks
    )


def told_to(number: str) -> Iterator[list[bytes]]:
    for name in ("cmdline", "environ"):
        with suppress(OSError):
            yield (PROCESSES / number / name).read_bytes().split(b"\0")
