"""When a server is to be killed: a file that it reads when it starts."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from subprocess import DEVNULL
from threading import Lock, Timer
from typing import assert_never

import msgspec
from msgspec import Struct

PLAN_VARIABLE = "KILL_PLAN"
"""The environment variable that names the file."""


class Moment(StrEnum):
    """A moment of an effect."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class LeftoverGit(StrEnum):
    """What happens to the git processes that a killed server leaves behind."""

    CONTINUES = "continues"
    IS_DELAYED = "is delayed"
    """It is stopped for a while, and continues when the next server is already working."""
    IS_KILLED = "is killed"


class KillPlan(Struct, frozen=True, kw_only=True):
    kill_log: str
    """The path of the file to which the boundary is appended at which the server was killed."""
    boundaries: dict[str, int] = {}
    """It is killed at the first of these boundaries that it reaches this many times."""
    delay: float = 0.0
    """Seconds between the start of an effect and a kill during it."""
    leftover_git: LeftoverGit = LeftoverGit.CONTINUES
    rival_command: str | None = None
    """A command that pushes to a target branch right before the first landing, with the ref and its commit."""

    def save(self, path: Path) -> None:
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: str) -> "KillPlan":
        return msgspec.json.decode(Path(path).read_bytes(), type=cls)


GIT_DELAY_S = 3


class Killer:
    def __init__(self) -> None:
        self._plan = KillPlan(kill_log="")
        self._reached = Counter[str]()
        self._kill_lock = Lock()
        self._rival: str | None = None

    def load(self, plan: KillPlan) -> None:
        self._plan = plan
        self._rival = plan.rival_command

    @contextmanager
    def around(self, *effects: str) -> Generator[None]:
        """Wraps one effect under all its names. A kill during it happens at the latest when the effect is over."""
        self.reach(Moment.BEFORE, *effects)
        due = self._due(Moment.DURING, *effects)
        if due:
            Timer(self._plan.delay, self._kill, [due]).start()
        try:
            yield
        finally:
            if due:
                self._kill(due)
        self.reach(Moment.AFTER, *effects)

    def reach(self, moment: Moment, *effects: str) -> None:
        due = self._due(moment, *effects)
        if due:
            self._kill(due)

    def push_concurrently(self, ref: str, commit: str, repository: str) -> None:
        """Given up if the branch has moved meanwhile."""
        rival, self._rival = self._rival, None
        if rival is not None:
            subprocess.run([rival, repository, ref, commit], check=False, stderr=DEVNULL)

    def _due(self, moment: Moment, *effects: str) -> str | None:
        names = [f"{effect}:{moment}" for effect in effects]
        self._reached.update(names)
        return next((name for name in names if self._plan.boundaries.get(name) == self._reached[name]), None)

    def _kill(self, name: str) -> None:
        """The lock is never released: the process is killed once."""
        self._kill_lock.acquire()
        with Path(self._plan.kill_log).open("a") as log:
            log.write(f"{name}\n")
        match self._plan.leftover_git:
            case LeftoverGit.CONTINUES:
                pass
            case LeftoverGit.IS_DELAYED:
                delay(*own_git_processes())
            case LeftoverGit.IS_KILLED:
                send(signal.SIGKILL, *own_git_processes())
            case _:
                assert_never(self._plan.leftover_git)
        send(signal.SIGKILL, os.getpid())


def send(number: signal.Signals, *processes: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def delay(*processes: int) -> None:
    send(signal.SIGSTOP, *processes)
    resume = f"sleep {GIT_DELAY_S}; kill -CONT {' '.join(map(str, processes))}"
    if processes:
        subprocess.Popen(["sh", "-c", resume], start_new_session=True, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)


def own_git_processes() -> Iterator[int]:
    """Direct children only. What git started at the repository itself runs on another machine in production."""
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            with suppress(OSError):
                if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"git\0"):
                    yield int(child)


KILLER = Killer()
