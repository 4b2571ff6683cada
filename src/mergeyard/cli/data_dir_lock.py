"""The lock of the data directory: only one server works in it at a time."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class DataDirLocked(Exception):
    """Another process holds the lock."""


@contextmanager
def lock_data_dir(folder: Path) -> Generator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirLocked(str(folder)) from None
        yield


LOCK_FILE = "server.lock"
