"""Puts the temporary files of tests into memory where that is possible.

Most tests create repositories and databases and remove them again, which takes longer on a disk than the test itself.
"""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
DISK = Path("/tmp")
MIN_FREE_BYTES = 2 * 2**30
"""Containers often limit this memory to 64 MiB."""


def use_memory() -> None:
    """Sets TMPDIR, also for processes that tests start, unless the environment has one."""
    if "TMPDIR" not in os.environ and _can_hold_repositories(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def _can_hold_repositories(folder: Path) -> bool:
    """Tests also start scripts in temporary folders."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= MIN_FREE_BYTES


@contextmanager
def folder_on_disk() -> Generator[Path]:
    """For a test of the sandbox, which has its own /dev/shm and therefore hides the one of the system."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        yield Path(folder)


def short_temporary_folder() -> Path:
    """Paths of sockets have at most 107 bytes, and TMPDIR may be longer than that."""
    return MEMORY if os.environ.get("TMPDIR") == str(MEMORY) else DISK
