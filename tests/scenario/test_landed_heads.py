"""A pull request brings its whole change, whatever landed before from the same commits, and whatever messages claim."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod, Mode
from mergeyard.domain.pull_requests import impacted_targets_from_names
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, SECOND, Scenario, a_scenario

BEFORE, LANDED, PUSHED, HEAD = "ccbcc", "ccbcbabc", "ccbcbabca", "cbbcc"
"""The lines of a file at first, in the lower pull request, on the target branch after another push, and in the upper
pull request."""

every_method = pytest.mark.parametrize("method", list(MergeMethod))
with_own_commits = pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])


async def land(scenario: Scenario, number: int) -> None:
    await scenario.advance_time(2 * SECOND)
    await scenario.submit(number)
    await scenario.passes(number)
    assert await scenario.state(number) == "merged: merged_by_queue"


@with_own_commits
@asynchronous
async def test_a_change_that_was_reverted_lands_again_as_a_whole(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"feature": "1\n"})
        scenario.origin.branch("again", base="feature1", files={"fix": "1\n"})
        await land(scenario, 1)
        scenario.open(2, files={"feature": None})
        await land(scenario, 2)
        scenario.set_pull_request(3, head=scenario.origin.tip("again"), branch="again")
        await land(scenario, 3)
        landed = scenario.origin.files("main")
        assert (landed.get("feature"), landed.get("fix")) == ("1\n", "1\n")


@with_own_commits
@asynchronous
async def test_a_change_of_which_a_part_was_reverted_lands_again_as_a_whole(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"kept": "1\n", "reverted": "1\n"})
        scenario.origin.branch("again", base="feature1", files={"fix": "1\n"})
        await land(scenario, 1)
        scenario.origin.commit("main", {"reverted": None}, message="Take a part back")
        scenario.set_pull_request(2, head=scenario.origin.tip("again"), branch="again")
        await land(scenario, 2)
        assert {"kept", "reverted", "fix"} <= scenario.origin.files("main").keys()


@with_own_commits
@asynchronous
async def test_the_trailers_of_a_stranger_drop_no_commit(tmp_path: Path, method: MergeMethod):
    """The change is on the target branch, but this queue did not merge it: the revert of it must land."""
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"file1": "1\n"})
        first = scenario.origin.tip("feature1")
        scenario.push(1, {"file1": None, "test": "1\n"})
        message = f"Correct a typo\n\nMergeyard-Pull-Request: 1\nMergeyard-Head: {first}\n"
        scenario.origin.commit("main", {"file1": "1\n"}, message=message)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        if method is MergeMethod.REBASE:
            assert await scenario.state(1) == "failed: rebase_differs"
        else:
            await scenario.passes(1)
            assert scenario.origin.files("main")["file1"] == "1\n"
            assert "test" in scenario.origin.files("main")


def lines(text: str) -> str:
    """A file with one letter on each line."""
    return "".join(f"{letter}\n" for letter in text)


@with_own_commits
@asynchronous
async def test_a_landed_head_that_causes_a_conflict_does_not_count(tmp_path: Path, method: MergeMethod):
    """Git can compare repeated lines in two ways: only with the landed head as merge base they conflict."""
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.commit("main", {"letters": lines(BEFORE)})
        await scenario.advance_time(2 * SECOND)
        scenario.open(1, files={"letters": lines(LANDED)})
        scenario.open(2, base="feature1", files={"letters": lines(HEAD)})
        await land(scenario, 1)
        scenario.origin.commit("main", {"letters": lines(PUSHED)})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(2)
        if method is MergeMethod.REBASE:
            assert await scenario.state(2) == "failed: rebase_differs"
        else:
            await scenario.passes(2)
            assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_rebase_that_reverts_what_the_target_branch_has_is_refused(tmp_path: Path):
    """One commit adds a file that the target branch has as well, the next removes it: reviewers see no change of it."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"file1": "1\n"})
        scenario.push(1, {"file1": None, "file2": "2\n"})
        scenario.origin.commit("main", {"file1": "1\n"}, message="Picked by hand")
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: rebase_differs"
        assert (await scenario.view(1)).reason.message.endswith("The two differ in file1.")
        assert scenario.origin.files("main")["file1"] == "1\n"


@asynchronous
async def test_a_rebase_that_differs_only_on_top_of_a_pull_request_ahead_waits_for_it(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"file1": "1\n"})
        scenario.open(2, files={"file1": "1\n"})
        scenario.push(2, {"file1": None, "file2": "2\n"})
        await scenario.submit(1, 2)
        assert await scenario.state(2) == "pending: conflicts_with_pr_ahead"
        await scenario.cancel(1)
        await scenario.passes(2)
        assert scenario.origin.files("main").keys() & {"file1", "file2"} == {"file2"}


