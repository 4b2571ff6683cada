"""What happens when time passes: batch waits, test timeouts, retries, the not-ready timeout, branch cleanup."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import QueueState
from mergeyard.ports.writes import SaveStatus
from mergeyard.service.tasks import test_branches
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import MINUTE, REPO, ScenarioSetup, a_scenario

HOUR = 60 * MINUTE
HOURLY_POLLING = ScenarioSetup(poll_interval_ms=HOUR)
BATCH = Config(batch=True, batching_min_size=3)
SHORT = Config(testing_timeout_minutes=1)


@asynchronous
async def test_incomplete_batch_starts_after_the_maximum_wait_of_its_oldest_pr(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, HOURLY_POLLING) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(MINUTE)
        await scenario.submit(2)
        await scenario.advance_time(4 * MINUTE - 1)
        assert await scenario.state(1) == "pending: waiting_for_batch"
        assert scenario.queue_text == "main"
        await scenario.advance_time(1)
        assert scenario.queue_text == "main ← 1+2…"
        await scenario.passes(1, 2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.test_branches() == []


@asynchronous
async def test_full_batch_starts_immediately(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, HOURLY_POLLING) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        assert scenario.queue_text == "main ← 1+2+3…"


@asynchronous
async def test_batch_continues_waiting_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(3 * MINUTE)
        await scenario.restart()
        await scenario.advance_time(2 * MINUTE - 1)
        assert scenario.queue_text == "main"
        await scenario.advance_time(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_batch_whose_wait_ended_during_downtime_starts_immediately(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH, HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.service.stop()
        await scenario.advance_time(6 * MINUTE)
        await scenario.start()
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_run_past_its_timeout_is_read_once_more_and_then_fails(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "pending_failure: waiting_for_base"
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_timeout"


@asynchronous
async def test_result_found_by_the_last_read_still_counts(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        status = Status(context="unit", state=StatusState.SUCCESS, at=scenario.clock.now())
        await scenario.store.commit(SaveStatus(REPO, scenario.run_of(1).tip, status))
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_deadlines_are_extended_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path, SHORT, HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(MINUTE // 2)
        await scenario.restart()
        await scenario.advance_time(MINUTE // 2)
        assert (await scenario.submission(1)).state == "testing"
        await scenario.advance_time(MINUTE // 2)
        assert (await scenario.submission(1)).reason == "cause_unknown"


@pytest.mark.long
@asynchronous
async def test_failed_run_is_retried_on_a_new_commit_before_the_pr_fails(tmp_path: Path):
    async with a_scenario(tmp_path, Config(test_retries=1), HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        first = scenario.run_of(1)
        await scenario.fails(1)
        assert scenario.run_of(1).tip != first.tip
        assert scenario.origin.tree(scenario.run_of(1).tip) == scenario.origin.tree(first.tip)
        assert scenario.test_branches() == [scenario.test_branch_of(1)]
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_run_that_uses_up_its_retries_fails(tmp_path: Path):
    async with a_scenario(tmp_path, Config(test_retries=2), HOURLY_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for _ in range(3):
            await scenario.fails(1)
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_pr_that_never_gets_ready_is_removed(tmp_path: Path):
    async with a_scenario(tmp_path, Config(not_ready_timeout_hours=1), HOURLY_POLLING) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        await scenario.advance_time(HOUR - 1)
        assert await scenario.state(1) == "not_ready: draft"
        await scenario.advance_time(1)
        assert await scenario.state(1) == "cancelled: not_ready_timeout"


@pytest.mark.long
@asynchronous
async def test_not_ready_timeout_does_not_run_while_the_queue_is_paused(tmp_path: Path):
    async with a_scenario(tmp_path, Config(not_ready_timeout_hours=1), HOURLY_POLLING) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        await scenario.advance_time(HOUR // 2)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.advance_time(5 * HOUR)
        await scenario.restart()
        await scenario.update(state=QueueState.RUNNING)
        await scenario.advance_time(HOUR // 2 - 1)
        assert await scenario.state(1) == "not_ready: draft"
        await scenario.advance_time(1)
        assert await scenario.state(1) == "cancelled: not_ready_timeout"


@asynchronous
async def test_unknown_test_branch_is_deleted_within_minutes(tmp_path: Path):
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario:
        unknown = "mergeyard/pr-1/0b6b1f62-5a5c-4c43-8f0e-3e5a5b6d7c8d"
        scenario.origin.branch(unknown, base="main")
        scenario.origin.branch("mergeyard-but-not-ours", base="main")
        await scenario.advance_time(5 * MINUTE)
        assert scenario.test_branches() == []
        assert scenario.origin.ref("mergeyard-but-not-ours")


TWO_CLEANUPS = 2 * test_branches.CLEANUP_INTERVAL_MS
RARE_POLLING = ScenarioSetup(poll_interval_ms=MINUTE)


def refs_kept(folder: Path) -> set[str]:
    (head,) = folder.glob("mirrors/**/HEAD")
    return {name.split("/", 3)[3] for name in Origin(head.parent).refs()}


@asynchronous
async def test_mirror_has_no_refs_of_deleted_test_branches_and_closed_prs(tmp_path: Path):
    async with a_scenario(tmp_path, setup=RARE_POLLING) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        scenario.origin.delete_ref("refs/pull/1/head")
        scenario.origin.delete_ref("refs/pull/1/meta")
        await scenario.advance_time(TWO_CLEANUPS)
        assert refs_kept(tmp_path) == {"heads/main", "pull/2/head"}
