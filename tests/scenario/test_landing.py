"""How the target moves: only from where it was expected, only to what was tested, and never twice."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod, Mode
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import named
from mergeyard.ports.git import RefUpdate, Stale
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, LANDING, Gate, lose_answer, refuse, welcome_all
from tests.support.scenario import CONFIG, MINUTE, REPO, SECOND, a_scenario

MAIN = "refs/heads/main"


@asynchronous
async def test_a_landing_whose_answer_was_lost_is_found_to_be_done(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        lose_answer(scenario.origin, LANDING)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.origin.log("main", "%H")) == 2


@asynchronous
async def test_a_landing_whose_answer_was_lost_together_with_the_host_is_found_when_that_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        away = scenario.folder / "away.git"
        lose_answer(scenario.origin, LANDING, also=f"mv {scenario.origin.path} {away}")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "tests_passed: provider_unavailable"
        away.rename(scenario.origin.path)
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.subjects("main") == ["A change", "Merge pull request #1: Change 1"]


@asynchronous
async def test_a_landing_that_a_dead_process_had_finished_is_not_repeated(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING, AFTER)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.hear(tested)
        await gate.arrival()
        await scenario.starts_again()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested


@asynchronous
async def test_a_landing_that_a_dead_process_had_only_intended_is_carried_out(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.hear(tested)
        await gate.arrival()
        await scenario.service.stop()
        assert scenario.origin.tip("main") != tested
        welcome_all(scenario.origin)
        await scenario.starts()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested


@asynchronous
async def test_a_target_that_others_moved_meanwhile_loses_nothing_and_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.hear(tested)
        await gate.arrival()
        foreign = scenario.origin.commit("main", {"foreign": "f"}, message="From elsewhere")
        gate.open()
        await scenario.rest()
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert scenario.origin.tip("main") == foreign
        assert scenario.run_of(1).tip != tested
        await scenario.passes(1)
        assert scenario.origin.subjects("main") == ["A change", "From elsewhere", "Merge pull request #1: Change 1"]


@asynchronous
async def test_a_push_that_comes_too_late_lands_nothing_even_when_the_target_is_back_where_it_was(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING)
        scenario.open(1)
        await scenario.submit(1)
        before, tested, branch = scenario.origin.tip("main"), scenario.run_of(1).tip, scenario.branch_of(1)
        await scenario.hear(tested)
        await gate.arrival()
        await scenario.service.stop()
        welcome_all(scenario.origin)
        scenario.origin.commit("main", {"foreign": "f"})
        await scenario.starts()
        scenario.origin.set("main", before)
        mirror = await scenario.service.sites.mirror(REPO)
        late = await mirror.push(RefUpdate(MAIN, before, tested), RefUpdate(branch, tested, None))
        assert late == Stale()
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_one_whose_landing_was_withdrawn_is_tested_again_also_when_the_target_is_back(tmp_path: Path):
    """While its branch is there, nothing can have landed."""
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1)
        scenario.origin.set(scenario.branch_of(1), scenario.origin.tip("feature1"))
        await scenario.passes(1)
        assert scenario.run_of(1).id != before.id
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_test_branch_that_somebody_deleted_makes_the_landing_unknown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.remove(scenario.branch_of(1))
        await scenario.passes(1)
        assert await scenario.state(1) == "cancelled: landing_unknown"
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_a_host_that_refuses_the_landing_pauses_the_queue_with_its_words(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        refuse(scenario.origin, LANDING, "main is frozen: ask Ada")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.keeper.queue.state is QueueState.PAUSED
        assert await scenario.state(1) == "tests_passed: queue_paused"
        assert "main is frozen: ask Ada" in (await scenario.view(1)).why.message
        welcome_all(scenario.origin)
        await scenario.update(state=QueueState.RUNNING)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_pull_requests_are_read_once_more_before_they_land(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        before = scenario.origin.tip("main")
        scenario.push(1, {"late": "change"})
        await scenario.passes(1)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.origin.tip("main") == before
        assert scenario.picture == "main ← 2…"


@asynchronous
async def test_a_landing_that_changes_the_rules_changes_them_for_the_next(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={".mergeyard.toml": CONFIG.replace('"unit"', '"unit", "lint"')})
        scenario.open(2)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.run_of(2).required == ("unit", "lint")
        await scenario.passes(2)
        assert (await scenario.view(2)).why.message.endswith("Not reported: lint.")
        await scenario.passes(2, check="lint")
        assert await scenario.state(2) == "merged: merged_by_queue"


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_a_green_head_on_the_very_tip_merges_directly(tmp_path: Path, method: MergeMethod):
    config = Config(direct_merge_mode=DirectMergeMode.ALWAYS, merge_method=method)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        head = scenario.origin.tip("feature1")
        await scenario.hear(head)
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.origin.tree("main") == scenario.origin.tree("feature1")
        assert scenario.test_branches() == []
        assert scenario.pull(1)["state"] == "merged"


@asynchronous
async def test_a_head_that_is_not_green_is_tested_like_all_others(tmp_path: Path):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_lanes_that_share_nothing_land_what_was_tested_on_a_tip_that_moved(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("fe"))
        await scenario.set_targets(2, named("be"))
        await scenario.submit(1, 2)
        assert scenario.picture == "main ← 1… ∥ main ← 2…"
        await scenario.passes(1)
        tested = scenario.run_of(2)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") != tested.tip
        assert {"file1", "file2"} <= scenario.origin.files("main").keys()
        assert scenario.origin.log("main", "%P")[-1].split()[1] == scenario.origin.tip("feature2")
        assert scenario.test_branches() == []


@asynchronous
async def test_lanes_that_touch_the_same_path_are_tested_again_one_upon_the_other(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        lines = "".join(f"{number}\n" for number in range(30))
        scenario.origin.commit("main", {"shared": lines})
        await scenario.time_passes(SECOND)
        scenario.open(1, files={"shared": f"top\n{lines}"})
        scenario.open(2, files={"shared": f"{lines}bottom\n"})
        await scenario.set_targets(1, named("fe"))
        await scenario.set_targets(2, named("be"))
        await scenario.submit(1, 2)
        tested = scenario.run_of(2)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "testing: waiting_for_checks"
        assert scenario.run_of(2).id != tested.id
        await scenario.passes(2)
        assert scenario.origin.files("main")["shared"] == f"top\n{lines}bottom\n"