@asynchronous
async def test_the_trailers_of_a_removed_commit_exclude_no_other_pull_request(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(2)
        message = f"A change\n\nMergeyard-Pull-Request: 2\nMergeyard-Head: {scenario.origin.tip('feature2')}\n"
        before = scenario.origin.tip("main")
        scenario.origin.branch("feature1", base="main", files={"file1": "1\n"}, message=message)
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), branch="feature1")
        await land(scenario, 1)
        scenario.origin.set_ref("main", before)
        await scenario.advance_time(60 * SECOND)
        await land(scenario, 2)


@with_own_commits
@asynchronous
async def test_the_commits_of_a_removed_squash_or_rebase_are_removed_as_well(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        before = scenario.origin.tip("main")
        await land(scenario, 1)
        scenario.open(3)
        await land(scenario, 3)
        scenario.origin.set_ref("main", before)
        await scenario.advance_time(60 * SECOND)
        await scenario.submit(2)
        assert await scenario.state(2) == "failed: contains_removed_commit"


@with_own_commits
@asynchronous
async def test_what_another_lane_reverts_during_a_test_lands_again_with_the_pull_request_above(
    tmp_path: Path, method: MergeMethod
):
    """The tested commits have only what came after the head that had landed. After the revert, that is not the whole
    change, although the paths of the two differ."""
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method)) as scenario:
        scenario.open(1, files={"lower": "1\n"})
        scenario.open(2, base="feature1", files={"upper": "1\n"})
        scenario.open(3)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await land(scenario, 1)
        scenario.origin.branch("feature3", base="main", files={"lower": None})
        scenario.set_pull_request(3, head=scenario.origin.tip("feature3"), branch="feature3")
        await scenario.advance_time(2 * SECOND)
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(3, impacted_targets_from_names("be"))
        await scenario.submit(2, 3)
        await scenario.passes(3)
        assert "lower" not in scenario.origin.files("main")
        await scenario.passes(2)
        assert await scenario.state(2) == "testing: waiting_for_checks"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert {"lower", "upper"} <= scenario.origin.files("main").keys()


@every_method
@asynchronous
async def test_what_another_lane_removes_during_a_test_lands_with_a_pull_request_that_adds_it_too(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method)) as scenario:
        scenario.open(1, files={"both": "1\n", "own": "1\n"})
        scenario.origin.commit("main", {"both": "1\n"}, message="Pushed by hand")
        scenario.open(2)
        scenario.set_pull_request(2, head=scenario.origin.delete("feature2", "both"))
        await scenario.advance_time(2 * SECOND)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.passes(1)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert {"both", "own"} <= scenario.origin.files("main").keys()


@asynchronous
async def test_a_rebase_that_conflicts_where_the_merge_does_not_is_refused(tmp_path: Path):
    """The author merged the target branch and resolved the conflict there: a rebase leaves that merge out."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"README": "ours\n"})
        scenario.origin.commit("main", {"README": "theirs\n"}, message="Change it too")
        main = scenario.origin.tip("main")
        head = scenario.origin.commit("feature1", {"README": "both\n"}, message="Merge main", merging=main)
        scenario.set_pull_request(1, head=head)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: rebase_differs"
        assert "README" in (await scenario.view(1)).reason.message


@asynchronous
async def test_the_trailers_of_a_stranger_below_the_target_branch_drop_no_commit_behind_another_pull_request(
    tmp_path: Path,
):
    """What stands between the target branch and the commit that is built is ours; what stands below is not."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1, files={"file1": "1\n"})
        first = scenario.origin.tip("feature1")
        scenario.push(1, {"file1": None, "test": "1\n"})
        message = f"Correct a typo\n\nMergeyard-Pull-Request: 1\nMergeyard-Head: {first}\n"
        scenario.origin.commit("main", {"file1": "1\n"}, message=message)
        scenario.open(2)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(2, 1)
        assert {"file1", "file2", "test"} <= scenario.origin.files(scenario.run_of(1).tip).keys()


@asynchronous
async def test_stacked_pull_requests_that_change_the_same_lines_are_squashed_together(tmp_path: Path):
    """Merged alone, the upper one would conflict with the squash of the lower one. The audit knows that, too."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH, concurrency=2)) as scenario:
        scenario.open(1, files={"README": "lower\n"})
        scenario.open(2, base="feature1", files={"README": "upper\n"})
        await scenario.submit(1, 2)
        assert scenario.origin.files(scenario.run_of(2).tip)["README"] == "upper\n"
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.files("main")["README"] == "upper\n"
        assert scenario.origin.log("main", "%an")[-2:] == ["Ada", "Ada"]
        report = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert report.mismatches == ()
