"""A replica works for a repository only while it holds the lease, and its listeners learn when a lease ends."""

from pathlib import Path

import pytest
from msgspec import Struct, field

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.queue import Queue, TargetBranch
from mergeyard.domain.timestamps import Instant, later
from mergeyard.ports.store import Lease, LeaseLost
from mergeyard.ports.writes import AssertLease
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from tests.support.clock import ManualClock
from tests.support.log_capture import capture_warnings

APP, LIB = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "lib")
LEASE_MS = 10_000


class RecordingListener(Struct):
    """Lists the actors that it was notified of and whose lease it has not lost."""

    notified: list[QueueActor] = field(default_factory=list[QueueActor])

    def on_change(self, actor: QueueActor, _: Queue | None) -> None:
        self.notified.append(actor)

    def on_lease_lost(self, actor: QueueActor) -> None:
        self.notified.remove(actor)


class LeaseFixture:
    """A replica with fresh leases, and a queue in each of two repositories."""

    def __init__(self, *leases: Lease) -> None:
        self.clock = ManualClock()
        self.leases = Leases(self.clock)
        self.listener = RecordingListener()
        self.leases.listeners.append(self.listener)
        self.actors = {repo: self._create_actor(repo) for repo in (APP, LIB)}
        self.leases.require_leases("one")
        self.leases.extend_until(later(self.clock.now(), LEASE_MS))
        self.replace_leases(*leases)

    def _create_actor(self, repo: Repo) -> QueueActor:
        queue = Queue(id=QueueId(repo.name), target_branch=TargetBranch(name="main"))
        return QueueActor(QueueKey(repo, "main"), queue, 1, SqliteStore(Path("unused")), self.clock)

    def replace_leases(self, *leases: Lease) -> None:
        self.leases.replace_all(leases, lambda repo: [self.actors[repo]])

    def notify(self, repo: Repo) -> None:
        self.leases.on_change(self.actors[repo], None)


class RaisingListener:
    def on_change(self, actor: QueueActor, _: Queue | None) -> None:
        raise ValueError(f"a bug with {actor.key}")

    def on_lease_lost(self, actor: QueueActor) -> None:
        raise ValueError(f"a bug with {actor.key}")


def test_a_listener_that_raises_keeps_the_others_neither_from_changes_nor_from_the_end_of_a_lease():
    fixture = LeaseFixture(Lease(APP, 1), Lease(LIB, 1))
    fixture.leases.listeners.insert(0, RaisingListener())
    with capture_warnings() as entries:
        fixture.notify(APP)
        fixture.notify(LIB)
        assert fixture.listener.notified == [fixture.actors[APP], fixture.actors[LIB]]
        fixture.replace_leases()
    assert fixture.listener.notified == []
    assert [entry["event"] for entry in entries] == ["queue_listener_failed"] * 2 + ["lease_listener_failed"] * 2


def test_a_single_server_holds_every_lease_and_asserts_none():
    leases = Leases(ManualClock())
    assert leases.has_lease(APP)
    assert leases.lease_assertion(APP) == ()


def test_a_replica_works_only_for_repositories_whose_lease_it_holds():
    fixture = LeaseFixture(Lease(APP, 3))
    fixture.notify(APP)
    fixture.notify(LIB)
    assert fixture.listener.notified == [fixture.actors[APP]]


def test_a_lease_assertion_carries_the_fence():
    fixture = LeaseFixture(Lease(APP, 3))
    assert fixture.leases.lease_assertion(APP) == (AssertLease("one", APP, 3),)
    with pytest.raises(LeaseLost):
        fixture.leases.lease_assertion(LIB)


def test_a_replica_that_loses_a_lease_stops_working_for_the_repository():
    fixture = LeaseFixture(Lease(APP, 3), Lease(LIB, 1))
    fixture.notify(APP)
    fixture.notify(LIB)
    fixture.replace_leases(Lease(LIB, 1))
    assert fixture.listener.notified == [fixture.actors[LIB]]
    assert not fixture.leases.has_lease(APP)


def test_a_lease_with_a_new_fence_is_a_new_lease():
    fixture = LeaseFixture(Lease(APP, 3))
    fixture.notify(APP)
    assert fixture.leases.find_new([Lease(APP, 5)]) == (APP,)
    fixture.replace_leases(Lease(APP, 5))
    assert fixture.listener.notified == []


def test_a_replica_whose_leases_expired_does_no_work():
    fixture = LeaseFixture(Lease(APP, 3))
    fixture.clock.move_to(Instant(fixture.clock.now() + LEASE_MS))
    fixture.notify(APP)
    assert fixture.listener.notified == []
    assert fixture.leases.is_expired
