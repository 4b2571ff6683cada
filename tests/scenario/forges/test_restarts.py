"""The service restarts between commands, checks and comments, and executes each command once."""

import pytest

from mergeyard.domain.ids import QueueKey
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import POSITIVE
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S
from tests.support.forges.faults import LosesResponse, RespondsWith


@pytest.mark.long
@asynchronous
async def test_command_executed_before_a_restart_is_not_executed_again(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        await scenario.comment(1, "/merge status")
        run = scenario.run_of(1).id
        await scenario.restart()
        await scenario.advance_one_minute()
        assert scenario.run_of(1).id == run
        assert len(scenario.replies(1)) == 1
        assert scenario.reactions(1) == [(POSITIVE,), (POSITIVE,)]


@pytest.mark.long
@asynchronous
async def test_command_given_during_downtime_is_executed(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        await scenario.comment(1, "/merge")
        await scenario.wait_until_idle()
        await scenario.service.stop()
        scenario.forge.comment(1, "ada", f"{scenario.forge.command_prefix} cancel")
        scenario.forge.label(2, "merge-queue")
        await scenario.start()
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.queue_text == "main ← 2…"


@pytest.mark.long
@asynchronous
async def test_command_whose_reply_failed_is_not_executed_again(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        first = scenario.run_of(1).id
        scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.reactions)
        await scenario.comment(1, "/merge restart")
        second = scenario.run_of(1).id
        await scenario.restart()
        await scenario.advance_one_minute()
        assert scenario.run_of(1).id == second
        assert second != first


@pytest.mark.long
@asynchronous
async def test_pr_cancelled_after_a_lost_response_is_not_submitted_again(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.reactions)
        await scenario.comment(1, "/merge")
        await scenario.cancel(1)
        await scenario.restart()
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@pytest.mark.long
@asynchronous
async def test_run_whose_checks_finished_during_downtime_lands(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.service.stop()
        await scenario.report_without_waiting(tested)
        await scenario.start()
        await scenario.advance_one_second()
        assert scenario.origin.tip("main") == tested
        assert scenario.forge.is_merged(1)
        assert "🎉 Merged" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_comment_that_failed_before_a_restart_is_updated_after_it(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.origin.branch("loaded-first", base="main")
        await scenario.create_queue(key=QueueKey(scenario.queue_actor.key.repo, "loaded-first"))
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(503), "/(issues/comments|notes)/[0-9]+$", times=3)
        await scenario.passes(1)
        await scenario.restart()
        await scenario.advance_one_minute()
        assert "🎉 Merged" in scenario.status_comment(1)
