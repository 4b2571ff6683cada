"""What operators do with a queue: pause, drain, switch its mode, delete it, create it anew."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import named
from mergeyard.service.errors import Code, Refused
from tests.support.asynchronous import asynchronous
from tests.support.pushes import LANDING, Gate
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, Stage, a_scenario


@asynchronous
async def test_whoever_pauses_is_answered_when_the_push_in_flight_has_its_outcome(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = await a_landing_in_flight(scenario)
        pausing = asyncio.create_task(scenario.change(state=QueueState.PAUSED))
        await scenario.keeper.until(lambda queue: queue.state is QueueState.PAUSED)
        assert not pausing.done()
        gate.open()
        await pausing
        assert scenario.pull(1)["state"] == "merged"
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_without_a_push_in_flight_pausing_needs_no_host(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = scenario.origin.path.rename(scenario.folder / "away.git")
        await scenario.change(state=QueueState.PAUSED)
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
async def test_what_went_red_while_the_queue_was_paused_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.fails(1)
        assert (await scenario.stay(1)).state == "pending_failure"
        await scenario.update(state=QueueState.RUNNING)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_one_whose_merge_is_being_pushed_cannot_be_cancelled(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = await a_landing_in_flight(scenario)
        with pytest.raises(Refused) as refused:
            await scenario.service.submissions.cancel(scenario.errand(1))
        assert refused.value.code is Code.MERGE_IN_PROGRESS
        gate.open()
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_was_cancelled_never_lands_though_its_tests_pass_afterwards(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        await asyncio.gather(scenario.service.submissions.cancel(scenario.errand(1)), scenario.hear(tip))
        await scenario.rest()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_cancelling_twice_at_once_is_no_error(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        submissions, errand = scenario.service.submissions, scenario.errand(1)
        await asyncio.gather(submissions.cancel(errand), submissions.cancel(errand))
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_a_draining_queue_merges_what_it_holds_and_takes_nothing_new(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.update(state=QueueState.DRAINING)
        await scenario.submit(2)
        assert await scenario.state(2) == "not_ready: queue_draining"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.update(state=QueueState.RUNNING)
        assert scenario.picture == "main ← 2…"


@asynchronous
async def test_switching_modes_lets_runs_finish_and_refuses_another_switch_meanwhile(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.update(mode=Mode.PARALLEL)
        assert scenario.keeper.queue.state is QueueState.SWITCHING_MODES
        with pytest.raises(Refused) as refused:
            await scenario.update(mode=Mode.SINGLE)
        assert refused.value.code is Code.MODE_SWITCH_IN_PROGRESS
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.keeper.queue.state is QueueState.RUNNING
        assert scenario.picture == "main ← 2…"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_one_bad_setting_changes_nothing_at_all(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(mode=Mode.PARALLEL)
        with pytest.raises(Refused):
            await scenario.update(mode=Mode.SINGLE, concurrency=9, state=QueueState.PAUSED)
        assert scenario.keeper.queue.config.concurrency == 5
        assert scenario.keeper.queue.state is QueueState.SWITCHING_MODES


@asynchronous
async def test_only_an_empty_queue_can_be_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        with pytest.raises(Refused) as refused:
            await delete_queue(scenario)
        assert refused.value.code is Code.QUEUE_NOT_EMPTY
        await scenario.cancel(1)
        await delete_queue(scenario)
        with pytest.raises(Refused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.QUEUE_NOT_FOUND


@asynchronous
async def test_a_queue_made_again_has_nothing_of_the_old_one(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, concurrency=2)) as scenario:
        scenario.open(1)
        await scenario.set_targets(1, named("fe"))
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.cancel(1)
        await delete_queue(scenario)
        await scenario.create_queue(Config(mode=Mode.PARALLEL))
        with pytest.raises(Refused) as refused:
            await scenario.view(1)
        assert refused.value.code is Code.PR_NOT_SUBMITTED
        with pytest.raises(Refused) as refused:
            await scenario.service.runs.show(KEY, run.id)
        assert refused.value.code is Code.TEST_RUN_NOT_FOUND
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: missing_impacted_targets"
        assert scenario.keeper.queue.config.concurrency == 5


@asynchronous
async def test_a_queue_made_again_works(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await delete_queue(scenario)
        scenario.origin.commit("main", {"meanwhile": "m"})
        await scenario.time_passes(SECOND)
        await scenario.create_queue()
        scenario.open(1)
        await scenario.time_passes(SECOND)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.starts_again()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_queue_deleted_right_after_a_cancel_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path, stage=Stage(look_every=MINUTE)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.service.submissions.cancel(scenario.errand(1))
        await delete_queue(scenario)
        await scenario.time_passes(5 * MINUTE)
        assert scenario.test_branches() == []


@asynchronous
async def test_a_status_on_a_run_of_a_deleted_queue_is_still_accepted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        await scenario.cancel(1)
        await delete_queue(scenario)
        await scenario.hear(tip)


async def a_landing_in_flight(scenario: Scenario) -> Gate:
    gate = Gate(scenario.origin, LANDING)
    scenario.open(1)
    await scenario.submit(1)
    await scenario.hear(scenario.run_of(1).tip)
    await gate.arrival()
    return gate


async def delete_queue(scenario: Scenario) -> None:
    await scenario.service.queues.delete(KEY, "ada", b"{}", None)
