"""The process ends anywhere and begins again: everything ends as it should, and nothing lands twice."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import named
from mergeyard.service.wording import pull_request_of
from tests.support.asynchronous import asynchronous
from tests.support.pushes import BUILD, LANDING, Gate, welcome_all
from tests.support.scenario import Scenario, a_scenario

ALONE = Config(concurrency=1)
BATCH_OF_FOUR = Config(batch=True, batching_min_size=4, bisection_concurrency=2)


@asynchronous
async def test_while_one_waits(tmp_path: Path):
    async with a_scenario(tmp_path, ALONE) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.starts_again()
        assert await scenario.state(2) == "pending: waiting_for_slot"
        await scenario.judges()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_while_one_is_not_ready(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        await scenario.submit(1)
        await scenario.service.stop()
        scenario.set_pull(1, draft=False)
        await scenario.starts()
        await scenario.judges()
        assert landed(scenario) == [1]


@asynchronous
async def test_while_a_branch_is_being_built(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.service.stop()
        assert scenario.test_branches() == []
        welcome_all(scenario.origin)
        await scenario.starts()
        await scenario.judges()
        assert landed(scenario) == [1]


@asynchronous
async def test_while_tests_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        tips = [run.tip for run in scenario.runs()]
        await scenario.starts_again()
        assert [run.tip for run in scenario.runs()] == tips
        await scenario.judges()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_while_tests_run_of_which_one_check_has_spoken(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("unit", "lint"))) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1, check="lint")
        await scenario.starts_again()
        assert (await scenario.view(1)).why.message.endswith("Not reported: unit.")
        await scenario.passes(1)
        assert landed(scenario) == [1]


@asynchronous
async def test_while_one_that_passed_waits_for_another(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.starts_again()
        assert scenario.picture == "main ← 1… ← 2✓"
        await scenario.judges()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_while_one_that_failed_waits_to_be_judged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(2)
        await scenario.starts_again()
        assert scenario.picture == "main ← 1… ← 2✗"
        await scenario.judges(2)
        assert landed(scenario) == [1]
        assert await scenario.state(2) == "failed: test_run_failed"


@pytest.mark.parametrize("when", ["pre-receive", "post-receive"])
@asynchronous
async def test_while_the_target_is_being_moved(tmp_path: Path, when: str):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING, when)
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.hear(scenario.run_of(1).tip)
        await gate.arrival()
        await scenario.service.stop()
        welcome_all(scenario.origin)
        await scenario.starts()
        assert landed(scenario) == [1, 2]
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.test_branches() == []


@asynchronous
async def test_while_the_guilty_one_is_sought(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH_OF_FOUR) as scenario:
        await begin_bisection(scenario)
        picture = scenario.picture
        await scenario.starts_again()
        assert scenario.picture == picture
        await scenario.judges(3)
        assert landed(scenario) == [1, 2, 4]
        assert await scenario.state(3) == "failed: test_run_failed"


@asynchronous
async def test_while_the_target_itself_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        await scenario.starts_again()
        assert await scenario.state(1) == "pending_failure: waiting_for_base"
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_while_the_queue_is_paused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.passes(1)
        await scenario.starts_again()
        assert await scenario.state(1) == "tests_passed: queue_paused"
        assert landed(scenario) == []
        await scenario.update(state=QueueState.RUNNING)
        assert landed(scenario) == [1]


@asynchronous
async def test_while_modes_switch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(mode=Mode.PARALLEL)
        await scenario.starts_again()
        assert scenario.keeper.queue.state is QueueState.SWITCHING_MODES
        await scenario.judges()
        assert scenario.keeper.queue.state is QueueState.RUNNING
        assert landed(scenario) == [1]


@asynchronous
async def test_while_lanes_run_side_by_side(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2, 3)
        for number, targets in {1: named("fe"), 2: named("be"), 3: named("fe", "be")}.items():
            await scenario.set_targets(number, targets)
        await scenario.submit(1, 2, 3)
        await scenario.starts_again()
        assert scenario.picture == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"
        await scenario.judges()
        assert sorted(landed(scenario)) == [1, 2, 3]
        assert landed(scenario)[-1] == 3


@asynchronous
async def test_after_every_single_word_of_ci(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH_OF_FOUR) as scenario:
        await begin_bisection(scenario)
        while runs := scenario.runs():
            red = any(member.number == 3 for member in runs[0].stack)
            await (scenario.fails if red else scenario.passes)(*(member.number for member in runs[0].tested))
            await scenario.starts_again()
        assert landed(scenario) == [1, 2, 4]
        assert await scenario.state(3) == "failed: test_run_failed"
        assert scenario.test_branches() == []


async def begin_bisection(scenario: Scenario) -> None:
    scenario.open(1, 2, 3, 4)
    await scenario.submit(1, 2, 3, 4)
    await scenario.fails(1, 2, 3, 4)
    await scenario.passes()
    assert "⋔" in scenario.picture


def landed(scenario: Scenario) -> list[int]:
    """Whose commits the target holds, in their order, each as often as it landed."""
    numbers = map(pull_request_of, scenario.origin.log("main", "%B"))
    return [number for number in numbers if number is not None]
