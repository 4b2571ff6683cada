"""The same request once more, under the same key: it is answered with the same bytes, and has no second effect."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat
from mergeyard.service.submissions import Errand, Wish
from mergeyard.service.views import PullView
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, REPO, Scenario, a_scenario

FIRST = Repeat("token", "key", b"digest")


def present(view: PullView) -> bytes:
    return f"{view.stay.ticket} {view.stay.state}".encode()


async def submit(scenario: Scenario, number: int = 1, repeat: Repeat = FIRST) -> bytes:
    """As the door does it."""
    async with scenario.service.repeating.once(repeat) as stored:
        if stored is not None:
            return stored
        errand = Errand(key=KEY, number=scenario.errand(number).number, actor="ada", present=present, repeat=repeat)
        return await scenario.service.submissions.submit(errand, Wish())


@asynchronous
async def test_the_same_key_gives_the_same_bytes_though_things_have_moved_on(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        first = await submit(scenario)
        await scenario.rest()
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await submit(scenario) == first


@asynchronous
async def test_the_same_key_has_no_second_effect(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await submit(scenario)
        await scenario.cancel(1)
        await submit(scenario)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_the_same_key_is_known_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        first = await submit(scenario)
        await scenario.cancel(1)
        await scenario.starts_again()
        assert await submit(scenario) == first
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_twins_at_the_same_time_get_the_same_answer(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        answers = await asyncio.gather(*(submit(scenario) for _ in range(5)))
        assert len(set(answers)) == 1


@asynchronous
async def test_the_same_key_for_something_else_is_refused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await submit(scenario)
        with pytest.raises(Refused) as refused:
            await submit(scenario, 2, Repeat("token", "key", b"another digest"))
        assert refused.value.code is Code.IDEMPOTENCY_KEY_REUSED
        assert len(scenario.keeper.queue.submissions) == 1


@asynchronous
async def test_the_same_key_of_somebody_else_is_another_key(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await submit(scenario)
        await submit(scenario, 2, Repeat("another token", "key", b"another digest"))
        assert len(scenario.keeper.queue.submissions) == 2


@asynchronous
async def test_a_refusal_is_not_remembered(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        with pytest.raises(Refused):
            await submit(scenario)
        scenario.open(1)
        await submit(scenario)
        await scenario.rest()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_what_could_not_be_stored_is_not_remembered_and_a_twin_tries_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.store.failures = 1
        outcomes = await asyncio.gather(submit(scenario), submit(scenario), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreTrouble, bytes]
        await scenario.rest()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_after_a_day_a_key_is_forgotten(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        first = await submit(scenario)
        await scenario.cancel(1)
        scenario.clock.move_to(Instant(scenario.clock.now() + 24 * HOUR))
        assert await submit(scenario) != first


@asynchronous
async def test_a_status_is_remembered_whether_or_not_a_run_waits_for_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        status = Status(context="unit", state=StatusState.PENDING, at=scenario.clock.now())
        for key, commit in {"a": scenario.run_of(1).tip, "b": scenario.origin.tip("main")}.items():
            repeat = Repeat("token", key, b"digest")
            await scenario.service.statuses.report(REPO, commit, status, repeat, b"accepted")
            async with scenario.service.repeating.once(repeat) as stored:
                assert stored == b"accepted"
