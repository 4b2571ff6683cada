"""Old records are deleted; records that are recent, active or still needed are kept."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mergeyard.domain.ids import PullRequestNumber, RunId
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.timestamps import DAY, Instant
from mergeyard.ports.store import AuditQuery, SubmissionsQuery
from mergeyard.ports.writes import RecordKind
from mergeyard.service.retention import Retention, RetentionJob
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, Scenario, ScenarioSetup, a_scenario

THIRTY_DAYS = Retention(runs_days=30, journal_days=30, statuses_days=30, targets_days=30, outputs_days=30)


@asynccontextmanager
async def a_merged_pull_request(folder: Path) -> AsyncGenerator[tuple[Scenario, RunId]]:
    """Number 1 is merged and audited, and every journal consumer has read its entries."""
    async with a_scenario(folder, setup=ScenarioSetup(poll_interval_ms=MINUTE)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("a"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("b"))
        await scenario.submit(1)
        run = scenario.run_of(1).id
        await scenario.passes(1)
        await scenario.advance_time(5 * MINUTE)
        yield scenario, run


async def delete_expired(scenario: Scenario, retention: Retention = THIRTY_DAYS) -> None:
    service = scenario.service
    job = RetentionJob(service.store, service.runner, scenario.clock, retention)
    deleting = asyncio.create_task(job.delete_expired())
    while not deleting.done():
        await scenario.advance_time(1000)
    await deleting


def days_pass(scenario: Scenario, days: int) -> None:
    """Moves the clock in one step: what would happen in between does not matter here."""
    scenario.clock.move_to(Instant(scenario.clock.now() + days * DAY))


@asynchronous
async def test_a_finished_run_and_its_submission_are_deleted_after_their_time_and_not_before(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        queue, store = scenario.queue_actor.id, scenario.store
        days_pass(scenario, 29)
        await delete_expired(scenario)
        assert await store.run(queue, run) is not None
        assert len(await store.submissions(queue, SubmissionsQuery(take=9))) == 1
        assert await store.has_impacted_targets(queue, PullRequestNumber(1), scenario.origin.tip("feature1"))
        days_pass(scenario, 2)
        await delete_expired(scenario)
        assert await store.run(queue, run) is None
        assert await store.submissions(queue, SubmissionsQuery(take=9)) == ()
        assert not await store.has_impacted_targets(queue, PullRequestNumber(1), scenario.origin.tip("feature1"))
        left = [entry.body for entry in await store.audit_entries(AuditQuery(take=99))]
        assert left
        assert all(b'"type":"Queue' in body for body in left), left


@asynchronous
async def test_zero_days_keep_everything_forever(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        days_pass(scenario, 9999)
        await delete_expired(scenario, Retention())
        assert await scenario.store.run(scenario.queue_actor.id, run) is not None


@pytest.mark.long
@asynchronous
async def test_the_queue_goes_on_and_the_merge_audit_finds_nothing_after_records_were_deleted(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, _):
        days_pass(scenario, 31)
        await scenario.wait_until_idle()
        await scenario.submit(2)
        await delete_expired(scenario)
        await scenario.restart()
        await scenario.passes(2)
        await scenario.advance_time(5 * MINUTE)
        report = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert not report.mismatches
        assert [landing.number for landing in report.landings] == [2]


@asynchronous
async def test_a_run_never_expires_before_the_submission_that_it_verified(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        queue = scenario.queue_actor.id
        low, high = 0, scenario.clock.now() + 1
        while low < high:
            middle = (low + high) // 2
            if await scenario.store.expired_keys(RecordKind.RUNS, Instant(middle), 1):
                high = middle
            else:
                low = middle + 1
        assert await scenario.store.expired_keys(RecordKind.RUNS, Instant(low), 1) == ((queue, run),)
        assert len(await scenario.store.expired_keys(RecordKind.SUBMISSIONS, Instant(low), 9)) == 1
