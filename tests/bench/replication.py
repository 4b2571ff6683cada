"""Measures one, two and four replicas on one PostgreSQL: throughput, version conflicts, and takeover after a kill."""

from pathlib import Path
from time import monotonic

from tests.bench.busy_server import CANCEL, SUBMIT, BusyServer, LoadSize
from tests.bench.load import Load
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer
from tests.support.replicas import Replica, Replicas

REPLICAS = 4
WRITERS = 8
CONFLICTS, DECISIONS, LEASES = (
    "mergeyard_version_conflicts_total",
    "mergeyard_decision_seconds_count",
    "mergeyard_leases",
)


def measure(folder: Path, load_size: LoadSize, rounds: int) -> dict[str, float]:
    folder.mkdir()
    with PostgresServer() as postgres, Load() as load:
        replicas = Replicas(folder, postgres.fresh_database(), *["all"] * REPLICAS)
        try:
            with BusyServer(folder, load_size, list(replicas)) as server:
                server.prepare(load)
                numbers = {**_measure_submissions(server, load, rounds), **_measure_conflicts(server, replicas, load)}
                return {**numbers, "takeover_seconds": _measure_takeover(replicas)}
        finally:
            replicas.close()


def _measure_submissions(server: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    rates = dict[int, list[float]]()
    for _ in range(rounds):
        for count in (1, 2, REPLICAS):
            ports = server.ports[:count]
            rates.setdefault(count, []).append(load.requests_per_second(ports, server.to_many_queues(SUBMIT)))
            load.requests_per_second(ports, server.to_many_queues(CANCEL))
    best = {count: max(each) for count, each in rates.items()}
    per_second = {f"submit_postgres_per_second_{count}_replicas": rate for count, rate in best.items()}
    return per_second | {f"submit_postgres_{count}_replicas_over_one": best[count] / best[1] for count in (2, REPLICAS)}


def _measure_conflicts(server: BusyServer, replicas: Replicas, load: Load) -> dict[str, float]:
    """A replica with a version conflict decides again: how often that happens when all replicas write to one queue."""
    conflicts, decisions = _sum(replicas, CONFLICTS), _sum(replicas, DECISIONS)
    rate = load.requests_per_second(server.ports, server.to_one_queue(SUBMIT), WRITERS)
    new_conflicts = _sum(replicas, CONFLICTS) - conflicts
    load.requests_per_second(server.ports, server.to_one_queue(CANCEL))
    return {
        f"submit_postgres_per_second_{WRITERS}_writers_one_queue": rate,
        f"conflicts_per_decision_{WRITERS}_writers_one_queue": new_conflicts / (_sum(replicas, DECISIONS) - decisions),
    }


def _measure_takeover(replicas: Replicas) -> float:
    all_leases = eventually(lambda: _sum(replicas, LEASES))
    victim = next(replica for replica in replicas if replica.holds_lease)
    others = [replica for replica in replicas if replica is not victim]
    killed_at = monotonic()
    victim.kill()
    eventually(lambda: _sum(others, LEASES) == all_leases)
    return monotonic() - killed_at


def _sum(replicas: Replicas | list[Replica], name: str) -> float:
    return sum(replica.metric(name) for replica in replicas)
