"""A repeated request with the same idempotency key gets the stored response and has no second effect."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import HOUR, Instant
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest
from mergeyard.service.submissions import PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, REPO, Scenario, a_scenario

FIRST = IdempotentRequest("token", "key", b"digest")


def present(view: SubmissionView) -> bytes:
    return f"{view.submission.id} {view.submission.state}".encode()


async def submit(scenario: Scenario, number: int = 1, repeat: IdempotentRequest = FIRST) -> bytes:
    """As the API handler does it."""
    async with scenario.service.idempotency.execute_once(repeat) as stored:
        if stored is not None:
            return stored
        command = PullRequestCommand(
            key=KEY,
            number=scenario.build_command(number).number,
            actor="ada",
            render=present,
            idempotent_request=repeat,
        )
        return await scenario.service.submissions.submit(command, SubmitOptions())


@asynchronous
async def test_same_key_gets_the_same_bytes_even_after_the_state_has_changed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        first = await submit(scenario)
        await scenario.wait_until_idle()
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
        await scenario.restart()
        assert await submit(scenario) == first
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_concurrent_requests_with_the_same_key_get_the_same_response(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        answers = await asyncio.gather(*(submit(scenario) for _ in range(5)))
        assert len(set(answers)) == 1


@asynchronous
async def test_same_key_for_another_request_is_refused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await submit(scenario)
        with pytest.raises(RequestRefused) as refused:
            await submit(scenario, 2, IdempotentRequest("token", "key", b"another digest"))
        assert refused.value.code is Code.IDEMPOTENCY_KEY_REUSED
        assert len(scenario.queue_actor.queue.submissions) == 1


@asynchronous
async def test_same_key_of_another_token_is_another_key(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await submit(scenario)
        await submit(scenario, 2, IdempotentRequest("another token", "key", b"another digest"))
        assert len(scenario.queue_actor.queue.submissions) == 2


@asynchronous
async def test_refusal_is_not_stored(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        with pytest.raises(RequestRefused):
            await submit(scenario)
        scenario.open(1)
        await submit(scenario)
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_after_a_store_error_the_concurrent_request_with_the_same_key_is_executed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.store.failing_commits = 1
        outcomes = await asyncio.gather(submit(scenario), submit(scenario), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable, bytes]
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_after_a_day_a_key_is_forgotten(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        first = await submit(scenario)
        await scenario.cancel(1)
        scenario.clock.move_to(Instant(scenario.clock.now() + 24 * HOUR))
        assert await submit(scenario) != first


@asynchronous
async def test_status_report_is_idempotent_with_and_without_a_waiting_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        status = Status(context="unit", state=StatusState.PENDING, at=scenario.clock.now())
        for key, commit in {"a": scenario.run_of(1).tip, "b": scenario.origin.tip("main")}.items():
            repeat = IdempotentRequest("token", key, b"digest")
            await scenario.service.statuses.report(REPO, commit, status, repeat, b"accepted")
            async with scenario.service.idempotency.execute_once(repeat) as stored:
                assert stored == b"accepted"
