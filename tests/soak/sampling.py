"""Looks at a process from outside every few seconds: what it holds, and how soon it answers a cheap question."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx
from msgspec import Struct

from tests.support.server import Server

MIB = 1 << 20
DATABASE = "mergeyard.db"


class Sample(Struct, frozen=True):
    seconds: float
    """Since the beginning."""
    ended: int
    """Pull requests that had ended until then."""
    memory: int
    descriptors: int
    threads: int
    children: int
    zombies: int
    delay: float
    """Milliseconds until the event loop answered that it is well."""
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
        self._begun = time.monotonic()
        self._enough = Event()
        self._thread = Thread(target=self._go_on)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _go_on(self) -> None:
        with httpx.Client(base_url=self._server.url, timeout=60) as client:
            while not self._enough.wait(self._every):
                self.samples.append(self._sample(client))

    def _sample(self, client: httpx.Client) -> Sample:
        asked = time.perf_counter()
        client.get("/healthz").raise_for_status()
        delay = 1000 * (time.perf_counter() - asked)
        return looked_at(self._server, time.monotonic() - self._begun, self._ended(), delay)


def looked_at(server: Server, seconds: float = 0, ended: int = 0, delay: float = 0) -> Sample:
    place = Path("/proc", str(server.process.pid))
    facts = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    states = [state for child in _children(place) if (state := _state(child))]
    return Sample(
        seconds=seconds,
        ended=ended,
        memory=int(facts["VmRSS"].split()[0]) * 1024,
        descriptors=sum(1 for _ in (place / "fd").iterdir()),
        threads=int(facts["Threads"]),
        children=len(states),
        zombies=states.count("Z"),
        delay=delay,
        database=(server.folder / "data" / DATABASE).stat().st_size,
    )


def _children(place: Path) -> Iterator[str]:
    for task in (place / "task").iterdir():
        try:
            yield from (task / "children").read_text().split()
        except OSError:  # it has just ended
            continue


def _state(process: str) -> str:
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def disk_used(server: Server) -> Disk:
    """In whole blocks, as the disk gives them; of the database without its log, which is emptied now and then."""
    data = server.folder / "data"
    mirrors = [*_sizes(_all_below(data / "mirrors"))]
    database, log = (sum(_sizes([path])) for path in (data / DATABASE, server.folder / "server.log"))
    return Disk(database, sum(mirrors), len(mirrors), log)


def _all_below(folder: Path) -> Iterator[Path]:
    """Folders, too, may vanish meanwhile."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def _sizes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield 512 * path.lstat().st_blocks
