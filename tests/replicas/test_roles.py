"""A replica that only answers works for nobody, and one that only works answers nobody but those who watch over it."""

import httpx
import pytest

from tests.replicas.conftest import Install


@pytest.mark.long
def test_a_replica_that_only_answers_leaves_all_work_to_others(install: Install):
    installation = install("api", "worker", "worker")
    answering, *working = installation.replicas
    queue = installation.queue()
    for name in "abc":
        number = queue.open_pr({f"{name}.txt": "1"})
        queue.submit(number)
        queue.wait_for("merged", number)
        on_duty = installation.replicas.on_duty()
        assert on_duty in working
        on_duty.stop()
        on_duty.start()
    assert answering.metric("mergeyard_duties_taken_total") == 0
    assert answering.metric("mergeyard_tasks_total") == 0


def test_when_nobody_works_those_who_only_answer_take_down_what_is_to_be_done(install: Install):
    installation = install("api", "worker")
    answering, working = installation.replicas
    queue = installation.queue()
    working.stop()
    number = queue.open_pr({"a.txt": "1"})
    before = len(queue.host_log)
    queue.submit(number)
    assert queue.state(number) == "not_ready"
    assert httpx.get(f"{answering.url}/readyz").status_code == 200
    assert len(queue.host_log) == before
    working.start()
    queue.wait_for("merged", number)


def test_a_replica_that_only_works_answers_nobody_but_those_who_watch_over_it(install: Install):
    installation = install("worker")
    (working,) = installation.replicas
    for path in ("/healthz", "/readyz", "/metrics"):
        assert httpx.get(f"{working.url}{path}").status_code == 200
    for path in ("submitPullRequest", "getQueue", "createQueue", "reportCommitStatus"):
        refusal = httpx.post(f"{working.url}/v1/{path}", json={})
        assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")
