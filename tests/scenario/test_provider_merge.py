"""The Git host itself merges: one pull request after the other, each in its own update."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import AFTER_UPDATE, LANDING_PUSH, PushGate, PushLog, remove_hooks
from tests.support.repositories import Origin
from tests.support.scenario import a_scenario

every_method = pytest.mark.parametrize("method", list(MergeMethod))


def config(method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Config:
    return Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=method)


@every_method
@asynchronous
async def test_each_pr_is_merged_in_its_own_update_with_the_tested_tree(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        tree = scenario.origin.tree(scenario.run_of(3).tip)
        book = PushLog(scenario.origin)
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert book.pushes()[:3] == [{"moved refs/heads/main"}] * 3
        assert scenario.origin.tree("main") == tree
        assert [await scenario.state(number) for number in (1, 2, 3)] == ["merged: merged_by_queue"] * 3
        assert scenario.test_branches() == []


@asynchronous
async def test_refused_pr_fails_with_the_host_message_and_earlier_ones_remain_merged(tmp_path: Path):
    async with a_scenario(tmp_path, config()) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        refuse_number(scenario.origin, 2)
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.pull_request_meta(1)["state"] == "merged"
        assert await scenario.state(2) == "failed: merge_refused"
        assert "not this one" in (await scenario.view(2)).reason.message
        assert scenario.queue_text == "main ← 3…"
        await scenario.passes(3)
        assert "file2" not in scenario.origin.files("main")
        assert await scenario.state(3) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_landing_half_done_before_a_crash_is_finished(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        gate = PushGate(scenario.origin, LANDING_PUSH, AFTER_UPDATE)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        await scenario.start()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert len(scenario.origin.log("main", "%H")) == 3


@every_method
@asynchronous
async def test_merges_done_before_a_crash_are_recognized_even_after_foreign_pushes(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, config(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        gate = PushGate(scenario.origin, LANDING_PUSH, AFTER_UPDATE)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        scenario.origin.commit("main", {"foreign": "f"})
        await scenario.start()
        assert (await scenario.submission(1)).state == "merged"
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
    refuse = f"git log -1 --format=%s $new | grep -q '#{number}:' && echo 'not this one' >&2 && exit 1"
    origin.install_hook("pre-receive", f"while read old new ref; do {refuse}; done; exit 0")
