"""A long list of targets comes without its names: they are made where the queue needs them."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.targets import Targets
from mergeyard.service.long_targets import TOGETHER
from mergeyard.service.written_targets import WrittenTargets, written
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario


def many(beside: str = "x") -> Targets:
    return Targets(frozenset({beside, *(f"//area/{number}" for number in range(2 * TOGETHER))}))


async def upload(scenario: Scenario, targets: Targets) -> None:
    nameless = replace(written(targets), targets=None)
    await scenario.service.uploads.take(KEY, PrNumber(1), None, nameless, lambda _: b"", None)


async def targets_of_the_first(scenario: Scenario) -> Targets | None:
    await scenario.rest()
    return (await scenario.stay(1)).targets


@asynchronous
async def test_it_waits_for_whoever_is_not_in_the_queue_yet(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await upload(scenario, many())
        await scenario.submit(1)
        assert await targets_of_the_first(scenario) == many()


@asynchronous
async def test_in_the_queue_it_replaces_what_was_known_and_outlives_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for targets in (many("x"), many("y")):
            await upload(scenario, targets)
            assert await targets_of_the_first(scenario) == targets
        await scenario.starts_again()
        assert await targets_of_the_first(scenario) == many("y")


@asynchronous
async def test_in_the_queue_it_is_stored_as_it_was_written(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        spaced = WrittenTargets(b' {"names": ["a"]} ', 1)
        await scenario.service.uploads.take(KEY, PrNumber(1), None, spaced, lambda _: b"", None)
        loaded = await scenario.service.store.load(scenario.keeper.id)
        assert [fact.body for fact in loaded.facts if fact.shelf == "targets"] == [spaced.body]


@asynchronous
async def test_the_same_once_more_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await upload(scenario, many())
        before, version = await targets_of_the_first(scenario), scenario.keeper.version
        assert before == many()
        await upload(scenario, many())
        assert await targets_of_the_first(scenario) is before
        assert scenario.keeper.version == version


@asynchronous
async def test_of_two_at_once_the_queue_knows_the_one_that_is_kept(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await asyncio.gather(upload(scenario, many("x")), upload(scenario, many("y")))
        known = await scenario.stay(1)
        kept = await scenario.service.stays.targets(scenario.keeper, known.number, known.pull.head)
        assert kept is not None
        assert await targets_of_the_first(scenario) == kept


@pytest.mark.parametrize("moments", range(0, 40, 4))
@asynchronous
async def test_whoever_is_submitted_meanwhile_has_it_too(tmp_path: Path, moments: int):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        uploading = asyncio.create_task(upload(scenario, many()))
        for _ in range(moments):
            await asyncio.sleep(0)
        await asyncio.gather(uploading, scenario.hand_in(1))
        assert await targets_of_the_first(scenario) == many()
