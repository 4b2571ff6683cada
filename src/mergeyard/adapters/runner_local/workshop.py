"""Holds the places that commands work in: a clean checkout and an empty home each, gone when the command is.

Every service process has a workshop of its own, which it holds by a lock. One whose lock is free belongs to a process
that was killed: its supervisors end their commands, and what files it left behind are cleared away.
"""

import asyncio
import errno
import fcntl
import os
import shutil
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

LOCK = "lock"
SUPERVISOR_TIMEOUT_S = 5.0
"""For the supervisors of a server that was killed: they end their commands first."""
LEAST_ROOM = 1024 * 1024


class Place(Struct, frozen=True):
    folder: Path

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """What a sandboxed command has as /tmp."""
        return self.folder / "tmp"

    @property
    def lock(self) -> Path:
        """The supervisor holds it as long as it lives."""
        return self.folder / LOCK


class Workshop:
    def __init__(self, street: Path) -> None:
        street.mkdir(parents=True, exist_ok=True)
        with held(street / LOCK):
            clear_abandoned(street)
            self._folder = street / uuid4().hex
            self._folder.mkdir()
            self._holding = ExitStack()
            self._holding.enter_context(held(self._folder / LOCK))
        self._numbers = count(1)

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[Place]:
        place = Place(self._folder / str(next(self._numbers)))
        try:
            for folder in (place.folder, place.home, place.tmp):
                folder.mkdir()
            yield place
        finally:
            await asyncio.to_thread(remove, place.folder)

    def close(self) -> None:
        remove(self._folder)
        self._holding.close()


def refuse_without_room(place: Place) -> None:
    """Whatever fails on a full disk may have failed for that."""
    disk = os.statvfs(place.folder)
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place.folder))


def clear_abandoned(street: Path) -> None:
    for folder in street.iterdir():
        if folder.is_dir() and not is_held(folder / LOCK):
            await_supervisors(folder)
            remove(folder)


@contextmanager
def held(lock: Path) -> Generator[None]:
    """The lock goes with the process, however that ends; commands do not inherit it."""
    with lock.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_held(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def await_supervisors(folder: Path) -> None:
    deadline = time.monotonic() + SUPERVISOR_TIMEOUT_S
    while any(is_held(lock) for lock in folder.glob(f"*/{LOCK}")) and time.monotonic() < deadline:
        time.sleep(0.02)


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        open_all_doors(folder)
        shutil.rmtree(folder, ignore_errors=True)


def open_all_doors(folder: Path) -> None:
    """Some tools write folders that even their owner may not change. Links lead elsewhere, and are left alone."""
    for parent, names, _ in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
