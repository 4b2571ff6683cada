"""Ends this very process with SIGKILL when it comes to a boundary that its orders name."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from threading import Lock, Timer
from typing import assert_never

from tests.kills.orders import GitFate, Moment, Orders

SECONDS_LATE = 3


class Reaper:
    def __init__(self) -> None:
        self._orders = Orders(tomb="")
        self._reached = Counter[str]()
        self._striking = Lock()
        self._rival: str | None = None

    def obey(self, orders: Orders) -> None:
        self._orders = orders
        self._rival = orders.rival

    @contextmanager
    def passing(self, *effects: str) -> Generator[None]:
        """One effect under all its names. An end in its midst comes at the latest when it is over."""
        self.reach(Moment.BEFORE, *effects)
        due = self._due(Moment.DURING, *effects)
        if due:
            Timer(self._orders.delay, self._strike, [due]).start()
        try:
            yield
        finally:
            if due:
                self._strike(due)
        self.reach(Moment.AFTER, *effects)

    def reach(self, moment: Moment, *effects: str) -> None:
        due = self._due(moment, *effects)
        if due:
            self._strike(due)

    def let_a_rival_push(self, ref: str, commit: str, repository: str) -> None:
        rival, self._rival = self._rival, None
        if rival is not None:
            subprocess.run([rival, repository, ref, commit], check=True)

    def _due(self, moment: Moment, *effects: str) -> str | None:
        names = [f"{effect}:{moment}" for effect in effects]
        self._reached.update(names)
        return next((name for name in names if self._orders.boundaries.get(name) == self._reached[name]), None)

    def _strike(self, name: str) -> None:
        """The lock is never released: there is one end only."""
        self._striking.acquire()
        with Path(self._orders.tomb).open("a") as tomb:
            tomb.write(f"{name}\n")
        match self._orders.git_fate:
            case GitFate.GOES_ON:
                pass
            case GitFate.IS_LATE:
                delay(*own_git_processes())
            case GitFate.DIES:
                send(signal.SIGKILL, *own_git_processes())
            case _:
                assert_never(self._orders.git_fate)
        send(signal.SIGKILL, os.getpid())


def send(number: signal.Signals, *processes: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def delay(*processes: int) -> None:
    send(signal.SIGSTOP, *processes)
    wake = f"sleep {SECONDS_LATE}; kill -CONT {' '.join(map(str, processes))}"
    if processes:
        subprocess.Popen(["sh", "-c", wake], start_new_session=True, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)


def own_git_processes() -> Iterator[int]:
    """Those that we started. What they in turn started at the repository itself is somebody else's machine."""
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            with suppress(OSError):
                if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"git\0"):
                    yield int(child)


REAPER = Reaper()
