"""A survey knows of every head whether the target holds it, and asks git only for what changed."""

import os
import shutil
from pathlib import Path

import pytest

from mergeyard.domain.ids import PrNumber
from mergeyard.service import surveying
from mergeyard.service.sight import Sight
from tests.support.asynchronous import asynchronous
from tests.support.scenario import SECOND, Scenario, a_scenario

TWO_SECONDS = 2 * SECOND
ONE, TWO = 1, 2


async def survey(scenario: Scenario, sight: Sight, *numbers: int) -> None:
    await scenario.time_passes(TWO_SECONDS)
    site = await scenario.service.sites.of(scenario.keeper)
    heads = {PrNumber(number): scenario.origin.tip(f"feature{number}") for number in numbers}
    await sight.survey(site, {site.target_ref}, heads)


def contained(scenario: Scenario, sight: Sight, *numbers: int) -> list[bool]:
    heads = [(PrNumber(number), scenario.origin.tip(f"feature{number}")) for number in numbers]
    return [sight.knows_contained(scenario.keeper, number, head) for number, head in heads]


@asynchronous
async def test_what_somebody_merges_is_held_from_then_on(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE, TWO)
        await survey(scenario, sight := Sight(), ONE, TWO)
        assert contained(scenario, sight, ONE, TWO) == [False, False]
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await survey(scenario, sight, ONE, TWO)
        assert contained(scenario, sight, ONE, TWO) == [True, False]
        scenario.origin.commit("main", {"other": "1\n"})
        await survey(scenario, sight, ONE, TWO)
        assert contained(scenario, sight, ONE, TWO) == [True, False]


@asynchronous
async def test_what_somebody_takes_off_is_held_no_longer(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        before = scenario.origin.tip("main")
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await survey(scenario, sight := Sight(), ONE)
        assert contained(scenario, sight, ONE) == [True]
        scenario.origin.set("main", before)
        await survey(scenario, sight, ONE)
        assert contained(scenario, sight, ONE) == [False]


@asynchronous
async def test_of_a_new_head_it_is_found_out_whether_the_target_holds_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        await survey(scenario, sight := Sight(), ONE)
        scenario.origin.branch("feature2", upon="main")
        scenario.set_pull(TWO, head=scenario.origin.tip("feature2"), branch="feature2")
        await survey(scenario, sight, ONE, TWO)
        assert contained(scenario, sight, ONE, TWO) == [False, True]


@asynchronous
async def test_a_target_that_went_far_is_compared_with_every_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(surveying, "MOST_NEW_COMMITS", 2)
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        await survey(scenario, sight := Sight(), ONE)
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        for content in "ab":
            scenario.origin.commit("main", {"other": content})
        await survey(scenario, sight, ONE)
        assert contained(scenario, sight, ONE) == [True]


@asynchronous
async def test_many_new_heads_are_read_and_compared_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(surveying, "MOST_NEW_HEADS", 2)
    async with a_scenario(tmp_path) as scenario:
        await survey(scenario, sight := Sight())
        scenario.open(1, 2, 3)
        scenario.origin.commit("main", {"file2": "2\n"}, merging="feature2")
        await survey(scenario, sight, 1, 2, 3)
        assert contained(scenario, sight, 1, 2, 3) == [False, True, False]


@asynchronous
async def test_a_push_costs_the_same_however_many_others_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told = tmp_path / "told"
    listen_to_git(tmp_path, told, monkeypatch)
    sizes = list[int]()
    for others in (3, 30):
        async with a_scenario(tmp_path / f"{others}") as scenario:
            numbers = range(1, 2 + others)
            scenario.open(*numbers)
            await survey(scenario, sight := Sight(), *numbers)
            scenario.push(ONE, {"more": "m"})
            await scenario.time_passes(TWO_SECONDS)
            told.write_bytes(b"")
            await survey(scenario, sight, *numbers)
            sizes.append(told.stat().st_size)
    assert 0 < sizes[1] <= sizes[0]


def listen_to_git(folder: Path, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What git says of the refs of a mirror is written down, too."""
    tool, git = folder / "bin" / "git", shutil.which("git")
    tool.parent.mkdir()
    asked = "*mirrors*for-each-ref* | *mirrors*ls-remote*"
    tool.write_text(f'#!/bin/sh\ncase "$*" in {asked}) {git} "$@" | tee -a {told};; *) exec {git} "$@";; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
