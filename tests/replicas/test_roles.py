"""The role `api` performs no tasks, and the role `worker` serves only health and metrics."""

import httpx2
import pytest

from tests.replicas.conftest import Install


@pytest.mark.long
def test_api_replica_leaves_all_tasks_to_workers(install: Install):
    installation = install("api", "worker", "worker")
    api_replica, *workers = installation.replicas
    queue = installation.queue()
    for name in "abc":
        number = queue.open_pr({f"{name}.txt": "1"})
        queue.submit(number)
        queue.wait_for("merged", number)
        holder = installation.replicas.lease_holder()
        assert holder in workers
        holder.stop()
        holder.start()
    assert api_replica.metric("mergeyard_leases_acquired_total") == 0
    assert api_replica.metric("mergeyard_tasks_total") == 0


@pytest.mark.long
def test_without_workers_an_api_replica_stores_submissions(install: Install):
    installation = install("api", "worker")
    api_replica, worker = installation.replicas
    queue = installation.queue()
    worker.stop()
    number = queue.open_pr({"a.txt": "1"})
    before = len(queue.host_log)
    queue.submit(number)
    assert queue.state(number) == "not_ready"
    assert httpx2.get(f"{api_replica.url}/readyz").status_code == 200
    assert len(queue.host_log) == before
    worker.start()
    queue.wait_for("merged", number)


def test_worker_serves_only_health_and_metrics(install: Install):
    installation = install("worker")
    (worker,) = installation.replicas
    for path in ("/healthz", "/readyz", "/metrics"):
        assert httpx2.get(f"{worker.url}{path}").status_code == 200
    for path in ("submitPullRequest", "getQueue", "createQueue", "reportCommitStatus"):
        refusal = httpx2.post(f"{worker.url}/v1/{path}", json={})
        assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")
