"""Temporary outages of the Git host and the store are shown, fail no pull request, and work continues afterwards."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.submissions import PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import AFTER_UPDATE, LANDING_PUSH, TEST_BRANCH_PUSH, PushGate
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, ScenarioSetup, a_scenario

SLOW_POLLING = ScenarioSetup(poll_interval_ms=10 * SECOND)


@asynchronous
async def test_unreachable_repository_is_shown_and_work_continues_when_it_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        away = make_repository_unavailable(scenario)
        await scenario.advance_time(2 * SECOND)
        assert await scenario.state(1) == "testing: provider_unavailable"
        restore_repository(scenario, away)
        await scenario.advance_time(2 * SECOND)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_pr_that_passes_during_a_host_outage_lands_afterwards(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = make_repository_unavailable(scenario)
        await scenario.passes(1)
        await scenario.advance_time(5 * SECOND)
        assert (await scenario.submission(1)).state == "tests_passed"
        restore_repository(scenario, away)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_host_outage_does_not_count_towards_the_test_timeout(tmp_path: Path):
    async with a_scenario(tmp_path, Config(testing_timeout_minutes=1), SLOW_POLLING) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(30 * SECOND)
        away = make_repository_unavailable(scenario)
        await scenario.advance_time(10 * MINUTE)
        assert (await scenario.submission(1)).state == "testing"
        restore_repository(scenario, away)
        await scenario.advance_time(20 * SECOND)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.advance_time(MINUTE)
        assert (await scenario.submission(1)).state == "pending_failure"


@asynchronous
async def test_cancelling_needs_no_host(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = make_repository_unavailable(scenario)
        await scenario.cancel(1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        restore_repository(scenario, away)
        await scenario.advance_time(MINUTE)
        assert scenario.test_branches() == []


@asynchronous
async def test_a_request_that_cannot_be_stored_fails_and_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.store.failing_commits = 1
        with pytest.raises(StoreUnavailable):
            await scenario.submit(1)
        assert len(scenario.queue_actor.queue.submissions) == 0
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_status_that_could_not_be_stored_is_not_counted(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = ["unit", "lint"]\n'
    async with a_scenario(tmp_path, setup=ScenarioSetup(repository_config=rules)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.store.failing_commits = 1
        with pytest.raises(StoreUnavailable):
            await scenario.passes(1)
        await scenario.passes(1, check="lint")
        assert (await scenario.view(1)).reason.message == "Waiting for required checks: unit."
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_commit_removed_while_a_store_response_is_lost_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.store.commits_before_lost_response = (
            1  # stores that the target branch is dirty, but not its observation
        )
        scenario.origin.commit("main", {"foreign.txt": "1"})
        scenario.open(1)
        await scenario.advance_time(SECOND)
        scenario.origin.set_ref("main", before)
        await scenario.submit(1)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@pytest.mark.parametrize("failures", [1, 2, 3])
@asynchronous
async def test_a_build_whose_outcome_could_not_be_stored_is_recorded_later(tmp_path: Path, failures: int):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        scenario.store.failing_commits = failures
        gate.open()
        await scenario.wait_until_idle()
        await scenario.advance_time(10 * SECOND)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.parametrize("failures", [1, 2, 3])
@asynchronous
async def test_a_landing_whose_outcome_could_not_be_stored_is_recorded_later(tmp_path: Path, failures: int):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        scenario.store.failing_commits = failures
        gate.open()
        await scenario.wait_until_idle()
        await scenario.advance_time(10 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.origin.log("main", "%H")) == 2


@asynchronous
async def test_forge_notice_that_could_not_be_stored_is_delivered_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull_request(1, state="closed")
        scenario.store.failing_commits = 1
        await scenario.advance_time(5 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_early_status_is_counted_even_if_the_store_failed_at_that_moment(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.report_without_waiting(scenario.origin.tip(scenario.test_branches()[0]))
        gate.open()
        await scenario.queue_actor.wait_until(lambda queue: any(run.pushed for run in queue.runs.values()))
        scenario.store.failing_commits = 1
        await scenario.wait_until_idle()
        assert scenario.store.failing_commits == 0
        await scenario.advance_time(10 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_poller_continues_after_host_and_store_fail_together(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = make_repository_unavailable(scenario)
        scenario.store.failing_commits = 2
        await scenario.advance_time(3 * SECOND)
        restore_repository(scenario, away)
        scenario.set_pull_request(1, state="closed")
        await scenario.advance_time(2 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_of_several_requests_in_one_decision_only_the_failing_one_fails(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.advance_time(SECOND)
        outcomes = await asyncio.gather(
            scenario.submit_without_waiting(1),
            scenario.service.submissions.submit(failing_command(2), SubmitOptions()),
            scenario.submit_without_waiting(3),
            return_exceptions=True,
        )
        await scenario.wait_until_idle()
        assert list(map(type, outcomes)) == [type(None), ZeroDivisionError, type(None)]
        assert {stay.number for stay in scenario.queue_actor.queue.submissions.values()} == {1, 3}
        assert len(scenario.runs()) == 2


@asynchronous
async def test_old_responses_are_deleted_even_after_a_store_failure(tmp_path: Path):
    async with a_scenario(tmp_path, setup=ScenarioSetup(poll_interval_ms=60 * MINUTE)) as scenario:
        scenario.store.failing_commits = 1
        await scenario.advance_time(60 * MINUTE)
        assert scenario.store.failing_commits == 0
        assert scenario.clock.next_wakeup() is not None
        scenario.store.failing_commits = 1
        await scenario.advance_time(60 * MINUTE)
        assert scenario.store.failing_commits == 0


def make_repository_unavailable(scenario: Scenario) -> Path:
    return scenario.origin.path.rename(scenario.folder / "away.git")


def restore_repository(scenario: Scenario, away: Path) -> None:
    away.rename(scenario.origin.path)


def failing_command(number: int) -> PullRequestCommand:
    def present(_: SubmissionView) -> NoReturn:
        raise ZeroDivisionError

    return PullRequestCommand(key=KEY, number=PullRequestNumber(number), actor="eve", render=present)
