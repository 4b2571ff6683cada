"""Measures what queues cost in which nothing happens, and whether creating one takes longer the more there are.

The processor time includes that of the git processes. The quietest of several periods counts: after a queue is created,
its mirror is maintained twice, and on a shared machine the others show the load of the machine.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copytree
from statistics import median
from time import perf_counter

import httpx2
from msgspec import Struct

from mergeyard.cli import db, token
from tests.bench.repositories import BenchRepository
from tests.support.environment import run_command
from tests.support.server import Server

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
FILES, PULL_REQUESTS = 20, 3
TENTH = slice(5, 15)
LAST = slice(-10, None)


class ProcessUse(Struct, frozen=True):
    """What the server and the processes that it started have used."""

    ticks: int
    mebibytes: float


def measure(folder: Path, queues: int, seconds: float, periods: int) -> dict[str, float]:
    with started_server(folder, queues) as (server, client):
        times = [measure_creation(client, number) for number in range(queues)]
        pid = server.process.pid
        percents = [measure_period(pid, seconds) for _ in range(periods)]
        mebibytes = read_use(pid).mebibytes
    tenth, last = median(times[TENTH] or times), median(times[LAST])
    return {
        "idle_queues": queues,
        "idle_cpu_percent": min(percents),
        "idle_mib": mebibytes,
        "create_tenth_queue_ms": tenth,
        "create_last_queue_ms": last,
        "create_last_over_tenth": last / tenth,
    }


@contextmanager
def started_server(folder: Path, queues: int) -> Generator[tuple[Server, httpx2.Client]]:
    folder.mkdir(parents=True)
    server, owner = Server(folder), folder / "repos" / "acme"
    template = BenchRepository(folder / "template.git", FILES, ("main",), PULL_REQUESTS)
    template.write()
    for number in range(queues):
        copytree(template.path, owner / f"idle-{number}.git")
    config = str(server.config)
    run_command(db.app, "migrate", "--config", config)
    secret = run_command(token.app, "create", "--name", "bench", "--scope", "admin", "--config", config).strip()
    server.start()
    try:
        with httpx2.Client(base_url=server.url, headers={"x-api-token": secret}, timeout=60) as client:
            yield server, client
    finally:
        server.stop()


def measure_creation(client: httpx2.Client, number: int) -> float:
    """In milliseconds."""
    repo = {"host": "git.local", "owner": "acme", "name": f"idle-{number}"}
    started = perf_counter()
    response = client.post("/v1/createQueue", json={"repo": repo, "targetBranch": "main"})
    assert response.status_code == httpx2.codes.OK, response.text
    return 1000 * (perf_counter() - started)


def measure_period(pid: int, seconds: float) -> float:
    """Per cent of one processor, rounded up to the next tick of the system's clock."""
    before, started = read_use(pid), perf_counter()
    time.sleep(seconds)
    ticks = read_use(pid).ticks - before.ticks + 1
    return 100 * ticks / TICKS_PER_SECOND / (perf_counter() - started)


def read_use(pid: int) -> ProcessUse:
    """Of the process, of its children that have ended, and of those that still run."""
    processes = {int(entry.name): read_stat(entry) for entry in Path("/proc").glob("[0-9]*")}
    fields = [found for number, found in processes.items() if found and pid in (number, int(found[1]))]
    ticks = sum(sum(map(int, found[11:15])) for found in fields)
    return ProcessUse(ticks, sum(int(found[21]) for found in fields) * os.sysconf("SC_PAGE_SIZE") / 2**20)


def read_stat(entry: Path) -> list[str]:
    """The fields of `/proc/PID/stat` after the name of the program; none if the process has ended."""
    with suppress(OSError):
        return (entry / "stat").read_text().rpartition(")")[2].split()
    return []
