"""Leases: each repository has one replica that works for it, and the fence identifies the last holder."""

import asyncio

import pytest

from mergeyard.adapters.store_postgres.connection import open_connection
from mergeyard.adapters.store_postgres.writes import perform_write
from mergeyard.domain.ids import QueueId, QueueKey, Repo, SubmissionId
from mergeyard.ports.store import Lease, LeaseLost, SharedStore
from mergeyard.ports.writes import AssertLease
from tests.contract.replication.support import (
    APP,
    LIB,
    LONG_MS,
    NO_WAIT_MS,
    SHORT_MS,
    WEB,
    a_queue_of,
    open_all,
    wait_for_result,
)
from tests.contract.store.builders import NEXT, OTHER, QUEUE, a_decision, a_queue, a_submission
from tests.support.asynchronous import asynchronous

ALL = 100


async def has_lost_lease(store: SharedStore, replica: str) -> bool:
    """Whether its lease has expired; this call does not renew it."""
    try:
        await store.commit(AssertLease(replica, APP, 1))
    except LeaseLost:
        return True
    return False


@asynchronous
async def test_a_repository_with_a_queue_is_leased_once(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        assert set(await one.acquire_leases("one", ALL, (), NO_WAIT_MS)) == {Lease(APP, 1), Lease(LIB, 1)}
        assert await other.acquire_leases("other", ALL, (APP, LIB), NO_WAIT_MS) == ()


@asynchronous
async def test_two_queues_of_a_repository_share_one_lease(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await one.register_worker("one", LONG_MS)
        assert await one.acquire_leases("one", ALL, (), NO_WAIT_MS) == (Lease(APP, 1),)


@asynchronous
async def test_renewing_returns_the_leases_and_the_numbers_of_repositories_and_workers(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        taken = await one.acquire_leases("one", 2, (), NO_WAIT_MS)
        status = await one.renew_leases("one", LONG_MS)
        assert (set(status.leases), status.repository_count, status.worker_count) == (set(taken), 3, 2)
        assert (await other.renew_leases("other", LONG_MS)).leases == ()


@asynchronous
async def test_no_more_leases_are_acquired_than_requested(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.register_worker("one", LONG_MS)
        assert [len(await one.acquire_leases("one", 2, (), NO_WAIT_MS)) for _ in range(3)] == [2, 1, 0]
        assert len((await one.renew_leases("one", LONG_MS)).leases) == 3


@asynchronous
async def test_preferred_repositories_are_leased_first(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.register_worker("one", LONG_MS)
        assert await one.acquire_leases("one", 1, (WEB, Repo("elsewhere", "acme", "web")), NO_WAIT_MS) == (
            Lease(WEB, 1),
        )
        assert await one.acquire_leases("one", 1, (LIB,), NO_WAIT_MS) == (Lease(LIB, 1),)


@asynchronous
async def test_a_released_lease_is_reserved_for_replicas_that_prefer_it_for_a_while(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.release_leases("one", (APP, LIB, WEB))
        assert (await one.renew_leases("one", LONG_MS)).leases == ()
        assert await other.acquire_leases("other", ALL, (LIB,), LONG_MS) == (Lease(LIB, 2),)
        assert await wait_for_result(lambda: other.acquire_leases("other", ALL, (), SHORT_MS)) == (Lease(APP, 2),)


@asynchronous
async def test_a_repository_that_never_had_a_lease_is_leased_without_delay(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue_of(APP))
        await one.register_worker("one", LONG_MS)
        assert await one.acquire_leases("one", ALL, (), LONG_MS) == (Lease(APP, 1),)


@asynchronous
async def test_a_replica_cannot_release_the_lease_of_another(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP))
        await one.register_worker("one", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await other.release_leases("other", (APP,))
        await other.unregister_worker("other")
        assert (await one.renew_leases("one", LONG_MS)).leases == (Lease(APP, 1),)


@asynchronous
async def test_a_replica_that_stops_renewing_loses_its_leases(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", SHORT_MS)
        assert await wait_for_result(lambda: other.acquire_leases("other", ALL, (), NO_WAIT_MS)) == (Lease(APP, 2),)
        with pytest.raises(LeaseLost):
            await one.renew_leases("one", LONG_MS)
        assert (await other.renew_leases("other", LONG_MS)).worker_count == 1


@asynchronous
async def test_an_expired_lease_is_reserved_for_replicas_that_prefer_it_for_a_while(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", SHORT_MS)
        assert await wait_for_result(lambda: other.acquire_leases("other", ALL, (LIB,), LONG_MS)) == (Lease(LIB, 2),)
        assert await other.acquire_leases("other", ALL, (), LONG_MS) == ()
        assert await wait_for_result(lambda: other.acquire_leases("other", ALL, (), SHORT_MS)) == (Lease(APP, 2),)


@asynchronous
async def test_a_replica_that_renews_in_time_keeps_its_leases(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP))
        await one.register_worker("one", 2_000)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", LONG_MS)
        await other.register_worker("another", 2_000)
        await wait_for_result(lambda: has_lost_lease(other, "another"))
        assert await other.acquire_leases("other", ALL, (APP,), NO_WAIT_MS) == ()


@asynchronous
async def test_only_a_registered_replica_can_acquire_leases(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue_of(APP))
        assert await one.acquire_leases("never registered", ALL, (APP,), NO_WAIT_MS) == ()
        await one.register_worker("silent", 0)
        assert await one.acquire_leases("silent", ALL, (APP,), NO_WAIT_MS) == ()


@asynchronous
async def test_a_replica_that_registers_again_has_no_leases_and_its_old_fence_is_invalid(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue_of(APP))
        await one.register_worker("one", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", SHORT_MS)
        await wait_for_result(lambda: has_lost_lease(one, "one"))
        await one.register_worker("one", LONG_MS)
        assert (await one.renew_leases("one", LONG_MS)).leases == ()
        assert await one.acquire_leases("one", ALL, (), NO_WAIT_MS) == (Lease(APP, 2),)
        with pytest.raises(LeaseLost):
            await one.commit(AssertLease("one", APP, 1))


@asynchronous
async def test_a_replica_that_unregisters_releases_its_leases_and_is_no_worker(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.unregister_worker("one")
        assert (await other.renew_leases("other", LONG_MS)).worker_count == 1
        assert set(await other.acquire_leases("other", ALL, (), NO_WAIT_MS)) == {Lease(APP, 2), Lease(LIB, 2)}
        with pytest.raises(LeaseLost):
            await one.renew_leases("one", LONG_MS)


@asynchronous
async def test_a_commit_that_asserts_its_lease_is_written(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue())
        await one.register_worker("one", LONG_MS)
        (lease,) = await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.commit(AssertLease("one", lease.repo, lease.fence), a_decision(1, a_submission(1)))
        assert await one.submission(QUEUE, SubmissionId(1)) == b"submission 1"


@asynchronous
async def test_the_late_first_holder_can_write_nothing(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.register_worker("one", LONG_MS)
        await other.register_worker("other", LONG_MS)
        (late,) = await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", SHORT_MS)
        (now,) = await wait_for_result(lambda: other.acquire_leases("other", ALL, (), NO_WAIT_MS))
        with pytest.raises(LeaseLost):
            await one.commit(a_decision(1, a_submission(1)), AssertLease("one", APP, late.fence))
        with pytest.raises(LeaseLost):
            await one.commit(AssertLease("one", APP, now.fence), a_decision(1, a_submission(1)))
        assert await one.submission(QUEUE, SubmissionId(1)) is None
        await other.commit(AssertLease("other", APP, now.fence), a_decision(1, a_submission(1)))


@asynchronous
async def test_a_replica_with_an_expired_lease_can_write_nothing_even_before_a_takeover(one: SharedStore):
    async with open_all(one):
        await one.commit(a_queue())
        await one.register_worker("one", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        await one.renew_leases("one", SHORT_MS)
        await wait_for_result(lambda: has_lost_lease(one, "one"))
        with pytest.raises(LeaseLost):
            await one.commit(a_decision(1), AssertLease("one", APP, 1))
        assert (await one.load(QUEUE)).version == 0


@pytest.mark.long
@asynchronous
async def test_an_asserted_lease_cannot_be_acquired_before_the_commit_ends(
    one: SharedStore, other: SharedStore, url: str
):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.register_worker("one", 2_000)
        await other.register_worker("other", LONG_MS)
        await one.acquire_leases("one", ALL, (), NO_WAIT_MS)
        connection = await open_connection(url)
        async with connection.transaction():
            await perform_write(connection, AssertLease("one", APP, 1))
            await wait_for_result(lambda: has_lost_lease(other, "one"))
            assert await other.acquire_leases("other", ALL, (APP,), NO_WAIT_MS) == ()
        await connection.close()
        assert await other.acquire_leases("other", ALL, (APP,), NO_WAIT_MS) == (Lease(APP, 2),)


@asynchronous
async def test_replicas_that_acquire_concurrently_get_every_lease_once(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        repos = [Repo("git.local", "acme", f"r{count}") for count in range(60)]
        await one.commit(*(a_queue(QueueId(repo.name), key=QueueKey(repo, "main")) for repo in repos))
        replicas = [(store, f"{name}{count}") for count in range(4) for store, name in ((one, "a"), (other, "b"))]
        for store, replica in replicas:
            await store.register_worker(replica, LONG_MS)

        async def claim_until_nothing_is_left(store: SharedStore, replica: str) -> list[Lease]:
            taken = list[Lease]()
            while more := await store.acquire_leases(replica, 5, (), NO_WAIT_MS):
                assert len(more) <= 5
                taken += more
            return taken

        taken = await asyncio.gather(*(claim_until_nothing_is_left(*replica) for replica in replicas))
        claimed = [lease for leases in taken for lease in leases]
        assert sorted(lease.repo.name for lease in claimed) == sorted(repo.name for repo in repos)
        assert {lease.fence for lease in claimed} == {1}
        for (store, replica), leases in zip(replicas, taken, strict=True):
            assert set((await store.renew_leases(replica, LONG_MS)).leases) == set(leases)
