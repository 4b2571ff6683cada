"""Uploads lists of targets as long as they may be, one after the other, while others read a pull request.

No list is the one before it, which would be recognised and cost less.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from statistics import quantiles
from threading import Event

from msgspec import json

from tests.bench.busy_server import BusyServer, asked
from tests.bench.load import Load

SUBMIT, CANCEL, READ = "submitPullRequest", "cancelPullRequest", "getSubmittedPullRequest"
READERS = 4
TARGETS = 180_000
NAME = "//services/payments/ledger/accounts/reconciliation/internal/rules:library_number_{:06d}_of_many_more"
"""A hundred bytes, so that all of them are 18 MB."""


def measure(server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    """Milliseconds in which 99 of 100 reads are answered, in turn with and without uploads beside them."""
    calm, meanwhile = list[float](), list[float]()
    reads, bodies = server.to_one_queue(READ), cycle([upload_of(server, first) for first in (0, 1)])
    load.pace([server.port], server.to_one_queue(SUBMIT))
    for _ in range(rounds):
        calm += load.waits(server.port, reads, READERS)
        with _uploading(server, bodies):
            meanwhile += load.waits(server.port, reads, READERS)
    load.pace([server.port], server.to_one_queue(CANCEL))
    return {
        "read_p99_ms": _p99(calm),
        "read_p99_ms_during_upload": _p99(meanwhile),
        "read_p99_during_upload_over_calm": _p99(meanwhile) / _p99(calm),
    }


def upload_of(server: BusyServer, first: int) -> bytes:
    (pull,) = asked(server.one, [server.one.pulls])
    return json.encode({**pull, "impactedTargets": [NAME.format(first + number) for number in range(TARGETS)]})


@contextmanager
def _uploading(server: BusyServer, bodies: Iterator[bytes]) -> Generator[None]:
    enough = Event()

    def upload() -> None:
        while not enough.is_set():
            server.upload(next(bodies))

    with ThreadPoolExecutor(1) as thread:
        uploads = thread.submit(upload)
        try:
            yield
        finally:
            enough.set()
    uploads.result()


def _p99(waits: list[float]) -> float:
    return quantiles(waits, n=100)[-1]
