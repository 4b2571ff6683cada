"""Replicas wake each other by words; when words get lost, they look by themselves."""

import pytest

from tests.replicas.conftest import Install
from tests.support.postgres import shared_server
from tests.support.surroundings import Surroundings

CUT_EARS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = '{database}' AND query ~ '^(LISTEN|SELECT$)'
"""
FORBID_WORDS = "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC"


def work_through(queue: Surroundings, *names: str) -> None:
    """Everything that one replica takes in and another must learn of: a submission, statuses, a cancellation."""
    queue.ci.working = False
    good, unwanted = (queue.open_pr({f"{name}.txt": "1"}) for name in names)
    queue.line_up(good, unwanted)
    queue.wait_for("testing", good, unwanted)
    queue.cancel(unwanted)
    queue.ci.working = True
    assert queue.wait_for_end(good, unwanted) == ["merged", "cancelled"]


@pytest.mark.long
def test_a_replica_whose_listening_connection_is_cut_again_and_again_still_follows(install: Install):
    installation = install("api", "worker")
    database = installation.database_url.rpartition("/")[2]
    queue = installation.queue()
    cut = 0
    for name in "abc":
        cut += len(shared_server().run(CUT_EARS.format(database=database)))
        work_through(queue, f"{name}1", f"{name}2")
    assert cut >= 2


@pytest.fixture
def speechless() -> str:
    """A database in which nobody can call out."""
    server = shared_server()
    name = server.fresh_database().rpartition("/")[2]
    server.run(f"CREATE ROLE {name} LOGIN")
    server.run(f"ALTER DATABASE {name} OWNER TO {name}")
    server.run(FORBID_WORDS, name)
    return server.url(name, user=name)


def test_replicas_that_never_hear_a_word_follow_by_looking(install: Install, speechless: str):
    installation = install.upon(speechless, "api", "worker")
    queue = installation.queue()
    work_through(queue, "a", "b")
    assert any("the other replicas were not told" in words for words in installation.replicas.warnings())
