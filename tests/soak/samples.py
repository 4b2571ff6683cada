"""Samples the resource use and the response time of a process every few seconds, from outside."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx2
from msgspec import Struct

from tests.support.server import Server

MIB = 1 << 20
DATABASE = "mergeyard.db"


class Sample(Struct, frozen=True):
    seconds: float
    """Since the start of the traffic."""
    ended: int
    """Pull requests that were concluded until then."""
    memory: int
    descriptors: int
    threads: int
    children: int
    zombies: int
    delay: float
    """Milliseconds until the event loop answered a health check."""
    database: int


class Disk(Struct, frozen=True):
    database: int
    mirrors: int
    mirror_files: int
    log: int


class Sampler:
    def __init__(self, server: Server, ended: Callable[[], int], every: float) -> None:
        self.samples: list[Sample] = []
        self._server = server
        self._ended = ended
        self._every = every
        self._started_at = time.monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._loop)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        with httpx2.Client(base_url=self._server.url, timeout=60) as client:
            while not self._stop.wait(self._every):
                self.samples.append(self._sample(client))

    def _sample(self, client: httpx2.Client) -> Sample:
        sent_at = time.perf_counter()
        client.get("/healthz").raise_for_status()
        delay = 1000 * (time.perf_counter() - sent_at)
        return take_sample(self._server, time.monotonic() - self._started_at, self._ended(), delay)


def take_sample(server: Server, seconds: float = 0, ended: int = 0, delay: float = 0) -> Sample:
    folder = Path("/proc", str(server.process.pid))
    facts = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    states = [state for child in _children(folder) if (state := _state(child))]
    return Sample(
        seconds=seconds,
        ended=ended,
        memory=int(facts["VmRSS"].split()[0]) * 1024,
        descriptors=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(facts["Threads"]),
        children=len(states),
        zombies=states.count("Z"),
        delay=delay,
        database=(server.folder / "data" / DATABASE).stat().st_size,
    )


def _children(folder: Path) -> Iterator[str]:
    for task in (folder / "task").iterdir():
        try:
            yield from (task / "children").read_text().split()
        except OSError:  # the process has just ended
            continue


def _state(process: str) -> str:
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def measure_disk(server: Server) -> Disk:
    """In whole blocks. The database without its write-ahead log, which is truncated now and then."""
    data = server.folder / "data"
    mirrors = [*_sizes(_all_below(data / "mirrors"))]
    database, log = (sum(_sizes([path])) for path in (data / DATABASE, server.folder / "server.log"))
    return Disk(database, sum(mirrors), len(mirrors), log)


def _all_below(folder: Path) -> Iterator[Path]:
    """`os.walk` tolerates folders that vanish meanwhile."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _sizes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield 512 * path.lstat().st_blocks
