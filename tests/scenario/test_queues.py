"""Operations on a queue: pause, drain, switch modes, delete, create again."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.service.errors import Code, RequestRefused
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import LANDING_PUSH, PushGate
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, ScenarioSetup, a_scenario


@asynchronous
async def test_pause_responds_after_the_landing_in_flight_has_its_outcome(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = await a_landing_in_flight(scenario)
        pausing = asyncio.create_task(scenario.update_without_waiting(state=QueueState.PAUSED))
        await scenario.queue_actor.wait_until(lambda queue: queue.state is QueueState.PAUSED)
        assert not pausing.done()
        gate.open()
        await pausing
        assert scenario.pull_request_meta(1)["state"] == "merged"
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_without_a_push_in_flight_pausing_needs_no_host(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = scenario.origin.path.rename(scenario.folder / "away.git")
        await scenario.update_without_waiting(state=QueueState.PAUSED)
        away.rename(scenario.origin.path)
        await scenario.passes(1)
        assert await scenario.state(1) == "tests_passed: queue_paused"


@asynchronous
async def test_in_a_paused_queue_tests_finish_and_nothing_merges_until_it_runs_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(2)
        await scenario.passes(1)
        assert await scenario.state(2) == "not_ready: queue_paused"
        assert scenario.origin.tip("main") == before
        await scenario.update(state=QueueState.RUNNING)
        await scenario.passes(2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2


@asynchronous
async def test_pr_that_failed_while_the_queue_was_paused_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.fails(1)
        assert (await scenario.submission(1)).state == "pending_failure"
        await scenario.update(state=QueueState.RUNNING)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_pr_whose_landing_is_being_pushed_cannot_be_cancelled(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = await a_landing_in_flight(scenario)
        with pytest.raises(RequestRefused) as refused:
            await scenario.service.submissions.cancel(scenario.build_command(1))
        assert refused.value.code is Code.MERGE_IN_PROGRESS
        gate.open()
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_cancelled_pr_never_lands_even_if_its_tests_pass_afterwards(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        await asyncio.gather(
            scenario.service.submissions.cancel(scenario.build_command(1)), scenario.report_without_waiting(tip)
        )
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_two_concurrent_cancels_are_no_error(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        submissions, command = scenario.service.submissions, scenario.build_command(1)
        await asyncio.gather(submissions.cancel(command), submissions.cancel(command))
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_draining_queue_merges_its_prs_and_admits_no_new_ones(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.update(state=QueueState.DRAINING)
        await scenario.submit(2)
        assert await scenario.state(2) == "not_ready: queue_draining"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.update(state=QueueState.RUNNING)
        assert scenario.queue_text == "main ← 2…"


@asynchronous
async def test_switching_modes_lets_runs_finish_and_refuses_another_switch_meanwhile(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.update(mode=Mode.PARALLEL)
        assert scenario.queue_actor.queue.state is QueueState.SWITCHING_MODES
        with pytest.raises(RequestRefused) as refused:
            await scenario.update(mode=Mode.SINGLE)
        assert refused.value.code is Code.MODE_SWITCH_IN_PROGRESS
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        assert scenario.queue_text == "main ← 2…"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_one_invalid_setting_rejects_the_whole_update(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(mode=Mode.PARALLEL)
        with pytest.raises(RequestRefused):
            await scenario.update(mode=Mode.SINGLE, concurrency=9, state=QueueState.PAUSED)
        assert scenario.queue_actor.queue.config.concurrency == 5
        assert scenario.queue_actor.queue.state is QueueState.SWITCHING_MODES


@asynchronous
async def test_only_an_empty_queue_can_be_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        with pytest.raises(RequestRefused) as refused:
            await delete_queue(scenario)
        assert refused.value.code is Code.QUEUE_NOT_EMPTY
        await scenario.cancel(1)
        await delete_queue(scenario)
        with pytest.raises(RequestRefused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.QUEUE_NOT_FOUND


@asynchronous
async def test_recreated_queue_has_no_data_of_the_deleted_one(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, concurrency=2)) as scenario:
        scenario.open(1)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.cancel(1)
        await delete_queue(scenario)
        await scenario.create_queue(Config(mode=Mode.PARALLEL))
        with pytest.raises(RequestRefused) as refused:
            await scenario.view(1)
        assert refused.value.code is Code.PR_NOT_SUBMITTED
        with pytest.raises(RequestRefused) as refused:
            await scenario.service.runs.view_run(KEY, run.id)
        assert refused.value.code is Code.TEST_RUN_NOT_FOUND
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: missing_impacted_targets"
        assert scenario.queue_actor.queue.config.concurrency == 5


@asynchronous
async def test_recreated_queue_works(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await delete_queue(scenario)
        scenario.origin.commit("main", {"meanwhile": "m"})
        await scenario.advance_time(SECOND)
        await scenario.create_queue()
        scenario.open(1)
        await scenario.advance_time(SECOND)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.restart()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_queue_deleted_right_after_a_cancel_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path, setup=ScenarioSetup(poll_interval_ms=MINUTE)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.service.submissions.cancel(scenario.build_command(1))
        await delete_queue(scenario)
        await scenario.advance_time(5 * MINUTE)
        assert scenario.test_branches() == []


@asynchronous
async def test_a_status_on_a_run_of_a_deleted_queue_is_still_accepted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        await scenario.cancel(1)
        await delete_queue(scenario)
        await scenario.report_without_waiting(tip)


async def a_landing_in_flight(scenario: Scenario) -> PushGate:
    gate = PushGate(scenario.origin, LANDING_PUSH)
    scenario.open(1)
    await scenario.submit(1)
    await scenario.report_without_waiting(scenario.run_of(1).tip)
    await gate.wait_for_push()
    return gate


async def delete_queue(scenario: Scenario) -> None:
    await scenario.service.queues.delete(KEY, "ada", b"{}", None)
