"""Leases expire exactly by the database's own clock, and by no other clock."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from mergeyard.domain.timestamps import HOUR, later
from mergeyard.ports.store import Lease, LeaseLost
from mergeyard.ports.writes import AssertLease
from tests.contract.store.builders import REPO, a_decision, a_queue, opened
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock

TTL_MS = 10_000
GRACE_MS = 500


@asynccontextmanager
async def two_replicas(clock: ManualClock) -> AsyncGenerator[MemoryStore]:
    """One replica holds the only lease, and another one waits for it."""
    async with opened(MemoryStore(Records(), clock)) as store:
        await store.commit(a_queue())
        await store.register_worker("one", TTL_MS)
        await store.register_worker("other", 3 * TTL_MS)
        await store.acquire_leases("one", 1, (), 0)
        yield store


@asynchronous
async def test_until_the_last_millisecond_a_lease_is_held_and_cannot_be_acquired():
    clock = ManualClock()
    async with two_replicas(clock) as store:
        clock.move_to(later(clock.now(), TTL_MS - 1))
        assert await store.acquire_leases("other", 1, (REPO,), 0) == ()
        await store.commit(AssertLease("one", REPO, 1), a_decision(1))


@asynchronous
async def test_expired_lease_is_lost_and_free_for_a_replica_with_a_mirror():
    clock = ManualClock()
    async with two_replicas(clock) as store:
        clock.move_to(later(clock.now(), TTL_MS))
        with pytest.raises(LeaseLost):
            await store.commit(AssertLease("one", REPO, 1), a_decision(1))
        with pytest.raises(LeaseLost):
            await store.renew_leases("one", TTL_MS)
        assert await store.acquire_leases("one", 1, (REPO,), 0) == ()
        assert await store.acquire_leases("other", 1, (REPO,), GRACE_MS) == (Lease(REPO, 2),)


@asynchronous
async def test_replica_without_a_mirror_waits_for_the_grace_time():
    clock = ManualClock()
    async with two_replicas(clock) as store:
        clock.move_to(later(clock.now(), TTL_MS + GRACE_MS - 1))
        assert await store.acquire_leases("other", 1, (), GRACE_MS) == ()
        clock.move_to(later(clock.now(), 1))
        assert await store.acquire_leases("other", 1, (), GRACE_MS) == (Lease(REPO, 2),)


@asynchronous
async def test_lease_of_a_long_expired_replica_is_free_at_once():
    clock = ManualClock()
    async with two_replicas(clock) as store:
        clock.move_to(later(clock.now(), 25 * HOUR))
        await store.register_worker("new", TTL_MS)
        assert await store.acquire_leases("new", 1, (), 48 * HOUR) == (Lease(REPO, 2),)
