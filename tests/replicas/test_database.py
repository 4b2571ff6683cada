"""The database becomes unavailable and returns: requests are refused clearly, nothing is lost, all work continues."""

from pathlib import Path

import httpx2
import pytest

from tests.replicas.installation import Installation
from tests.replicas.world import World
from tests.support.api_client import ApiRefused
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer

RESPONSE_TIMEOUT_S = 30.0


@pytest.mark.long
def test_a_database_that_stops_and_starts_under_load_loses_nothing(tmp_path: Path):
    with PostgresServer() as server:
        world = World(tmp_path, server.fresh_database(), seed=1)

        def stop_database_twice() -> None:
            for stop in (server.stop, server.crash):
                wait_for_progress(world.installation)
                stop()
                check_refusals(world.installation)
                server.start()
            wait_for_progress(world.installation)

        try:
            outcome = world.run(stop_database_twice)
        finally:
            world.close()
        print(outcome)
        assert outcome.merged > 0


def wait_for_progress(installation: Installation) -> None:
    """Waits until something lands in every repository. Its users pause a queue now and then."""
    tips = {queue: queue.origin.tip(queue.target_branch) for queue in installation.queues}
    for queue, tip in tips.items():
        eventually(
            lambda queue=queue, tip=tip: queue.origin.tip(queue.target_branch) != tip,
            describe=installation.replicas.warnings,
        )


def check_refusals(installation: Installation) -> None:
    queue = installation.queues[0]
    for replica in installation.replicas:
        api = installation.api_of(replica, queue)
        for ask in (lambda api=api: api.post("getQueue"), lambda api=api: api.post("updateQueue", concurrency=1)):
            with pytest.raises(ApiRefused) as refused:
                ask()
            assert (refused.value.status, refused.value.code) == (503, "storage_unavailable")
            assert refused.value.retryable
        assert httpx2.get(f"{replica.url}/readyz", timeout=RESPONSE_TIMEOUT_S).status_code == 503
        assert httpx2.get(f"{replica.url}/healthz", timeout=RESPONSE_TIMEOUT_S).status_code == 200
