"""Measures reads of a pull request during uploads of the longest allowed lists of impacted targets.

Each list differs from the one before: the server would recognize the same list, which costs less.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from statistics import quantiles
from threading import Event

from msgspec import json

from tests.bench.busy_server import CANCEL, READ, SUBMIT, BusyServer, request_bodies
from tests.bench.load import Load

READERS = 4
TARGETS = 180_000
TARGET_NAME = "//services/payments/ledger/accounts/reconciliation/internal/rules:library_number_{:06d}_of_many_more"
"""A hundred bytes each, 18 MB in total."""


def measure(server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    """The 99th percentile of read times in milliseconds, alternately with and without concurrent uploads."""
    quiet, during_upload = list[float](), list[float]()
    reads, bodies = server.to_one_queue(READ), cycle([upload_body(server, first) for first in (0, 1)])
    load.requests_per_second([server.port], server.to_one_queue(SUBMIT))
    for _ in range(rounds):
        quiet += load.response_times(server.port, reads, READERS)
        with _uploading(server, bodies):
            during_upload += load.response_times(server.port, reads, READERS)
    load.requests_per_second([server.port], server.to_one_queue(CANCEL))
    return {
        "read_p99_ms": _p99(quiet),
        "read_p99_ms_during_upload": _p99(during_upload),
        "read_p99_during_upload_over_quiet": _p99(during_upload) / _p99(quiet),
    }


def upload_body(server: BusyServer, first: int) -> bytes:
    (body,) = request_bodies(server.single, [server.single.pull_requests])
    return json.encode({**body, "impactedTargets": [TARGET_NAME.format(first + number) for number in range(TARGETS)]})


@contextmanager
def _uploading(server: BusyServer, bodies: Iterator[bytes]) -> Generator[None]:
    stopped = Event()

    def upload() -> None:
        while not stopped.is_set():
            server.upload(next(bodies))

    with ThreadPoolExecutor(1) as thread:
        uploads = thread.submit(upload)
        try:
            yield
        finally:
            stopped.set()
    uploads.result()


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100)[-1]
