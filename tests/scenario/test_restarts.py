"""The process stops at any point and starts again: every pull request ends correctly, and nothing lands twice."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.service.git_names import parse_pull_request_trailer
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import LANDING_PUSH, TEST_BRANCH_PUSH, PushGate, remove_hooks
from tests.support.scenario import Scenario, a_scenario

ALONE = Config(concurrency=1)
BATCH_OF_FOUR = Config(batch=True, batching_min_size=4, bisection_concurrency=2)


@asynchronous
async def test_restart_while_a_pr_waits(tmp_path: Path):
    async with a_scenario(tmp_path, ALONE) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.restart()
        assert await scenario.state(2) == "pending: waiting_for_slot"
        await scenario.report_all_runs()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_restart_while_a_pr_is_not_ready(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        await scenario.service.stop()
        scenario.set_pull_request(1, draft=False)
        await scenario.start()
        await scenario.report_all_runs()
        assert landed(scenario) == [1]


@asynchronous
async def test_restart_while_a_test_branch_is_built(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.stop()
        assert scenario.test_branches() == []
        remove_hooks(scenario.origin)
        await scenario.start()
        await scenario.report_all_runs()
        assert landed(scenario) == [1]


@pytest.mark.long
@asynchronous
async def test_restart_while_tests_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        tips = [run.tip for run in scenario.runs()]
        await scenario.restart()
        assert [run.tip for run in scenario.runs()] == tips
        await scenario.report_all_runs()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_restart_after_one_of_two_checks_was_reported(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("unit", "lint"))) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1, check="lint")
        await scenario.restart()
        assert (await scenario.view(1)).reason.message == "Waiting for required checks: unit."
        await scenario.passes(1)
        assert landed(scenario) == [1]


@asynchronous
async def test_restart_while_a_passed_pr_waits_for_one_ahead(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.restart()
        assert scenario.queue_text == "main ← 1… ← 2✓"
        await scenario.report_all_runs()
        assert landed(scenario) == [1, 2]


@asynchronous
async def test_restart_while_a_failure_is_unconfirmed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(2)
        await scenario.restart()
        assert scenario.queue_text == "main ← 1… ← 2✗"
        await scenario.report_all_runs(2)
        assert landed(scenario) == [1]
        assert await scenario.state(2) == "failed: test_run_failed"


@pytest.mark.parametrize("when", ["pre-receive", "post-receive"])
@asynchronous
async def test_restart_during_a_landing(tmp_path: Path, when: str):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH, when)
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        await scenario.start()
        assert landed(scenario) == [1, 2]
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.test_branches() == []


@pytest.mark.long
@asynchronous
async def test_restart_during_a_bisection(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH_OF_FOUR) as scenario:
        await begin_bisection(scenario)
        picture = scenario.queue_text
        await scenario.restart()
        assert scenario.queue_text == picture
        await scenario.report_all_runs(3)
        assert landed(scenario) == [1, 2, 4]
        assert await scenario.state(3) == "failed: test_run_failed"


@asynchronous
async def test_restart_during_a_base_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        await scenario.restart()
        assert await scenario.state(1) == "pending_failure: waiting_for_base"
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_restart_while_the_queue_is_paused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.passes(1)
        await scenario.restart()
        assert await scenario.state(1) == "tests_passed: queue_paused"
        assert landed(scenario) == []
        await scenario.update(state=QueueState.RUNNING)
        assert landed(scenario) == [1]


@asynchronous
async def test_restart_during_a_mode_switch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(mode=Mode.PARALLEL)
        await scenario.restart()
        assert scenario.queue_actor.queue.state is QueueState.SWITCHING_MODES
        await scenario.report_all_runs()
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        assert landed(scenario) == [1]


@pytest.mark.long
@asynchronous
async def test_restart_while_lanes_run_in_parallel(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2, 3)
        for number, targets in {
            1: impacted_targets_from_names("fe"),
            2: impacted_targets_from_names("be"),
            3: impacted_targets_from_names("fe", "be"),
        }.items():
            await scenario.upload_impacted_targets(number, targets)
        await scenario.submit(1, 2, 3)
        await scenario.restart()
        assert scenario.queue_text == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"
        await scenario.report_all_runs()
        assert sorted(landed(scenario)) == [1, 2, 3]
        assert landed(scenario)[-1] == 3


@pytest.mark.long
@asynchronous
async def test_restart_after_every_status_report(tmp_path: Path):
    async with a_scenario(tmp_path, BATCH_OF_FOUR) as scenario:
        await begin_bisection(scenario)
        while runs := scenario.runs():
            failed = any(member.number == 3 for member in runs[0].stack)
            await (scenario.fails if failed else scenario.passes)(*(member.number for member in runs[0].tested_members))
            await scenario.restart()
        assert landed(scenario) == [1, 2, 4]
        assert await scenario.state(3) == "failed: test_run_failed"
        assert scenario.test_branches() == []


async def begin_bisection(scenario: Scenario) -> None:
    scenario.open(1, 2, 3, 4)
    await scenario.submit(1, 2, 3, 4)
    await scenario.fails(1, 2, 3, 4)
    await scenario.passes()
    assert "⋔" in scenario.queue_text


def landed(scenario: Scenario) -> list[int]:
    """The pull requests on the target branch in order; one that landed twice is listed twice."""
    numbers = map(parse_pull_request_trailer, scenario.origin.log("main", "%B"))
    return [number for number in numbers if number is not None]
