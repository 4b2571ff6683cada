"""Measures requests to the real server over loopback, alternately with reference servers, so that noise affects both.

The best of several rounds counts: on a shared machine the others show the load of the machine.
"""

from pathlib import Path
from statistics import median

from msgspec import json

from tests.bench import merge_latency, queue_page, uploads
from tests.bench.busy_server import CANCEL, READ, SUBMIT, BusyServer, LoadSize
from tests.bench.load import Load
from tests.bench.naive_endpoint import naive_application
from tests.bench.reference_servers import echo_application, plain_application, reference_server

SEQUENTIAL_REQUESTS = 100
READS_EACH = 2
SLICES = 4
"""Reads are fast: more and shorter slices find the moments in which the machine is quiet."""


def measure(folder: Path, load_size: LoadSize, rounds: int) -> dict[str, float]:
    with Load() as load, BusyServer(folder, load_size) as server:
        server.prepare(load)
        return {
            **_measure_submissions(folder, server, load, rounds),
            **_measure_reads(folder, server, load, rounds),
            **uploads.measure(server, load, rounds),
            **queue_page.measure(server, load),
            **merge_latency.measure(server),
        }


def _measure_submissions(folder: Path, server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    numbers = dict[str, float]()
    naive_folder, blind_folder = folder / "naive", folder / "blind"
    naive_folder.mkdir()
    blind_folder.mkdir()
    with (
        reference_server(naive_application, str(naive_folder), server.secret, str(server.folder)) as naive_port,
        reference_server(naive_application, str(blind_folder), server.secret) as blind_port,
    ):
        for name, requests in (("64_queues", server.to_many_queues), ("one_queue", server.to_one_queue)):
            ours, naive, blind = list[float](), list[float](), list[float]()
            for _ in range(rounds):
                naive.append(load.requests_per_second([naive_port], requests(SUBMIT)))
                blind.append(load.requests_per_second([blind_port], requests(SUBMIT)))
                ours.append(load.requests_per_second([server.port], requests(SUBMIT)))
                load.requests_per_second([server.port], requests(CANCEL))
            numbers[f"submit_per_second_{name}"] = max(ours)
            numbers[f"naive_submit_per_second_{name}"] = max(naive)
            numbers[f"blind_submit_per_second_{name}"] = max(blind)
            numbers[f"submit_{name}_over_naive"] = max(ours) / max(naive)
            numbers[f"submit_{name}_over_blind"] = max(ours) / max(blind)
        return {**numbers, **_measure_response_times(server, load, naive_port, rounds)}


def _measure_response_times(server: BusyServer, load: Load, naive_port: int, rounds: int) -> dict[str, float]:
    """Milliseconds from a request until its decision is stored and returned, without other load."""
    ours, naive, requests = list[float](), list[float](), server.to_one_queue
    for _ in range(rounds):
        naive += load.response_times(naive_port, requests(SUBMIT)[:SEQUENTIAL_REQUESTS])
        ours += load.response_times(server.port, requests(SUBMIT)[:SEQUENTIAL_REQUESTS])
        load.requests_per_second([server.port], requests(CANCEL)[:SEQUENTIAL_REQUESTS])
    return {
        "decided_and_durable_ms": median(ours),
        "naive_durable_ms": median(naive),
        "decided_and_durable_over_naive": median(ours) / median(naive),
    }


def _measure_reads(folder: Path, server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    load.requests_per_second([server.port], server.to_many_queues(SUBMIT))
    response, requests = folder / "response.json", READS_EACH * server.to_many_queues(READ)
    response.write_bytes(json.encode(server.post(READ, next(server.tested_bodies()))))
    ours, echoed, plain = list[float](), list[float](), list[float]()
    with (
        reference_server(echo_application, str(response), f"/v1/{READ}") as echo_port,
        reference_server(plain_application, str(response)) as plain_port,
    ):
        for _ in range(SLICES * rounds):
            echoed.append(load.requests_per_second([echo_port], requests))
            plain.append(load.requests_per_second([plain_port], requests))
            ours.append(load.requests_per_second([server.port], requests))
    load.requests_per_second([server.port], server.to_many_queues(CANCEL))
    return {
        "read_per_second": max(ours),
        "echo_per_second": max(echoed),
        "plain_uvicorn_per_second": max(plain),
        "read_over_echo": max(ours) / max(echoed),
        "read_over_uvicorn": max(ours) / max(plain),
    }
