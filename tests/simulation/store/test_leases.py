"""Leases end at the millisecond at which the database's own clock says so, and nobody else's."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from mergeyard.domain.instants import HOUR, later
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import Relieved
from mergeyard.ports.writes import ProveDuty
from tests.contract.store.given import REPO, a_queue, a_turn, opened
from tests.simulation.store.records import Records
from tests.simulation.store.store import MemoryStore
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock

LASTING = 10_000
PATIENCE = 500


@asynccontextmanager
async def at_work(clock: HandClock) -> AsyncGenerator[MemoryStore]:
    """One works for the only repository, and another one would."""
    async with opened(MemoryStore(Records(), clock)) as store:
        await store.commit(a_queue())
        await store.enlist("one", LASTING)
        await store.enlist("other", 3 * LASTING)
        await store.claim("one", 1, (), 0)
        yield store


@asynchronous
async def test_until_the_last_millisecond_a_duty_is_proved_and_belongs_to_nobody_else():
    clock = HandClock()
    async with at_work(clock) as store:
        clock.move_to(later(clock.now(), LASTING - 1))
        assert await store.claim("other", 1, (REPO,), 0) == ()
        await store.commit(ProveDuty("one", REPO, 1), a_turn(1))


@asynchronous
async def test_at_the_end_it_is_proved_no_more_and_is_free_for_who_has_it_at_hand():
    clock = HandClock()
    async with at_work(clock) as store:
        clock.move_to(later(clock.now(), LASTING))
        with pytest.raises(Relieved):
            await store.commit(ProveDuty("one", REPO, 1), a_turn(1))
        with pytest.raises(Relieved):
            await store.report("one", LASTING)
        assert await store.claim("one", 1, (REPO,), 0) == ()
        assert await store.claim("other", 1, (REPO,), PATIENCE) == (Duty(REPO, 2),)


@asynchronous
async def test_who_has_it_not_at_hand_waits_until_its_patience_is_over():
    clock = HandClock()
    async with at_work(clock) as store:
        clock.move_to(later(clock.now(), LASTING + PATIENCE - 1))
        assert await store.claim("other", 1, (), PATIENCE) == ()
        clock.move_to(later(clock.now(), 1))
        assert await store.claim("other", 1, (), PATIENCE) == (Duty(REPO, 2),)


@asynchronous
async def test_what_a_long_forgotten_replica_held_is_free_at_once():
    clock = HandClock()
    async with at_work(clock) as store:
        clock.move_to(later(clock.now(), 25 * HOUR))
        await store.enlist("new", LASTING)
        assert await store.claim("new", 1, (), 48 * HOUR) == (Duty(REPO, 2),)
