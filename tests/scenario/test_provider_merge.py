"""Where the merge itself is left to the place of the target: one pull request after the other, each by itself."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, LANDING, Gate, Logbook, welcome_all
from tests.support.repositories import Origin
from tests.support.scenario import a_scenario

every_method = pytest.mark.parametrize("method", list(MergeMethod))


def config(method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Config:
    return Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=method)


@every_method
@asynchronous
async def test_every_pull_request_is_an_update_of_its_own_with_the_tested_tree(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        tree = scenario.origin.tree(scenario.run_of(3).tip)
        book = Logbook(scenario.origin)
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert book.pushes()[:3] == [{"moved refs/heads/main"}] * 3
        assert scenario.origin.tree("main") == tree
        assert [await scenario.state(number) for number in (1, 2, 3)] == ["merged: merged_by_queue"] * 3
        assert scenario.test_branches() == []


@asynchronous
async def test_one_that_is_refused_fails_with_the_words_and_those_before_it_stay_merged(tmp_path: Path):
    async with a_scenario(tmp_path, config()) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        refuse_number(scenario.origin, 2)
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.pull(1)["state"] == "merged"
        assert await scenario.state(2) == "failed: merge_refused"
        assert "not this one" in (await scenario.view(2)).why.message
        assert scenario.picture == "main ← 3…"
        await scenario.passes(3)
        assert "file2" not in scenario.origin.files("main")
        assert await scenario.state(3) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_a_landing_that_a_dead_process_had_half_done_is_finished(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        gate = Gate(scenario.origin, LANDING, AFTER)
        await scenario.hear(scenario.run_of(1).tip)
        await gate.arrival()
        await scenario.service.stop()
        welcome_all(scenario.origin)
        await scenario.starts()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert len(scenario.origin.log("main", "%H")) == 3


@every_method
@asynchronous
async def test_what_a_dead_process_had_merged_is_known_even_if_others_pushed_since(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        gate = Gate(scenario.origin, LANDING, AFTER)
        await scenario.hear(scenario.run_of(1).tip)
        await gate.arrival()
        await scenario.service.stop()
        welcome_all(scenario.origin)
        scenario.origin.commit("main", {"foreign": "f"})
        await scenario.starts()
        assert (await scenario.stay(1)).state == "merged"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert len(scenario.origin.log("main", "%H")) == 4


@asynchronous
async def test_the_merge_method_is_the_one_that_was_tested(tmp_path: Path):
    async with a_scenario(tmp_path, config(MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(merge_method=MergeMethod.MERGE_COMMIT)
        await scenario.passes(1)
        assert scenario.origin.subjects("main")[-1] == "Change 1 (#1)"


def refuse_number(origin: Origin, number: int) -> None:
    tell = f"git log -1 --format=%s $new | grep -q '#{number}:' && echo 'not this one' >&2 && exit 1"
    origin.hook("pre-receive", f"while read old new ref; do {tell}; done; exit 0")
