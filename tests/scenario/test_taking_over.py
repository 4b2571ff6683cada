"""Another process goes on with what was stored and an empty mirror, as a replica does that takes over."""

import asyncio
import shutil
from pathlib import Path
from time import time

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod, Mode
from mergeyard.domain.statuses import StatusState
from mergeyard.domain.targets import named
from mergeyard.service import naming_branches
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, BUILD, LANDING, Gate, welcome_all
from tests.support.scenario import SECOND, Scenario, a_scenario
from tests.support.waiting import come_true


async def another_takes_over(scenario: Scenario) -> None:
    """Not in the same second: commits that are made again then would be the same by chance."""
    await scenario.service.stop()
    shutil.rmtree(scenario.folder / "mirrors")
    welcome_all(scenario.origin)
    second = int(time())
    await come_true(lambda: time() >= second + 1)
    await scenario.starts()
    await scenario.time_passes(SECOND)


@asynchronous
async def test_while_tests_run(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1, 2, 3, 4)
        await another_takes_over(scenario)
        await scenario.passes(1, 2)
        await scenario.passes(3, 4)
        assert [await scenario.state(number) for number in (1, 2, 3, 4)] == ["merged: merged_by_queue"] * 4


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_a_composed_landing_is_composed_again_as_it_was(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method)) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("fe"))
        await scenario.set_targets(2, named("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        gate = Gate(scenario.origin, LANDING)
        await scenario.hear(scenario.run_of(2).tip)
        await gate.arrival()
        landing = scenario.keeper.queue.landing
        assert landing is not None
        await another_takes_over(scenario)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == landing.steps[-1].commit


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_a_direct_merge_is_made_again_as_it_was(tmp_path: Path, method: MergeMethod):
    config = Config(direct_merge_mode=DirectMergeMode.ALWAYS, merge_method=method)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        await scenario.hear(scenario.origin.tip("feature1"))
        gate = Gate(scenario.origin, LANDING)
        await scenario.hand_in(1)
        await gate.arrival()
        landing = scenario.keeper.queue.landing
        assert landing is not None
        await another_takes_over(scenario)
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.origin.tip("main") == landing.steps[-1].commit


@asynchronous
async def test_a_retry_is_built_although_the_red_branch_is_gone(tmp_path: Path):
    config = Config(batch=True, batching_min_size=2, test_retries=1)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        gate = Gate(scenario.origin, BUILD)
        await scenario.hear(scenario.run_of(1, 2).tip, StatusState.FAILURE)
        await gate.arrival()
        await another_takes_over(scenario)
        await scenario.passes(1, 2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2


@asynchronous
async def test_lanes_are_composed_although_another_built_them(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("fe"))
        await scenario.set_targets(2, named("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        await another_takes_over(scenario)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_lane_of_which_nothing_is_left_to_compose_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("fe"))
        await scenario.set_targets(2, named("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        lost = scenario.run_of(2)
        scenario.origin.remove(naming_branches.test_branch(lost))
        await another_takes_over(scenario)
        await scenario.report(lost.tip, StatusState.SUCCESS)
        await scenario.passes(2)
        assert scenario.origin.tip("main") != lost.tip
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_landing_that_was_given_up_blames_nobody(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        gate = Gate(scenario.origin, LANDING)
        await scenario.hear(scenario.run_of(1).tip)
        await gate.arrival()
        await scenario.service.stop()
        scenario.origin.commit("main", {"foreign": "push"})
        gate.open()
        withdrawal = Gate(scenario.origin, "*' refs/heads/mergeyard/'*", AFTER)
        starting = asyncio.create_task(scenario.starts())
        await withdrawal.arrival()
        starting.cancel()
        await asyncio.wait([starting])
        await another_takes_over(scenario)
        await scenario.judges()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_what_was_taken_off_and_put_back_is_known_again(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        landed = scenario.origin.tip("main")
        scenario.origin.set("refs/heads/main", before)
        await scenario.time_passes(SECOND)
        scenario.origin.set("refs/heads/main", landed)
        await another_takes_over(scenario)
        scenario.open(2, upon="main")
        await scenario.submit(2)
        await scenario.judges()
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_what_others_brought_and_was_removed_meanwhile_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        leaked = scenario.origin.commit("main", {"secret": "leaked"})
        scenario.origin.commit("main", {"more": "of it"})
        await scenario.time_passes(2 * SECOND)
        scenario.open(1, upon=leaked)
        await scenario.service.stop()
        scenario.origin.set("main", clean)
        await another_takes_over(scenario)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@asynchronous
async def test_what_was_removed_meanwhile_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        scenario.open(2, upon="feature1")
        await scenario.service.stop()
        scenario.origin.set("refs/heads/main", before)
        await another_takes_over(scenario)
        await scenario.submit(2)
        await scenario.judges()
        assert "file1" not in scenario.origin.files("main")
        assert not (await scenario.state(2)).startswith("merged")
