"""What the campaign found, told as stories."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod
from tests.campaign.ambushes import Ambushes, When, forging, moving
from tests.support.asynchronous import asynchronous
from tests.support.host_log import TARGET, TEST_BRANCHES
from tests.support.scenario import SECOND, a_scenario


@asynchronous
async def test_what_landed_and_was_taken_off_in_the_same_moment_is_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        ambushes, before = Ambushes(scenario.origin, tmp_path / "host"), scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        ambushes.lay(When.MOVED, TARGET, moving(f"update {TARGET} {before}"))
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.time_passes(2 * SECOND)
        assert tested in scenario.keeper.queue.target.removed


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_one_that_takes_back_part_of_the_one_beneath_it_really_does(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "one\n", "file1": "1\n"})
        scenario.open(2, upon="feature1", files={"README": "hello\n", "file2": "2\n"})
        await scenario.time_passes(SECOND)
        await scenario.submit(1, 2)
        await scenario.judges()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.files("main")["README"] == "hello\n"


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_one_that_changes_the_same_line_as_the_one_beneath_it_does_not_conflict(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "one\n"})
        scenario.push(1, {"README": "one and a half\n"})
        scenario.open(2, upon="feature1", files={"README": "two\n"})
        await scenario.time_passes(SECOND)
        await scenario.submit(1, 2)
        await scenario.judges()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.files("main")["README"] == "two\n"


@asynchronous
async def test_rebasing_never_loses_what_a_merge_brought(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        scenario.origin.commit("main", {"meanwhile": "m"})
        head = scenario.origin.commit("feature1", {"meanwhile": "m", "evil": "e"}, merging="main")
        scenario.set_pull(1, head=head)
        await scenario.time_passes(SECOND)
        await scenario.submit(1)
        await scenario.judges()
        merged = await scenario.state(1) == "merged: merged_by_queue"
        assert merged == ("evil" in scenario.origin.files("main"))


@asynchronous
async def test_a_forged_test_branch_is_never_taken_for_ours(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        ambushes = Ambushes(scenario.origin, tmp_path / "host")
        forged = scenario.origin.branch("elsewhere", upon="main", files={"smuggled": "in"})
        ambushes.lay(When.ARRIVED, TEST_BRANCHES, forging(forged))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.time_passes(5 * SECOND)
        await scenario.judges()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert "smuggled" not in scenario.origin.files("main")
        assert "file1" in scenario.origin.files("main")
