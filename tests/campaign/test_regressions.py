"""Regression tests for bugs that the campaign found."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod
from tests.campaign.push_hooks import PushHooks, PushMoment, forge_commit_command, update_refs_command
from tests.support.asynchronous import asynchronous
from tests.support.host_log import TARGET_REF, TEST_BRANCH_PREFIX
from tests.support.scenario import SECOND, a_scenario


@asynchronous
async def test_pr_that_landed_and_was_removed_at_once_is_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        hooks, before = PushHooks(scenario.origin, tmp_path / "host"), scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        hooks.arm(PushMoment.APPLIED, TARGET_REF, update_refs_command(f"update {TARGET_REF} {before}"))
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.advance_time(2 * SECOND)
        assert tested in scenario.queue_actor.queue.target_branch.removed_commits


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_pr_that_reverts_part_of_the_pr_ahead_lands_its_revert(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "one\n", "file1": "1\n"})
        scenario.open(2, base="feature1", files={"README": "hello\n", "file2": "2\n"})
        await scenario.advance_time(SECOND)
        await scenario.submit(1, 2)
        await scenario.report_all_runs()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.files("main")["README"] == "hello\n"


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_pr_that_changes_the_same_line_as_the_pr_ahead_does_not_conflict(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "one\n"})
        scenario.push(1, {"README": "one and a half\n"})
        scenario.open(2, base="feature1", files={"README": "two\n"})
        await scenario.advance_time(SECOND)
        await scenario.submit(1, 2)
        await scenario.report_all_runs()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.files("main")["README"] == "two\n"


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
@pytest.mark.parametrize("moment", PushMoment)
@asynchronous
async def test_head_that_its_author_pushed_during_the_landing_stays(
    tmp_path: Path, method: MergeMethod, moment: PushMoment
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        hooks = PushHooks(scenario.origin, tmp_path / "host")
        scenario.open(1)
        pushed = scenario.origin.branch("elsewhere", base="feature1", files={"more": "1\n"})
        await scenario.submit(1)
        hooks.arm(moment, TARGET_REF, update_refs_command(f"update refs/heads/feature1 {pushed}"))
        await scenario.passes(1)
        await scenario.advance_time(5 * SECOND)
        await scenario.report_all_runs()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("feature1") == pushed
        assert "more" not in scenario.origin.files("main")


@asynchronous
async def test_rebase_never_loses_changes_of_a_merge(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        scenario.origin.commit("main", {"meanwhile": "m"})
        head = scenario.origin.commit("feature1", {"meanwhile": "m", "evil": "e"}, merging="main")
        scenario.set_pull_request(1, head=head)
        await scenario.advance_time(SECOND)
        await scenario.submit(1)
        await scenario.report_all_runs()
        merged = await scenario.state(1) == "merged: merged_by_queue"
        assert merged == ("evil" in scenario.origin.files("main"))


@asynchronous
async def test_forged_test_branch_is_never_used(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        hooks = PushHooks(scenario.origin, tmp_path / "host")
        forged = scenario.origin.branch("elsewhere", base="main", files={"smuggled": "in"})
        hooks.arm(PushMoment.RECEIVED, TEST_BRANCH_PREFIX, forge_commit_command(forged))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(5 * SECOND)
        await scenario.report_all_runs()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert "smuggled" not in scenario.origin.files("main")
        assert "file1" in scenario.origin.files("main")
