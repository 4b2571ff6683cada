"""Every repository has one replica that works for it, and the fence tells which was the last."""

import asyncio

import pytest

from mergeyard.adapters.store_postgres.connecting import connect_one
from mergeyard.adapters.store_postgres.writes import perform
from mergeyard.domain.ids import QueueId, Ticket
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.sharing import Duty, SharedStore
from mergeyard.ports.store import Relieved
from mergeyard.ports.writes import ProveDuty
from tests.contract.sharing.given import APP, AT_ONCE, BRIEFLY, LIB, LONG, WEB, a_queue_of, all_opened, sooner_or_later
from tests.contract.store.given import NEXT, OTHER, QUEUE, a_queue, a_stay, a_turn
from tests.support.asynchronous import asynchronous

ALL = 100


async def relieved(store: SharedStore, replica: str) -> bool:
    """Whether it was silent for too long; asking is no sign of life."""
    try:
        await store.commit(ProveDuty(replica, APP, 1))
    except Relieved:
        return True
    return False


@asynchronous
async def test_a_repository_with_a_queue_is_claimed_once(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        assert set(await one.claim("one", ALL, (), AT_ONCE)) == {Duty(APP, 1), Duty(LIB, 1)}
        assert await other.claim("other", ALL, (APP, LIB), AT_ONCE) == ()


@asynchronous
async def test_two_queues_of_a_repository_are_one_duty(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await one.enlist("one", LONG)
        assert await one.claim("one", ALL, (), AT_ONCE) == (Duty(APP, 1),)


@asynchronous
async def test_a_replica_reports_and_hears_what_it_works_for_and_how_many_share_it(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        taken = await one.claim("one", 2, (), AT_ONCE)
        roster = await one.report("one", LONG)
        assert (set(roster.duties), roster.repositories, roster.workers) == (set(taken), 3, 2)
        assert (await other.report("other", LONG)).duties == ()


@asynchronous
async def test_no_more_are_claimed_than_asked_for(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.enlist("one", LONG)
        assert [len(await one.claim("one", 2, (), AT_ONCE)) for _ in range(3)] == [2, 1, 0]
        assert len((await one.report("one", LONG)).duties) == 3


@asynchronous
async def test_those_at_hand_are_claimed_first(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue_of(APP), a_queue_of(LIB), a_queue_of(WEB))
        await one.enlist("one", LONG)
        assert await one.claim("one", 1, (WEB, Repo("elsewhere", "acme", "web")), AT_ONCE) == (Duty(WEB, 1),)
        assert await one.claim("one", 1, (LIB,), AT_ONCE) == (Duty(LIB, 1),)


@asynchronous
async def test_what_was_just_let_go_is_left_for_a_while_to_those_who_have_it_at_hand(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.let_go("one", (APP, LIB, WEB))
        assert (await one.report("one", LONG)).duties == ()
        assert await other.claim("other", ALL, (LIB,), LONG) == (Duty(LIB, 2),)
        assert await sooner_or_later(lambda: other.claim("other", ALL, (), BRIEFLY)) == (Duty(APP, 2),)


@asynchronous
async def test_what_never_was_anybodys_waits_for_nobody(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue_of(APP))
        await one.enlist("one", LONG)
        assert await one.claim("one", ALL, (), LONG) == (Duty(APP, 1),)


@asynchronous
async def test_nobody_lets_go_of_what_another_holds(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP))
        await one.enlist("one", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await other.let_go("other", (APP,))
        await other.resign("other")
        assert (await one.report("one", LONG)).duties == (Duty(APP, 1),)


@asynchronous
async def test_a_replica_that_falls_silent_loses_its_duties_to_others(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", BRIEFLY)
        assert await sooner_or_later(lambda: other.claim("other", ALL, (), AT_ONCE)) == (Duty(APP, 2),)
        with pytest.raises(Relieved):
            await one.report("one", LONG)
        assert (await other.report("other", LONG)).workers == 1


@asynchronous
async def test_what_a_silent_replica_held_is_left_for_a_while_to_those_who_have_it_at_hand(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", BRIEFLY)
        assert await sooner_or_later(lambda: other.claim("other", ALL, (LIB,), LONG)) == (Duty(LIB, 2),)
        assert await other.claim("other", ALL, (), LONG) == ()
        assert await sooner_or_later(lambda: other.claim("other", ALL, (), BRIEFLY)) == (Duty(APP, 2),)


@asynchronous
async def test_a_replica_that_reports_in_time_keeps_what_it_holds(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP))
        await one.enlist("one", 2_000)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", LONG)
        await other.enlist("another", 2_000)
        await sooner_or_later(lambda: relieved(other, "another"))
        assert await other.claim("other", ALL, (APP,), AT_ONCE) == ()


@asynchronous
async def test_only_a_replica_that_is_heard_of_may_claim(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue_of(APP))
        assert await one.claim("never enlisted", ALL, (APP,), AT_ONCE) == ()
        await one.enlist("silent", 0)
        assert await one.claim("silent", ALL, (APP,), AT_ONCE) == ()


@asynchronous
async def test_who_enlists_again_begins_without_duties_and_its_old_fence_is_worth_nothing(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue_of(APP))
        await one.enlist("one", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", BRIEFLY)
        await sooner_or_later(lambda: relieved(one, "one"))
        await one.enlist("one", LONG)
        assert (await one.report("one", LONG)).duties == ()
        assert await one.claim("one", ALL, (), AT_ONCE) == (Duty(APP, 2),)
        with pytest.raises(Relieved):
            await one.commit(ProveDuty("one", APP, 1))


@asynchronous
async def test_who_resigns_leaves_everything_at_once_and_is_a_worker_no_more(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue_of(APP), a_queue_of(LIB))
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.resign("one")
        assert (await other.report("other", LONG)).workers == 1
        assert set(await other.claim("other", ALL, (), AT_ONCE)) == {Duty(APP, 2), Duty(LIB, 2)}
        with pytest.raises(Relieved):
            await one.report("one", LONG)


@asynchronous
async def test_a_commit_that_proves_its_duty_is_written(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue())
        await one.enlist("one", LONG)
        (duty,) = await one.claim("one", ALL, (), AT_ONCE)
        await one.commit(ProveDuty("one", duty.repo, duty.fence), a_turn(1, a_stay(1)))
        assert await one.stay(QUEUE, Ticket(1)) == b"stay 1"


@asynchronous
async def test_the_late_first_holder_can_write_nothing(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.enlist("one", LONG)
        await other.enlist("other", LONG)
        (late,) = await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", BRIEFLY)
        (now,) = await sooner_or_later(lambda: other.claim("other", ALL, (), AT_ONCE))
        with pytest.raises(Relieved):
            await one.commit(a_turn(1, a_stay(1)), ProveDuty("one", APP, late.fence))
        with pytest.raises(Relieved):
            await one.commit(ProveDuty("one", APP, now.fence), a_turn(1, a_stay(1)))
        assert await one.stay(QUEUE, Ticket(1)) is None
        await other.commit(ProveDuty("other", APP, now.fence), a_turn(1, a_stay(1)))


@asynchronous
async def test_a_silent_replica_can_write_nothing_even_before_anybody_took_over(one: SharedStore):
    async with all_opened(one):
        await one.commit(a_queue())
        await one.enlist("one", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        await one.report("one", BRIEFLY)
        await sooner_or_later(lambda: relieved(one, "one"))
        with pytest.raises(Relieved):
            await one.commit(a_turn(1), ProveDuty("one", APP, 1))
        assert (await one.load(QUEUE)).version == 0


@asynchronous
async def test_what_was_proved_cannot_be_claimed_before_it_is_written(one: SharedStore, other: SharedStore, url: str):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.enlist("one", 2_000)
        await other.enlist("other", LONG)
        await one.claim("one", ALL, (), AT_ONCE)
        connection = await connect_one(url)
        async with connection.transaction():
            await perform(connection, ProveDuty("one", APP, 1))
            await sooner_or_later(lambda: relieved(other, "one"))
            assert await other.claim("other", ALL, (APP,), AT_ONCE) == ()
        await connection.close()
        assert await other.claim("other", ALL, (APP,), AT_ONCE) == (Duty(APP, 2),)


@asynchronous
async def test_replicas_that_claim_at_once_share_everything_and_nothing_twice(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        repos = [Repo("git.local", "acme", f"r{count}") for count in range(60)]
        await one.commit(*(a_queue(QueueId(repo.name), key=QueueKey(repo, "main")) for repo in repos))
        replicas = [(store, f"{name}{count}") for count in range(4) for store, name in ((one, "a"), (other, "b"))]
        for store, replica in replicas:
            await store.enlist(replica, LONG)

        async def claim_until_nothing_is_left(store: SharedStore, replica: str) -> list[Duty]:
            taken = list[Duty]()
            while more := await store.claim(replica, 5, (), AT_ONCE):
                assert len(more) <= 5
                taken += more
            return taken

        taken = await asyncio.gather(*(claim_until_nothing_is_left(*replica) for replica in replicas))
        claimed = [duty for duties in taken for duty in duties]
        assert sorted(duty.repo.name for duty in claimed) == sorted(repo.name for repo in repos)
        assert {duty.fence for duty in claimed} == {1}
        for (store, replica), duties in zip(replicas, taken, strict=True):
            assert set((await store.report(replica, LONG)).duties) == set(duties)
