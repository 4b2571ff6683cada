"""What only time brings about: batches that fill no more, tests that never end, pull requests that never get ready."""

from pathlib import Path

from mergeyard.domain.config import Config
from mergeyard.domain.states import QueueState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.writes import KeepStatus
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, REPO, Stage, a_scenario

HOUR = 60 * MINUTE
SELDOM = Stage(look_every=HOUR)
BATCH = Config(batch=True, batching_min_size=3)
SHORT = Config(testing_timeout_minutes=1)


@asynchronous
async def test_a_batch_that_does_not_fill_starts_when_its_oldest_has_waited(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, SELDOM) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.time_passes(MINUTE)
        await scenario.submit(2)
        await scenario.time_passes(4 * MINUTE - 1)
        assert await scenario.state(1) == "pending: waiting_for_batch"
        assert scenario.picture == "main"
        await scenario.time_passes(1)
        assert scenario.picture == "main ← 1+2…"
        await scenario.passes(1, 2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.test_branches() == []


@asynchronous
async def test_a_batch_that_fills_starts_at_once(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, SELDOM) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        assert scenario.picture == "main ← 1+2+3…"


@asynchronous
async def test_a_batch_goes_on_waiting_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.time_passes(3 * MINUTE)
        await scenario.starts_again()
        await scenario.time_passes(2 * MINUTE - 1)
        assert scenario.picture == "main"
        await scenario.time_passes(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_batch_whose_time_came_while_nobody_was_there_starts_at_once(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.service.stop()
        await scenario.time_passes(6 * MINUTE)
        await scenario.starts()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_run_past_its_timeout_is_looked_at_once_more_and_then_fails(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "pending_failure: waiting_for_base"
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_timeout"


@asynchronous
async def test_a_verdict_that_only_the_last_look_finds_still_counts(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        status = Status(context="unit", state=StatusState.SUCCESS, at=scenario.clock.now())
        await scenario.store.commit(KeepStatus(REPO, scenario.run_of(1).tip, status))
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_after_a_restart_whoever_reported_to_nobody_has_time_to_try_again(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.time_passes(MINUTE // 2)
        await scenario.starts_again()
        await scenario.time_passes(MINUTE // 2)
        assert (await scenario.stay(1)).state == "testing"
        await scenario.time_passes(MINUTE // 2)
        assert (await scenario.stay(1)).reason == "test_run_timeout"


@asynchronous
async def test_a_red_run_is_run_again_on_a_commit_of_its_own_before_anybody_is_blamed(tmp_path: Path):
    async with a_scenario(tmp_path, Config(test_retries=1), SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        first = scenario.run_of(1)
        await scenario.fails(1)
        assert scenario.run_of(1).tip != first.tip
        assert scenario.origin.tree(scenario.run_of(1).tip) == scenario.origin.tree(first.tip)
        assert scenario.test_branches() == [scenario.branch_of(1)]
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_run_that_is_red_as_often_as_allowed_fails(tmp_path: Path):
    async with a_scenario(tmp_path, Config(test_retries=2), SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for _ in range(3):
            await scenario.fails(1)
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_one_that_never_gets_ready_is_taken_out(tmp_path: Path):
    async with a_scenario(tmp_path, Config(not_ready_timeout_hours=1), SELDOM) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1)
        await scenario.time_passes(HOUR - 1)
        assert await scenario.state(1) == "not_ready: draft"
        await scenario.time_passes(1)
        assert await scenario.state(1) == "cancelled: not_ready_timeout"


@asynchronous
async def test_while_the_queue_is_paused_nobodys_time_to_get_ready_runs_out(tmp_path: Path):
    async with a_scenario(tmp_path, Config(not_ready_timeout_hours=1), SELDOM) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1)
        await scenario.time_passes(HOUR // 2)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.time_passes(5 * HOUR)
        await scenario.starts_again()
        await scenario.update(state=QueueState.RUNNING)
        await scenario.time_passes(HOUR // 2 - 1)
        assert await scenario.state(1) == "not_ready: draft"
        await scenario.time_passes(1)
        assert await scenario.state(1) == "cancelled: not_ready_timeout"


@asynchronous
async def test_a_branch_that_nobody_knows_is_swept_up_within_minutes(tmp_path: Path):
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        unknown = "mergeyard/pr-1/0b6b1f62-5a5c-4c43-8f0e-3e5a5b6d7c8d"
        scenario.origin.branch(unknown, upon="main")
        scenario.origin.branch("mergeyard-but-not-ours", upon="main")
        await scenario.time_passes(5 * MINUTE)
        assert scenario.test_branches() == []
        assert scenario.origin.ref("mergeyard-but-not-ours")
