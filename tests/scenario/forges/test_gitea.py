"""Gitea only: unknown mergeability, dependencies, and merges by push that Gitea does not notice."""

import pytest

from mergeyard.domain.config import Config, LandingMethod
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.forges.faults import ALWAYS, LosesResponse, RespondsWith
from tests.support.forges.gitea.world import Blocker

BY_GITEA = Config(landing=LandingMethod.PROVIDER_MERGE)


def add_dependency(scenario: ForgeScenario, number: int, on: int) -> None:
    assert isinstance(scenario.forge, GiteaDriver)
    acme = scenario.forge.acme
    acme.pull_requests[number].blockers.append(Blocker(acme, acme.pull_requests[on]))


@asynchronous
async def test_pr_whose_mergeability_gitea_never_checks_is_tested_and_lands(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        scenario.forge.hide_mergeability(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: mergeability_unknown"
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_pr_that_gitea_checks_again_during_its_tests_lands(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.hide_mergeability(1)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_conflict_that_gitea_has_not_checked_is_found_by_git(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, files={"a.txt": "ours"})
        scenario.forge.push_to_main({"a.txt": "theirs"})
        await scenario.submit(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: not_mergeable"


@pytest.mark.long
@asynchronous
async def test_pr_that_gitea_refuses_to_merge_while_checking_is_merged_later(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        scenario.forge.hide_mergeability(1)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        await scenario.submit(2)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: not_mergeable"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        scenario.forge.show_mergeability(1)
        await scenario.advance_one_minute()
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_pr_with_an_open_dependency_fails_with_an_explanation_and_blocks_no_other(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2, 3)
        add_dependency(scenario, 1, on=3)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "failed: merge_refused"
        assert "The pull request depends on #3" in scenario.status_comment(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_pr_that_depends_on_the_pr_ahead_is_merged_after_it(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        add_dependency(scenario, 2, on=1)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.passes(1)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2


MARK = "/pulls/1/merge$"


@asynchronous
async def test_failed_marking_is_retried_later(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for fault in (RespondsWith(503), RespondsWith(502), LosesResponse()):
            scenario.forge.faults.plan(fault, MARK)
        await land_unmarked(scenario, 1)
        await scenario.advance_one_minute()
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_failed_marking_is_retried_after_a_restart(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(503), MARK, times=ALWAYS)
        await land_unmarked(scenario, 1)
        await scenario.service.stop()
        scenario.forge.faults.clear()
        await scenario.start()
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_pr_that_cannot_be_marked_does_not_block_others(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.merge, times=ALWAYS)
        await land_unmarked(scenario, 1)
        await land_unmarked(scenario, 2)
        scenario.forge.faults.clear()
        scenario.forge.faults.plan(RespondsWith(503), MARK, times=ALWAYS)
        await scenario.advance_one_minute()
        assert scenario.forge.is_merged(2)
        assert not scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_marking_refused_by_gitea_is_not_retried(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(405), MARK, times=ALWAYS)
        await land_unmarked(scenario, 1)
        asked = count_mark_requests(scenario)
        await scenario.advance_one_minute()
        assert count_mark_requests(scenario) == asked


async def land_unmarked(scenario: ForgeScenario, number: int) -> None:
    await scenario.passes(number)
    assert await scenario.state(number) == "merged: merged_by_queue"
    assert not scenario.forge.is_merged(number)


def count_mark_requests(scenario: ForgeScenario) -> int:
    """How often Gitea was asked to mark the first pull request as merged."""
    return sum(call.endswith("/pulls/1/merge") for call in scenario.forge.faults.calls)
