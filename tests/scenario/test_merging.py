"""What lands is what was tested: its history, its tree, its words, in one update of the target."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.ids import PrNumber
from tests.support.asynchronous import asynchronous
from tests.support.pushes import Logbook
from tests.support.scenario import REPO, Scenario, a_scenario

every_method = pytest.mark.parametrize("method", list(MergeMethod))


@every_method
@asynchronous
async def test_the_commit_that_was_tested_is_the_commit_that_lands(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        assert scenario.origin.tip(scenario.test_branches()[0]) == tested
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert (await scenario.stay(1)).merged_sha == tested
        assert scenario.origin.log("main", "%H")[:-1] == [before]


@every_method
@asynchronous
async def test_a_batch_of_three_lands_as_it_was_tested(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=3)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        tested = scenario.run_of(1, 2, 3).tip
        await scenario.passes(1, 2, 3)
        assert scenario.origin.tip("main") == tested
        assert len(scenario.origin.log("main", "%H")) == 4
        assert {"file1", "file2", "file3"} <= scenario.origin.files("main").keys()
        landed = [(await scenario.stay(number)).merged_sha for number in (1, 2, 3)]
        assert scenario.origin.log("main", "%H")[1:] == landed


@every_method
@asynchronous
async def test_a_chain_of_three_lands_in_one_update_that_also_deletes_the_test_branch(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        last, branch = scenario.run_of(3), scenario.branch_of(3)
        book = Logbook(scenario.origin)
        await scenario.passes(3)
        await scenario.passes(2)
        assert book.pushes() == []
        await scenario.passes(1)
        assert scenario.origin.tip("main") == last.tip
        assert [push for push in book.pushes() if "moved refs/heads/main" in push] == [
            {"moved refs/heads/main", f"deleted {branch}"}
        ]
        assert scenario.test_branches() == []


@every_method
@asynchronous
async def test_the_chain_reuses_the_commits_of_the_runs_ahead_so_that_it_stays_a_fast_forward(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        second = scenario.run_of(2).tip
        await scenario.passes(1)
        assert scenario.run_of(2).tip == second
        await scenario.passes(2)
        assert scenario.origin.tip("main") == second


@asynchronous
async def test_a_merge_commit_has_the_head_as_its_second_parent_and_names_pull_request_and_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert scenario.origin.log("main", "%P")[-1] == f"{before} {scenario.origin.tip('feature1')}"
        assert scenario.origin.log("main", "%B")[-1].strip() == (
            f"Merge pull request #1: Change 1\n\nMergeyard-Pull-Request: 1\nMergeyard-Run: {run.id}"
        )
        assert scenario.origin.log("main", "%an")[-1] == "Mergeyard"


@asynchronous
async def test_squashing_makes_one_commit_and_keeps_the_author(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        head = scenario.origin.commit("feature1", {"more": "more"}, author="Grace <grace@example.org>")
        scenario.set_pull(1, head=head)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert scenario.origin.subjects("main") == ["A change", "Change 1 (#1)"]
        assert scenario.origin.log("main", "%an <%ae> by %cn")[-1] == "Grace <grace@example.org> by Mergeyard"
        assert scenario.origin.log("main", "%(trailers:key=Mergeyard-Run,valueonly)")[-1].strip() == run.id
        assert len(scenario.origin.log("main", "%P")[-1].split()) == 1


@asynchronous
async def test_rebasing_keeps_commits_messages_and_authors_and_drops_merges_and_empty_ones(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        origin = scenario.origin
        origin.branch("feature1", upon="main")
        origin.commit("feature1", {"one": "1"}, message="First\n\nWhy it is so.", author="Grace <grace@example.org>")
        origin.commit("feature1", {}, message="Nothing at all")
        origin.commit("main", {"meanwhile": "m"})
        origin.commit("feature1", {"meanwhile": "m"}, message="Catch up", merging="main")
        origin.commit("feature1", {"two": "2"}, message="Second")
        scenario.set_pull(1, head=origin.tip("feature1"), branch="feature1")
        await scenario.time_passes(1000)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert origin.subjects("main")[-3:] == ["A change", "First", "Second"]
        assert origin.log("main", "%an")[-2:] == ["Grace", "Ada"]
        assert "Why it is so." in origin.log("main", "%b")[-2]
        assert all(run.id in trailers for trailers in origin.log("main", "%(trailers)")[-2:])
        assert all(len(parents.split()) == 1 for parents in origin.log("main", "%P")[1:])


@asynchronous
async def test_a_merge_within_a_pull_request_that_changes_something_itself_is_not_lost_in_a_rebase(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        origin = scenario.origin
        origin.branch("feature1", upon="main", files={"one": "1"})
        origin.commit("main", {"meanwhile": "m"})
        origin.commit("feature1", {"meanwhile": "m", "one": "1 as m wants it"}, message="Catch up", merging="main")
        scenario.set_pull(1, head=origin.tip("feature1"), branch="feature1")
        await scenario.time_passes(1000)
        await scenario.submit(1)
        await scenario.passes(1)
        assert origin.files("main")["one"] == "1 as m wants it"
        assert origin.subjects("main")[-1] == "Change 1 (#1)"


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
@asynchronous
async def test_who_stands_upon_another_keeps_what_it_takes_back_of_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "hello from 1\n", "one": "1"})
        scenario.open(2, upon="feature1", files={"README": "hello\n", "one": "2"})
        await scenario.submit(1, 2)
        await scenario.passes(1)
        scenario.origin.commit("main", {"foreign": "push"})
        await scenario.time_passes(5000)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        files = scenario.origin.files("main")
        assert (files["README"], files["one"]) == ("hello\n", "2")


@asynchronous
async def test_a_merged_pull_request_is_shown_as_merged_at_its_host(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.pull(1)["state"] == "merged"


@asynchronous
async def test_showing_it_as_merged_once_more_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        refs = scenario.origin.refs()
        await mark_merged_again(scenario, 1)
        assert scenario.origin.refs() == refs


@asynchronous
async def test_only_the_target_our_own_prefix_and_the_metas_are_ever_written(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        before = scenario.origin.refs()
        await scenario.submit(1, 2)
        await scenario.fails(2)
        await scenario.passes(1)
        after = scenario.origin.refs()
        changed = {ref for ref in {*before, *after} if before.get(ref) != after.get(ref)}
        assert changed == {"refs/heads/main", "refs/pull/1/meta"}


async def mark_merged_again(scenario: Scenario, number: int) -> None:
    stay = await scenario.stay(number)
    assert stay.merged_sha
    host = scenario.service.sites.host(REPO.host)
    await host.mark_merged(REPO, PrNumber(number), stay.pull.head, stay.merged_sha)
