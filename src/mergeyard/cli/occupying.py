"""A data directory is one server's at a time: two would take turns on the same queues."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

LOCK = "server.lock"


class Occupied(Exception):
    """A server works there."""


@contextmanager
def alone_in(folder: Path) -> Generator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Occupied(str(folder)) from None
        yield
