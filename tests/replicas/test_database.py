"""The database goes away and comes back: whoever asks is told so, nothing is lost, and all goes on by itself."""

from pathlib import Path

import httpx
import pytest

from tests.replicas.installation import Installation
from tests.replicas.world import World
from tests.support.api import Refused
from tests.support.patience import eventually
from tests.support.postgres import PostgresServer


@pytest.mark.long
def test_a_database_that_stops_and_starts_under_load_loses_nothing(tmp_path: Path):
    with PostgresServer() as server:
        world = World(tmp_path, server.fresh_database(), seed=1)

        def trouble() -> None:
            for go_away in (server.stop, server.crash):
                wait_for_progress(world.installation)
                go_away()
                tell_clearly(world.installation)
                server.start()
            wait_for_progress(world.installation)

        try:
            outcome = world.run(trouble)
        finally:
            world.close()
        print(outcome)
        assert outcome.merged > 0


def wait_for_progress(installation: Installation) -> None:
    """Something lands in every repository."""
    tips = {queue: queue.origin.tip(queue.target) for queue in installation.queues}
    for queue, tip in tips.items():
        eventually(
            lambda queue=queue, tip=tip: queue.origin.tip(queue.target) != tip, 60, but=installation.replicas.warnings
        )


def tell_clearly(installation: Installation) -> None:
    queue = installation.queues[0]
    for replica in installation.replicas:
        door = installation.through(replica, queue)
        for ask in (lambda door=door: door.post("getQueue"), lambda door=door: door.post("updateQueue", concurrency=1)):
            with pytest.raises(Refused) as refused:
                ask()
            assert (refused.value.status, refused.value.code) == (503, "storage_unavailable")
            assert refused.value.retryable
        assert httpx.get(f"{replica.url}/readyz").status_code == 503
        assert httpx.get(f"{replica.url}/healthz").status_code == 200
