"""Resource use of a process and its children, and how fast it responds."""

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

import httpx2

PAUSE = 0.02
USUAL_READ_S = 0.6
"""What an ordinary server needs to parse five million numbers with the standard library."""


def memory_mib(pid: int, name: str = "VmRSS") -> int:
    """In MiB, of the process and its children; `VmHWM` is the maximum so far of each."""
    return sum(_to_mib(line) for each in _process_tree(pid) for line in _lines(each, "status") if line.startswith(name))


def processor_seconds(pid: int) -> float:
    """Processor time in seconds."""
    fields = [line.rpartition(")")[2].split() for each in _process_tree(pid) for line in _lines(each, "stat")]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def slowness() -> float:
    """How many times slower this machine is now than an ordinary server at parsing a large JSON list; at least 1."""
    body = b"[1.5" + b",1.5" * 5_000_000 + b"]"

    def read() -> float:
        started_at = process_time()
        json.loads(body)
        return process_time() - started_at

    return max(1.0, min(read() for _ in range(2)) / USUAL_READ_S)


def _process_tree(pid: int) -> list[int]:
    """The process and its children, which any of its threads can have started."""
    started = [_text(path).split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *(int(child) for children in started for child in children)]


def _lines(pid: int, name: str) -> list[str]:
    return _text(Path(f"/proc/{pid}/{name}")).splitlines()


def _text(path: Path) -> str:
    """Empty for a process that has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _to_mib(line: str) -> int:
    return int(line.split()[1]) // 1024


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


class Probe(AbstractContextManager["Probe"]):
    """Repeats a simple request; `seconds` contains the time of each response."""

    def __init__(self, ask: Callable[[], httpx2.Response]) -> None:
        self.seconds = list[float]()
        self._ask = ask
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1)
        self._loop_result: Future[None] | None = None

    def __enter__(self) -> Self:
        self._loop_result = self._thread.submit(self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown()
        assert self._loop_result
        self._loop_result.result()

    @property
    def percentile_90(self) -> float:
        """The 90th percentile; slower ones can be due to other programs on the machine."""
        return sorted(self.seconds)[len(self.seconds) * 9 // 10]

    def _loop(self) -> None:
        while not self._stop.wait(PAUSE):
            started_at = time.perf_counter()
            assert self._ask().status_code == 200
            self.seconds.append(time.perf_counter() - started_at)
