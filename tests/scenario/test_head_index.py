"""The head index knows for every head whether the target branch contains it, and reads from git only what changed."""

import os
import shutil
from pathlib import Path

import pytest

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.service import pull_request_reader
from mergeyard.service.pull_request_reader import PullRequestReader
from tests.support.asynchronous import asynchronous
from tests.support.scenario import SECOND, Scenario, a_scenario

TWO_SECONDS = 2 * SECOND
ONE, TWO = 1, 2


async def refresh(scenario: Scenario, reader: PullRequestReader, *numbers: int) -> None:
    await scenario.advance_time(TWO_SECONDS)
    context = await scenario.service.repositories.open_context(scenario.queue_actor)
    heads = {PullRequestNumber(number): scenario.origin.tip(f"feature{number}") for number in numbers}
    await reader.refresh_head_index(context, {context.target_ref}, heads)


def contained(scenario: Scenario, reader: PullRequestReader, *numbers: int) -> list[bool]:
    heads = [(PullRequestNumber(number), scenario.origin.tip(f"feature{number}")) for number in numbers]
    return [reader.is_known_contained(scenario.queue_actor, number, head) for number, head in heads]


@asynchronous
async def test_head_is_contained_after_it_was_merged_by_hand(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE, TWO)
        await refresh(scenario, reader := PullRequestReader(), ONE, TWO)
        assert contained(scenario, reader, ONE, TWO) == [False, False]
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await refresh(scenario, reader, ONE, TWO)
        assert contained(scenario, reader, ONE, TWO) == [True, False]
        scenario.origin.commit("main", {"other": "1\n"})
        await refresh(scenario, reader, ONE, TWO)
        assert contained(scenario, reader, ONE, TWO) == [True, False]


@asynchronous
async def test_head_is_not_contained_after_it_was_removed_from_the_target_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        before = scenario.origin.tip("main")
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await refresh(scenario, reader := PullRequestReader(), ONE)
        assert contained(scenario, reader, ONE) == [True]
        scenario.origin.set_ref("main", before)
        await refresh(scenario, reader, ONE)
        assert contained(scenario, reader, ONE) == [False]


@asynchronous
async def test_new_head_is_compared_with_the_target_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        await refresh(scenario, reader := PullRequestReader(), ONE)
        scenario.origin.branch("feature2", base="main")
        scenario.set_pull_request(TWO, head=scenario.origin.tip("feature2"), branch="feature2")
        await refresh(scenario, reader, ONE, TWO)
        assert contained(scenario, reader, ONE, TWO) == [False, True]


@asynchronous
async def test_target_branch_that_moved_far_is_compared_with_every_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pull_request_reader, "MAX_NEW_COMMITS", 2)
    async with a_scenario(tmp_path) as scenario:
        scenario.open(ONE)
        await refresh(scenario, reader := PullRequestReader(), ONE)
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        for content in "ab":
            scenario.origin.commit("main", {"other": content})
        await refresh(scenario, reader, ONE)
        assert contained(scenario, reader, ONE) == [True]


@asynchronous
async def test_many_new_heads_are_read_and_compared_in_one_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pull_request_reader, "MAX_NEW_HEADS", 2)
    async with a_scenario(tmp_path) as scenario:
        await refresh(scenario, reader := PullRequestReader())
        scenario.open(1, 2, 3)
        scenario.origin.commit("main", {"file2": "2\n"}, merging="feature2")
        await refresh(scenario, reader, 1, 2, 3)
        assert contained(scenario, reader, 1, 2, 3) == [False, True, False]


@asynchronous
async def test_cost_of_a_push_does_not_grow_with_the_number_of_prs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    output = tmp_path / "output"
    record_git_output(tmp_path, output, monkeypatch)
    sizes = list[int]()
    for others in (3, 30):
        async with a_scenario(tmp_path / f"{others}") as scenario:
            numbers = range(1, 2 + others)
            scenario.open(*numbers)
            await refresh(scenario, reader := PullRequestReader(), *numbers)
            scenario.push(ONE, {"more": "m"})
            await scenario.advance_time(TWO_SECONDS)
            output.write_bytes(b"")
            await refresh(scenario, reader, *numbers)
            sizes.append(output.stat().st_size)
    assert 0 < sizes[1] <= sizes[0]


def record_git_output(folder: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also writes what git prints about the refs of a mirror to a file."""
    tool, git = folder / "bin" / "git", shutil.which("git")
    tool.parent.mkdir()
    asked = "*mirrors*for-each-ref* | *mirrors*ls-remote*"
    tool.write_text(f'#!/bin/sh\ncase "$*" in {asked}) {git} "$@" | tee -a {output};; *) exec {git} "$@";; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
