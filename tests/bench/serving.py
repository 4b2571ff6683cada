"""Asks the real server over loopback, in turn with what it is measured against, so that noise meets both alike.

The better of several rounds counts: on a shared machine the others tell more about the neighbours than about us.
"""

from pathlib import Path
from statistics import median

from msgspec import json

from tests.bench import finishing, paging, uploading
from tests.bench.busy_server import BusyServer, Crowd
from tests.bench.load import Load
from tests.bench.neighbour import neighbour

SUBMIT, CANCEL, GET = "submitPullRequest", "cancelPullRequest", "getSubmittedPullRequest"
ALONE = 100

READS_EACH = 2
SLICES = 4
"""Reads are quick: more and shorter slices find the moments in which the machine is quiet."""


def measure(folder: Path, crowd: Crowd, rounds: int) -> dict[str, float]:
    with Load() as load, BusyServer(folder, crowd) as server:
        server.prepare(load)
        return {
            **_submitting(folder, server, load, rounds),
            **_reading(folder, server, load, rounds),
            **uploading.measure(server, load, rounds),
            **paging.measure(server, load),
            **finishing.measure(server),
        }


def _submitting(folder: Path, server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    numbers = dict[str, float]()
    seeing, blind = folder / "seeing", folder / "blind"
    seeing.mkdir()
    blind.mkdir()
    with (
        neighbour("tests.bench.naive", str(seeing), server.secret, str(server.repositories)) as naive_port,
        neighbour("tests.bench.naive", str(blind), server.secret) as blind_port,
    ):
        for name, requests in (("64_queues", server.to_many_queues), ("one_queue", server.to_one_queue)):
            ours, naive, unseeing = list[float](), list[float](), list[float]()
            for _ in range(rounds):
                naive.append(load.pace([naive_port], requests(SUBMIT)))
                unseeing.append(load.pace([blind_port], requests(SUBMIT)))
                ours.append(load.pace([server.port], requests(SUBMIT)))
                load.pace([server.port], requests(CANCEL))
            numbers[f"submit_per_second_{name}"] = max(ours)
            numbers[f"submit_naively_per_second_{name}"] = max(naive)
            numbers[f"submit_blindly_per_second_{name}"] = max(unseeing)
            numbers[f"submit_{name}_over_naive"] = max(ours) / max(naive)
            numbers[f"submit_{name}_over_blind"] = max(ours) / max(unseeing)
        return {**numbers, **_waiting(server, load, naive_port, rounds)}


def _waiting(server: BusyServer, load: Load, naive_port: int, rounds: int) -> dict[str, float]:
    """Milliseconds from sending an event until what it led to is decided, durable and told, with nobody else around."""
    ours, naive, requests = list[float](), list[float](), server.to_one_queue
    for _ in range(rounds):
        naive += load.waits(naive_port, requests(SUBMIT)[:ALONE])
        ours += load.waits(server.port, requests(SUBMIT)[:ALONE])
        load.pace([server.port], requests(CANCEL)[:ALONE])
    return {
        "decided_and_durable_ms": median(ours),
        "naively_durable_ms": median(naive),
        "decided_and_durable_over_naive": median(ours) / median(naive),
    }


def _reading(folder: Path, server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    load.pace([server.port], server.to_many_queues(SUBMIT))
    answer, requests = folder / "answer.json", READS_EACH * server.to_many_queues(GET)
    answer.write_bytes(json.encode(server.post(GET, next(server.under_test()))))
    ours, echoed, bare = list[float](), list[float](), list[float]()
    with (
        neighbour("tests.bench.echo", str(answer), f"/v1/{GET}") as echo_port,
        neighbour("tests.bench.bare", str(answer)) as bare_port,
    ):
        for _ in range(SLICES * rounds):
            echoed.append(load.pace([echo_port], requests))
            bare.append(load.pace([bare_port], requests))
            ours.append(load.pace([server.port], requests))
    load.pace([server.port], server.to_many_queues(CANCEL))
    return {
        "read_per_second": max(ours),
        "echo_per_second": max(echoed),
        "bare_per_second": max(bare),
        "read_over_echo": max(ours) / max(echoed),
        "read_over_uvicorn": max(ours) / max(bare),
    }
