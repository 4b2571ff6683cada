"""Asks one, two and four replicas on one PostgreSQL, lets them quarrel about a queue, and kills one on duty."""

from pathlib import Path
from time import monotonic

from tests.bench.busy_server import BusyServer, Crowd
from tests.bench.load import Load
from tests.bench.serving import CANCEL, SUBMIT
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer
from tests.support.replicas import Replica, Replicas

REPLICAS = 4
WRITERS = 8
OUTRUN, TURNS, DUTIES = "mergeyard_turns_outrun_total", "mergeyard_turn_seconds_count", "mergeyard_duties"


def measure(folder: Path, crowd: Crowd, rounds: int) -> dict[str, float]:
    folder.mkdir()
    with PostgresServer() as postgres, Load() as load:
        replicas = Replicas(folder, postgres.fresh_database(), *["all"] * REPLICAS)
        try:
            with BusyServer(folder, crowd, list(replicas)) as servers:
                servers.prepare(load)
                numbers = {**_submitting(servers, load, rounds), **_quarrelling(servers, replicas, load)}
                return {**numbers, "takeover_seconds": _taking_over(replicas)}
        finally:
            replicas.close()


def _submitting(servers: BusyServer, load: Load, rounds: int) -> dict[str, float]:
    paces = dict[int, list[float]]()
    for _ in range(rounds):
        for count in (1, 2, REPLICAS):
            ports = servers.ports[:count]
            paces.setdefault(count, []).append(load.pace(ports, servers.to_many_queues(SUBMIT)))
            load.pace(ports, servers.to_many_queues(CANCEL))
    best = {count: max(each) for count, each in paces.items()}
    shown = {f"submit_postgres_per_second_{count}_replicas": pace for count, pace in best.items()}
    return shown | {f"submit_postgres_{count}_replicas_over_one": best[count] / best[1] for count in (2, REPLICAS)}


def _quarrelling(servers: BusyServer, replicas: Replicas, load: Load) -> dict[str, float]:
    """Whoever was outrun decides again: how often that happens to those who write to one queue through all replicas."""
    outrun, turns = _sum(replicas, OUTRUN), _sum(replicas, TURNS)
    pace = load.pace(servers.ports, servers.to_one_queue(SUBMIT), WRITERS)
    lost = _sum(replicas, OUTRUN) - outrun
    load.pace(servers.ports, servers.to_one_queue(CANCEL))
    return {
        f"submit_postgres_per_second_{WRITERS}_writers_one_queue": pace,
        f"turns_lost_per_turn_{WRITERS}_writers_one_queue": lost / (_sum(replicas, TURNS) - turns),
    }


def _taking_over(replicas: Replicas) -> float:
    everything = eventually(lambda: _sum(replicas, DUTIES))
    victim = next(replica for replica in replicas if replica.on_duty)
    others = [replica for replica in replicas if replica is not victim]
    killed = monotonic()
    victim.kill()
    eventually(lambda: _sum(others, DUTIES) == everything)
    return monotonic() - killed


def _sum(replicas: Replicas | list[Replica], name: str) -> float:
    return sum(replica.metric(name) for replica in replicas)
