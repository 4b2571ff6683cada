"""What the system knows of a process, those that it started included, and how quickly it answers."""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from time import process_time
from typing import Self

import httpx

PAUSE = 0.02
USUAL_READ_S = 0.6
"""What an ordinary server needs to read five million numbers with the standard library."""


def memory(pid: int, name: str = "VmRSS") -> int:
    """In MiB; `VmHWM` is the most that it ever was, of each by itself."""
    return sum(_figure(line) for each in _household(pid) for line in _lines(each, "status") if line.startswith(name))


def work(pid: int) -> float:
    """In seconds, however many others were at work meanwhile."""
    after_names = [line.rpartition(")")[2].split() for each in _household(pid) for line in _lines(each, "stat")]
    return sum(int(each[11]) + int(each[12]) for each in after_names) / os.sysconf("SC_CLK_TCK")


def slowness() -> float:
    """How many times slower this machine is now than an ordinary server at reading a large JSON list; at least 1."""
    body = b"[1.5" + b",1.5" * 5_000_000 + b"]"

    def read() -> float:
        began = process_time()
        json.loads(body)
        return process_time() - began

    return max(1.0, min(read() for _ in range(2)) / USUAL_READ_S)


def _household(pid: int) -> list[int]:
    """It may have started some from any of its threads."""
    started = [_text(path).split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *(int(child) for children in started for child in children)]


def _lines(pid: int, name: str) -> list[str]:
    return _text(Path(f"/proc/{pid}/{name}")).splitlines()


def _text(path: Path) -> str:
    """Nothing of a process that has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _figure(line: str) -> int:
    return int(line.split()[1]) // 1024


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
