"""What ended long ago is deleted, and all that is young, live or still needed stays."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.domain.ids import PrNumber, RunId
from mergeyard.domain.instants import DAY, Instant
from mergeyard.domain.targets import named
from mergeyard.ports.store import AuditPage, Page
from mergeyard.ports.writes import RecordKind
from mergeyard.service.retention import Retention, RetentionJob
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario

THIRTY_DAYS = Retention(runs_days=30, journal_days=30, statuses_days=30, targets_days=30, outputs_days=30)


@asynccontextmanager
async def a_merged_pull_request(folder: Path) -> AsyncGenerator[tuple[Scenario, RunId]]:
    """Number 1 is merged and verified, and everything about it is read."""
    async with a_scenario(folder) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("a"))
        await scenario.set_targets(2, named("b"))
        await scenario.submit(1)
        run = scenario.run_of(1).id
        await scenario.passes(1)
        await scenario.time_passes(5 * 60_000)
        yield scenario, run


async def delete_expired(scenario: Scenario, retention: Retention = THIRTY_DAYS) -> None:
    service = scenario.service
    job = RetentionJob(service.store, service.runner, scenario.clock, retention)
    deleting = asyncio.create_task(job.delete_expired())
    while not deleting.done():
        await scenario.time_passes(1000)
    await deleting


def days_pass(scenario: Scenario, days: int) -> None:
    """At once: nothing that would happen meanwhile is of interest."""
    scenario.clock.move_to(Instant(scenario.clock.now() + days * DAY))


@asynchronous
async def test_a_finished_run_and_its_submission_are_deleted_after_their_time_and_not_before(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        queue, store = scenario.keeper.id, scenario.store
        days_pass(scenario, 29)
        await delete_expired(scenario)
        assert await store.run(queue, run) is not None
        assert len(await store.stays(queue, Page(take=9))) == 1
        assert await store.has_targets(queue, PrNumber(1), scenario.origin.tip("feature1"))
        days_pass(scenario, 2)
        await delete_expired(scenario)
        assert await store.run(queue, run) is None
        assert await store.stays(queue, Page(take=9)) == ()
        assert not await store.has_targets(queue, PrNumber(1), scenario.origin.tip("feature1"))
        left = [entry.body for entry in await store.audit(AuditPage(take=99))]
        assert left
        assert all(b'"type":"Queue' in body for body in left), left


@asynchronous
async def test_zero_days_keep_everything_forever(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        days_pass(scenario, 9999)
        await delete_expired(scenario, Retention())
        assert await scenario.store.run(scenario.keeper.id, run) is not None


@asynchronous
async def test_the_queue_goes_on_and_the_merge_audit_finds_nothing_after_records_were_deleted(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, _):
        days_pass(scenario, 31)
        await scenario.rest()
        await scenario.submit(2)
        await delete_expired(scenario)
        await scenario.starts_again()
        await scenario.passes(2)
        await scenario.time_passes(5 * 60_000)
        report = await scenario.service.verifier.verify(KEY, 20)
        assert not report.mismatches
        assert [landing.number for landing in report.landings] == [2]


@asynchronous
async def test_a_run_never_expires_before_the_submission_that_it_verified(tmp_path: Path):
    async with a_merged_pull_request(tmp_path) as (scenario, run):
        queue = scenario.keeper.id
        low, high = 0, scenario.clock.now() + 1
        while low < high:
            middle = (low + high) // 2
            if await scenario.store.expired(RecordKind.RUNS, Instant(middle), 1):
                high = middle
            else:
                low = middle + 1
        assert await scenario.store.expired(RecordKind.RUNS, Instant(low), 1) == ((queue, run),)
        assert len(await scenario.store.expired(RecordKind.SUBMISSIONS, Instant(low), 9)) == 1
