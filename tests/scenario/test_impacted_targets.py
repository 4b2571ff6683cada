"""Uploads of long lists of impacted targets, before, while and after the pull request is submitted."""

import asyncio
from pathlib import Path

import pytest

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import ImpactedTargets, impacted_targets_from_names
from mergeyard.service.impacted_targets import CHUNK_SIZE, EncodedTargets, encode_targets
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario


def many(beside: str = "x") -> ImpactedTargets:
    return ImpactedTargets(frozenset({beside, *(f"//area/{number}" for number in range(2 * CHUNK_SIZE))}))


async def upload(scenario: Scenario, targets: ImpactedTargets) -> None:
    encoded = EncodedTargets(encode_targets(targets), targets)
    await scenario.service.impacted_targets_uploads.save(KEY, PullRequestNumber(1), None, encoded, lambda _: b"", None)


async def targets_of_the_first(scenario: Scenario) -> ImpactedTargets | None:
    await scenario.wait_until_idle()
    return (await scenario.submission(1)).impacted_targets


@asynchronous
async def test_upload_before_the_submission_is_used_at_submission(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await upload(scenario, many())
        await scenario.submit(1)
        assert await targets_of_the_first(scenario) == many()


@asynchronous
async def test_upload_for_a_queued_pr_replaces_its_targets_and_survives_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for targets in (many("x"), many("y")):
            await upload(scenario, targets)
            assert await targets_of_the_first(scenario) == targets
        await scenario.restart()
        assert await targets_of_the_first(scenario) == many("y")


@asynchronous
async def test_upload_for_a_queued_pr_is_stored_as_uploaded(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        spaced = EncodedTargets(b' {"names": ["a"]} ', impacted_targets_from_names("a"))
        await scenario.service.impacted_targets_uploads.save(
            KEY, PullRequestNumber(1), None, spaced, lambda _: b"", None
        )
        loaded = await scenario.service.store.load(scenario.queue_actor.id)
        assert [part.body for part in loaded.parts if part.kind == "impacted_targets"] == [spaced.body]


@asynchronous
async def test_identical_upload_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await upload(scenario, many())
        before, version = await targets_of_the_first(scenario), scenario.queue_actor.version
        assert before == many()
        await upload(scenario, many())
        assert await targets_of_the_first(scenario) is before
        assert scenario.queue_actor.version == version


@asynchronous
async def test_of_two_concurrent_uploads_the_queue_uses_the_stored_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await asyncio.gather(upload(scenario, many("x")), upload(scenario, many("y")))
        known = await scenario.submission(1)
        kept = await scenario.service.submission_queries.read_impacted_targets(
            scenario.queue_actor, known.number, known.pull_request.head
        )
        assert kept is not None
        assert await targets_of_the_first(scenario) == kept


@pytest.mark.parametrize("moments", range(0, 40, 4))
@asynchronous
async def test_pr_submitted_during_the_upload_gets_the_targets(tmp_path: Path, moments: int):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        uploading = asyncio.create_task(upload(scenario, many()))
        for _ in range(moments):
            await asyncio.sleep(0)
        await asyncio.gather(uploading, scenario.submit_without_waiting(1))
        assert await targets_of_the_first(scenario) == many()
