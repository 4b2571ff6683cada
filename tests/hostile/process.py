"""What the system knows of a process, and how quickly it answers."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Self

import httpx

PAUSE = 0.02


def memory(pid: int, name: str = "VmRSS") -> int:
    """In MiB; `VmHWM` is the most that it ever was."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) // 1024


def work(pid: int) -> float:
    """In seconds, however many others were at work meanwhile."""
    after_its_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_its_name[11]) + int(after_its_name[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


class Neighbour(AbstractContextManager["Neighbour"]):
    """Somebody with a simple question, again and again; `seconds` tells how long each answer took."""

    def __init__(self, ask: Callable[[], httpx.Response]) -> None:
        self.seconds = list[float]()
        self._ask = ask
        self._enough = Event()
        self._thread = ThreadPoolExecutor(1)
        self._asking: Future[None] | None = None

    def __enter__(self) -> Self:
        self._asking = self._thread.submit(self._go_on)
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.shutdown()
        assert self._asking
        self._asking.result()

    @property
    def usually(self) -> float:
        """Longer than nine of ten had to wait; the tenth may have waited for other programs."""
        return sorted(self.seconds)[len(self.seconds) * 9 // 10]

    def _go_on(self) -> None:
        while not self._enough.wait(PAUSE):
            began = time.perf_counter()
            assert self._ask().status_code == 200
            self.seconds.append(time.perf_counter() - began)
