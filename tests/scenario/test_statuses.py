"""Status reports of CI: early, repeated, late, concurrent, contradictory, and on other commits."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import Reason
from mergeyard.service import statuses
from mergeyard.service.errors import Code, RequestRefused
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import AFTER_UPDATE, TEST_BRANCH_PUSH, PushGate
from tests.support.scenario import CONFIG, SECOND, Scenario, ScenarioSetup, a_scenario

TWO = ScenarioSetup(repository_config=CONFIG.replace('"unit"', '"unit", "lint"'))
PASSED, FAILED = StatusState.SUCCESS, StatusState.FAILURE


@asynchronous
async def test_a_status_that_comes_before_the_run_is_recorded_counts(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.report_without_waiting(scenario.origin.tip(scenario.test_branches()[0]))
        assert (await scenario.submission(1)).state == "pending"
        gate.open()
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_status_that_is_reported_twice_counts_once(tmp_path: Path):
    async with a_scenario(tmp_path, setup=TWO) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED)
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.report(tip, PASSED, "lint")
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_latest_status_of_a_check_counts_until_the_run_is_decided(tmp_path: Path):
    async with a_scenario(tmp_path, setup=TWO) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED)
        await scenario.report(tip, StatusState.PENDING)
        await scenario.report(tip, PASSED, "lint")
        assert (await scenario.view(1)).reason.message == "Waiting for required checks: unit."
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.parametrize("place", ["feature1", "main"])
@asynchronous
async def test_status_on_another_commit_is_ignored(tmp_path: Path, place: str):
    async with a_scenario(tmp_path) as scenario:
        await under_test(scenario)
        await scenario.report(scenario.origin.tip(place), PASSED)
        assert await scenario.state(1) == "testing: waiting_for_checks"


@asynchronous
async def test_status_of_a_check_that_is_not_required_is_ignored(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED, "coffee")
        await scenario.report(tip, FAILED, "tea")
        assert await scenario.state(1) == "testing: waiting_for_checks"


@asynchronous
async def test_status_after_the_run_is_decided_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, FAILED)
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert "file1" not in scenario.origin.files("main")


@asynchronous
async def test_two_statuses_in_the_same_decision_both_count(tmp_path: Path):
    async with a_scenario(tmp_path, setup=TWO) as scenario:
        tip = await under_test(scenario)
        await asyncio.gather(scenario.report_without_waiting(tip), scenario.report_without_waiting(tip, check="lint"))
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_two_statuses_behind_many_other_requests_both_count(tmp_path: Path):
    async with a_scenario(tmp_path, setup=TWO) as scenario:
        tip = await under_test(scenario)
        others = [scenario.update_without_waiting(concurrency=number) for number in range(2, 8)]
        await asyncio.gather(
            *others, scenario.report_without_waiting(tip), scenario.report_without_waiting(tip, check="lint")
        )
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_failure_and_success_in_the_same_decision_fail_the_run(tmp_path: Path):
    async with a_scenario(tmp_path, setup=TWO) as scenario:
        tip = await under_test(scenario)
        await asyncio.gather(scenario.report_without_waiting(tip), scenario.report_without_waiting(tip, FAILED, "lint"))
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "pending_failure: waiting_for_base"


@asynchronous
async def test_many_concurrent_statuses_are_all_counted(tmp_path: Path):
    names = [f"check{number}" for number in range(40)]
    async with a_scenario(tmp_path, Config(required_statuses=tuple(names))) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        reports = [scenario.report_without_waiting(run.tip, check=name) for name in names for run in scenario.runs()]
        await asyncio.gather(*reports)
        await scenario.wait_until_idle()
        assert [await scenario.state(number) for number in (1, 2, 3)] == ["merged: merged_by_queue"] * 3


@asynchronous
async def test_required_statuses_of_the_queue_override_the_file(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("e2e",))) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED, "unit")
        assert (await scenario.view(1)).reason.message == "Waiting for required checks: e2e."
        await scenario.report(tip, PASSED, "e2e")
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_without_required_statuses_nothing_merges(tmp_path: Path):
    async with a_scenario(tmp_path, setup=ScenarioSetup(repository_config="version = 1\n")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert (await scenario.view(1)).reason.code is Reason.NO_REQUIRED_STATUSES


@asynchronous
async def test_without_a_file_nothing_merges_either(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.delete("main", ".mergeyard.toml")
        await scenario.advance_time(2 * SECOND)
        scenario.open(1)
        await scenario.submit(1)
        assert (await scenario.view(1)).reason.code is Reason.NO_REQUIRED_STATUSES


@asynchronous
async def test_a_broken_file_fails_with_its_key(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = "unit"\n'
    async with a_scenario(tmp_path, setup=ScenarioSetup(repository_config=rules)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: config_invalid"
        assert ".mergeyard.toml: required_statuses: " in (await scenario.view(1)).reason.message


@asynchronous
async def test_required_check_added_on_the_target_branch_restarts_runs(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await under_test(scenario)
        scenario.origin.commit("main", {".mergeyard.toml": TWO.repository_config})
        await scenario.advance_time(2 * SECOND)
        assert scenario.run_of(1).required_statuses == ("unit", "lint")


async def under_test(scenario: Scenario) -> Sha:
    """The commit on which the first pull request is tested."""
    scenario.open(1)
    await scenario.submit(1)
    return scenario.run_of(1).tip


@asynchronous
async def test_a_commit_takes_a_limited_number_of_contexts_and_old_ones_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(statuses, "MAX_CONTEXTS", 3)
    async with a_scenario(tmp_path) as scenario:
        commit = Sha("c" * 40)
        for context in ("a", "b", "c", "a"):
            await scenario.report_without_waiting(commit, FAILED, context)
        with pytest.raises(RequestRefused) as refused:
            await scenario.report_without_waiting(commit, FAILED, "d")
        assert (refused.value.code, refused.value.retry_after) == (Code.RATE_LIMITED, 3600)
        await scenario.report_without_waiting(Sha("d" * 40), FAILED, "d")
