"""Replicas wake each other with hints; when hints are lost, they poll the store."""

import pytest

from tests.replicas.conftest import Install
from tests.support.environment import QueueEnvironment
from tests.support.postgres import shared_server

CUT_LISTENERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = '{database}' AND query ~ '^(LISTEN|SELECT$)'
"""
FORBID_NOTIFY = "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC"


def work_through(queue: QueueEnvironment, *names: str) -> None:
    """Everything that one replica receives and another must learn: a submission, statuses, a cancellation."""
    queue.ci.enabled = False
    good, unwanted = (queue.open_pr({f"{name}.txt": "1"}) for name in names)
    queue.submit_in_order(good, unwanted)
    queue.wait_for("testing", good, unwanted)
    queue.cancel(unwanted)
    queue.ci.enabled = True
    assert queue.wait_for_end(good, unwanted) == ["merged", "cancelled"]


@pytest.mark.long
def test_replica_whose_listening_connection_is_cut_repeatedly_still_follows(install: Install):
    installation = install("api", "worker")
    database = installation.database_url.rpartition("/")[2]
    queue = installation.queue()
    cut = 0
    for name in "abc":
        cut += len(shared_server().run(CUT_LISTENERS.format(database=database)))
        work_through(queue, f"{name}1", f"{name}2")
    assert cut >= 2


@pytest.fixture
def database_without_notify() -> str:
    """A database in which no replica can send notifications."""
    server = shared_server()
    name = server.fresh_database().rpartition("/")[2]
    server.run(f"CREATE ROLE {name} LOGIN")
    server.run(f"ALTER DATABASE {name} OWNER TO {name}")
    server.run(FORBID_NOTIFY, name)
    return server.url(name, user=name)


@pytest.mark.long
def test_replicas_without_hints_follow_by_polling(install: Install, database_without_notify: str):
    installation = install.with_database(database_without_notify, "api", "worker")
    queue = installation.queue()
    work_through(queue, "a", "b")
    assert any("replica_hints_lost" in warning for warning in installation.replicas.warnings())
