"""What CI says, when it says it, and on which commit: early, twice, late, at once, and against itself."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.ids import Sha
from mergeyard.domain.statuses import StatusState
from mergeyard.service import statuses
from mergeyard.service.errors import Code, Refused
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, BUILD, Gate
from tests.support.scenario import CONFIG, SECOND, Scenario, Stage, a_scenario

TWO = Stage(rules=CONFIG.replace('"unit"', '"unit", "lint"'))
PASSED, FAILED = StatusState.SUCCESS, StatusState.FAILURE


@asynchronous
async def test_a_status_that_comes_before_the_run_is_recorded_counts(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.hear(scenario.origin.tip(scenario.test_branches()[0]))
        assert (await scenario.stay(1)).state == "pending"
        gate.open()
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_status_that_is_told_twice_counts_once(tmp_path: Path):
    async with a_scenario(tmp_path, stage=TWO) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED)
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.report(tip, PASSED, "lint")
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_the_latest_word_of_a_check_counts_until_the_run_is_decided(tmp_path: Path):
    async with a_scenario(tmp_path, stage=TWO) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED)
        await scenario.report(tip, StatusState.PENDING)
        await scenario.report(tip, PASSED, "lint")
        assert (await scenario.view(1)).why.message.endswith("Not reported: unit.")
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.parametrize("place", ["feature1", "main"])
@asynchronous
async def test_a_status_on_another_commit_counts_for_nothing(tmp_path: Path, place: str):
    async with a_scenario(tmp_path) as scenario:
        await under_test(scenario)
        await scenario.report(scenario.origin.tip(place), PASSED)
        assert await scenario.state(1) == "testing: waiting_for_checks"


@asynchronous
async def test_a_status_that_nobody_asked_for_counts_for_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED, "coffee")
        await scenario.report(tip, FAILED, "tea")
        assert await scenario.state(1) == "testing: waiting_for_checks"


@asynchronous
async def test_a_word_after_the_verdict_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, FAILED)
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_failed"
        await scenario.report(tip, PASSED)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert "file1" not in scenario.origin.files("main")


@asynchronous
async def test_two_statuses_in_the_same_turn_both_count(tmp_path: Path):
    async with a_scenario(tmp_path, stage=TWO) as scenario:
        tip = await under_test(scenario)
        await asyncio.gather(scenario.hear(tip), scenario.hear(tip, check="lint"))
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_two_statuses_behind_many_other_requests_both_count(tmp_path: Path):
    async with a_scenario(tmp_path, stage=TWO) as scenario:
        tip = await under_test(scenario)
        others = [scenario.change(concurrency=number) for number in range(2, 8)]
        await asyncio.gather(*others, scenario.hear(tip), scenario.hear(tip, check="lint"))
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_failure_and_a_success_in_the_same_turn_are_a_failure(tmp_path: Path):
    async with a_scenario(tmp_path, stage=TWO) as scenario:
        tip = await under_test(scenario)
        await asyncio.gather(scenario.hear(tip), scenario.hear(tip, FAILED, "lint"))
        await scenario.rest()
        assert await scenario.state(1) == "pending_failure: waiting_for_base"


@asynchronous
async def test_many_statuses_at_once_are_all_heard(tmp_path: Path):
    names = [f"check{number}" for number in range(40)]
    async with a_scenario(tmp_path, Config(required_statuses=tuple(names))) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        words = [scenario.hear(run.tip, check=name) for name in names for run in scenario.runs()]
        await asyncio.gather(*words)
        await scenario.rest()
        assert [await scenario.state(number) for number in (1, 2, 3)] == ["merged: merged_by_queue"] * 3


@asynchronous
async def test_what_the_queue_requires_beats_the_file(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("e2e",))) as scenario:
        tip = await under_test(scenario)
        await scenario.report(tip, PASSED, "unit")
        assert (await scenario.view(1)).why.message.endswith("Not reported: e2e.")
        await scenario.report(tip, PASSED, "e2e")
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_without_required_statuses_nothing_merges(tmp_path: Path):
    async with a_scenario(tmp_path, stage=Stage(rules="version = 1\n")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: no_required_statuses"


@asynchronous
async def test_without_a_file_nothing_merges_either(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.delete("main", ".mergeyard.toml")
        await scenario.time_passes(2 * SECOND)
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: no_required_statuses"


@asynchronous
async def test_a_broken_file_fails_with_its_line_and_key(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = "unit"\n'
    async with a_scenario(tmp_path, stage=Stage(rules=rules)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: config_invalid"
        assert ".mergeyard.toml line 2, required_statuses: " in (await scenario.view(1)).why.message


@asynchronous
async def test_a_file_that_grows_on_the_target_makes_runs_start_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await under_test(scenario)
        scenario.origin.commit("main", {".mergeyard.toml": TWO.rules})
        await scenario.time_passes(2 * SECOND)
        assert scenario.run_of(1).required == ("unit", "lint")


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
            await scenario.hear(commit, FAILED, context)
        with pytest.raises(Refused) as refused:
            await scenario.hear(commit, FAILED, "d")
        assert (refused.value.code, refused.value.retry_after) == (Code.RATE_LIMITED, 3600)
        await scenario.hear(Sha("d" * 40), FAILED, "d")
