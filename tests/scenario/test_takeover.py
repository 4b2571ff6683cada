"""Another process continues from the stored state with an empty mirror, as a replica does after a takeover."""

import asyncio
import shutil
from pathlib import Path
from time import time

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod, Mode
from mergeyard.domain.pull_requests import StatusState, impacted_targets_from_names
from mergeyard.service import git_names
from tests.support.asynchronous import asynchronous
from tests.support.polling import wait_until
from tests.support.push_hooks import AFTER_UPDATE, LANDING_PUSH, TEST_BRANCH_PUSH, PushGate, remove_hooks
from tests.support.scenario import SECOND, Scenario, a_scenario


async def take_over(scenario: Scenario) -> None:
    """Moves the clock first: commits created again in the same second would be identical by chance."""
    await scenario.service.stop()
    shutil.rmtree(scenario.folder / "mirrors")
    remove_hooks(scenario.origin)
    second = int(time())
    await wait_until(lambda: time() >= second + 1)
    await scenario.start()
    await scenario.advance_time(SECOND)


@pytest.mark.long
@asynchronous
async def test_takeover_while_tests_run(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1, 2, 3, 4)
        await take_over(scenario)
        await scenario.passes(1, 2)
        await scenario.passes(3, 4)
        assert [await scenario.state(number) for number in (1, 2, 3, 4)] == ["merged: merged_by_queue"] * 4


@pytest.mark.long
@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_rebased_landing_is_rebased_again_identically(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        gate = PushGate(scenario.origin, LANDING_PUSH)
        await scenario.report_without_waiting(scenario.run_of(2).tip)
        await gate.wait_for_push()
        landing = scenario.queue_actor.queue.landing
        assert landing is not None
        await take_over(scenario)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == landing.steps[-1].commit


@pytest.mark.long
@asynchronous
async def test_checks_of_a_head_are_read_for_a_test_branch_that_exists_already(tmp_path: Path):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"))
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        (branch,) = scenario.test_branches()
        built = scenario.origin.tip(branch)
        await take_over(scenario)
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.origin.tip("main") == built


@pytest.mark.long
@asynchronous
async def test_retry_is_built_although_the_failed_test_branch_is_gone(tmp_path: Path):
    config = Config(batch=True, batching_min_size=2, test_retries=1)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH)
        await scenario.report_without_waiting(scenario.run_of(1, 2).tip, StatusState.FAILURE)
        await gate.wait_for_push()
        await take_over(scenario)
        await scenario.passes(1, 2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2


@asynchronous
async def test_lanes_built_by_another_replica_are_rebased(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        await take_over(scenario)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_lane_whose_commits_are_gone_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        lost = scenario.run_of(2)
        scenario.origin.delete_ref(git_names.name_test_branch(lost))
        await take_over(scenario)
        await scenario.report(lost.tip, StatusState.SUCCESS)
        await scenario.passes(2)
        assert scenario.origin.tip("main") != lost.tip
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_abandoned_landing_fails_no_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        gate = PushGate(scenario.origin, LANDING_PUSH)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        await scenario.service.stop()
        scenario.origin.commit("main", {"foreign": "push"})
        gate.open()
        withdrawal = PushGate(scenario.origin, "*' refs/heads/mergeyard/'*", AFTER_UPDATE)
        starting = asyncio.create_task(scenario.start())
        await withdrawal.wait_for_push()
        starting.cancel()
        await asyncio.wait([starting])
        await take_over(scenario)
        await scenario.report_all_runs()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_commit_that_was_removed_and_restored_is_accepted_again(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        landed = scenario.origin.tip("main")
        scenario.origin.set_ref("refs/heads/main", before)
        await scenario.advance_time(SECOND)
        scenario.origin.set_ref("refs/heads/main", landed)
        await take_over(scenario)
        scenario.open(2, base="main")
        await scenario.submit(2)
        await scenario.report_all_runs()
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_foreign_commit_removed_before_the_takeover_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        leaked = scenario.origin.commit("main", {"secret": "leaked"})
        scenario.origin.commit("main", {"more": "of it"})
        await scenario.advance_time(2 * SECOND)
        scenario.open(1, base=leaked)
        await scenario.service.stop()
        scenario.origin.set_ref("main", clean)
        await take_over(scenario)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@asynchronous
async def test_landed_commit_removed_before_the_takeover_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        scenario.open(2, base="feature1")
        await scenario.service.stop()
        scenario.origin.set_ref("refs/heads/main", before)
        await take_over(scenario)
        await scenario.submit(2)
        await scenario.report_all_runs()
        assert "file1" not in scenario.origin.files("main")
        assert not (await scenario.state(2)).startswith("merged")
