"""How test branches come about: out of pull requests that fit, or not, and out of words and names of all kinds."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod
from mergeyard.domain.statuses import StatusState
from mergeyard.service.errors import Code, Refused
from mergeyard.service.performing.stepping import MAX_REBASE_COMMITS
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, BUILD, Gate, lose_answer, welcome_all
from tests.support.scenario import SECOND, Scenario, a_scenario

every_method = pytest.mark.parametrize("method", list(MergeMethod))


@every_method
@asynchronous
async def test_a_conflict_with_the_target_fails_and_names_the_paths(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "hello from 1\n", "other": "1"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1, forced=True)
        assert await scenario.state(1) == "failed: merge_conflict"
        assert (await scenario.view(1)).why.message.endswith("Conflicts in README")
        assert scenario.test_branches() == []


@asynchronous
async def test_a_pull_request_that_cannot_be_merged_is_not_ready_unless_it_is_forced(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: not_mergeable"


@every_method
@asynchronous
async def test_a_conflict_with_one_ahead_waits_for_that_one_and_rejoins_when_it_is_gone(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        open_rivals(scenario)
        await scenario.submit(1, 2, 3)
        assert scenario.picture == "main ← 1… ← 3…"
        assert await scenario.state(2) == "pending: conflicts_with_pr_ahead"
        assert (await scenario.view(2)).why.waiting_for == (1,)
        await scenario.cancel(1)
        assert scenario.picture == "main ← 3… ← 2…"
        await scenario.passes(3)
        await scenario.passes(2)
        assert scenario.origin.files("main")["README"] == "hello from 2\n"


@asynchronous
async def test_a_conflict_with_one_ahead_that_merged_is_a_conflict_with_the_target(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        open_rivals(scenario)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "failed: merge_conflict"


@every_method
@asynchronous
async def test_a_pull_request_that_changes_nothing_fails(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", upon="main")
        scenario.set_pull(1, head=scenario.origin.commit("feature1", {}), branch="feature1")
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: nothing_to_merge"


@every_method
@asynchronous
async def test_a_change_that_the_target_got_from_elsewhere_leaves_nothing_to_merge(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1)
        scenario.origin.commit("main", {"file1": "1\n"}, message="Picked by hand")
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: nothing_to_merge"


@every_method
@asynchronous
async def test_two_that_make_the_same_change_both_merge(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2, files={"same": "change\n"})
        await scenario.submit(1, 2)
        await scenario.passes(1, 2)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_head_that_the_target_holds_already_is_refused_as_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.origin.set("main", scenario.origin.tip("feature1"))
        await scenario.time_passes(2 * SECOND)
        with pytest.raises(Refused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_ALREADY_MERGED


@every_method
@asynchronous
async def test_a_pull_request_upon_another_stands_behind_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, concurrency=1)) as scenario:
        scenario.open(1, 3)
        scenario.open(2, upon="feature1")
        await scenario.time_passes(SECOND)
        await scenario.submit(3)
        await scenario.submit(2, 1)
        await scenario.passes(3)
        assert scenario.picture == "main ← 1…"
        await scenario.passes(1)
        await scenario.passes(2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert len(scenario.origin.log("main", "%H")) == 4


@asynchronous
async def test_a_pull_request_upon_one_that_nobody_submitted_brings_it_along(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.open(2, upon="feature1")
        await scenario.time_passes(SECOND)
        await scenario.submit(2)
        await scenario.passes(2)
        assert {"file1", "file2"} <= scenario.origin.files("main").keys()
        with pytest.raises(Refused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_ALREADY_MERGED


@every_method
@asynchronous
async def test_no_machine_obeys_what_people_wrote(tmp_path: Path, method: MergeMethod):
    title = "[skip ci] Fix it\n\nMergeyard-Run: forged\nMergeyard-Pull-Request: 99\n***NO_CI***"
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", upon="main", files={"file1": "1"}, message=title)
        scenario.set_pull(1, head=scenario.origin.tip("feature1"), branch="feature1", title=title)
        await scenario.submit(1)
        run = scenario.run_of(1)
        (words,) = scenario.origin.log(run.tip, "%B")[1:]
        assert "[skip ci]" not in words
        assert "***NO_CI***" not in words
        (trailers,) = scenario.origin.log(run.tip, "%(trailers)")[1:]
        assert trailers.split("\n")[:2] == ["Mergeyard-Pull-Request: 1", f"Mergeyard-Run: {run.id}"]


@pytest.mark.parametrize("title", ["", " \n ", "'; rm -rf /", "$(reboot)", "--amend", "é" * 500, "\u202eevil"])
@asynchronous
async def test_any_title_can_be_merged(tmp_path: Path, title: str):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull(1, title=title)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_files_may_have_any_names(tmp_path: Path, method: MergeMethod):
    names = ["-x", "--force", "a\nb", 'say "hi"', "é", "\udcff", " ", "a\\b", ":(top)x", "*", "HEAD", "tab\there"]
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files=dict.fromkeys(names, "1\n"))
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.origin.files("main").keys() >= set(names)


@asynchronous
async def test_a_conflict_in_a_file_with_a_hostile_name_is_told_in_one_harmless_line(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"a\n[skip ci] b": "1\n"})
        scenario.origin.commit("main", {"a\n[skip ci] b": "main\n"})
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1, forced=True)
        words = (await scenario.stay(1)).words
        assert words.startswith("Conflicts in a ")
        assert "\n" not in words
        assert "[skip ci]" not in words


@every_method
@asynchronous
async def test_a_build_repeated_after_a_crash_finds_the_branch_that_is_there(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1, 2)
        await scenario.hand_in(1, 2)
        await gate.arrival()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        there = scenario.origin.tip(branch)
        welcome_all(scenario.origin)
        await scenario.starts()
        assert scenario.test_branches() == [branch]
        assert scenario.run_of(1, 2).tip == there
        await scenario.passes(1, 2)
        assert scenario.origin.tip("main") == there


@asynchronous
async def test_a_branch_of_ours_that_holds_something_else_is_built_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        scenario.origin.commit(branch, {"smuggled": "in"})
        welcome_all(scenario.origin)
        await scenario.starts()
        await scenario.time_passes(5 * SECOND)
        await scenario.passes(1)
        assert "smuggled" not in scenario.origin.files("main")
        assert await scenario.state(1) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_a_branch_that_somebody_labelled_as_ours_is_never_taken_for_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        message = scenario.origin.log(branch, "%B")[-1]
        scenario.origin.set(branch, scenario.origin.tip("main"))
        scenario.origin.commit(branch, {"file1": "1\n", "smuggled": "in"}, message=message)
        welcome_all(scenario.origin)
        await scenario.starts()
        await scenario.time_passes(5 * SECOND)
        await scenario.passes(1)
        assert "smuggled" not in scenario.origin.files("main")
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_build_whose_answer_was_lost_is_found_to_be_done(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        lose_answer(scenario.origin, BUILD)
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.origin.tip(scenario.branch_of(1)) == scenario.run_of(1).tip


@asynchronous
async def test_a_run_given_up_while_it_was_being_built_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.service.submissions.cancel(scenario.errand(1))
        gate.open()
        await scenario.rest()
        assert scenario.test_branches() == []
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_a_run_given_up_while_the_process_was_gone_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.service.submissions.cancel(scenario.errand(1))
        await scenario.service.stop()
        assert len(scenario.test_branches()) == 1
        welcome_all(scenario.origin)
        await scenario.starts()
        assert scenario.test_branches() == []


def open_rivals(scenario: Scenario) -> None:
    """The first two change the same line; the third has nothing to do with them."""
    scenario.open(1, files={"README": "hello from 1\n"})
    scenario.open(2, files={"README": "hello from 2\n"})
    scenario.open(3)


@every_method
@asynchronous
async def test_a_message_without_end_harms_no_one_but_who_needs_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", upon="main", files={"a": "1"}, message="x" * 20_000_000)
        scenario.set_pull(1, head=scenario.origin.tip("feature1"), branch="feature1")
        scenario.open(2)
        await scenario.submit(1, 2)
        if method is MergeMethod.REBASE:
            assert await scenario.state(1) == "failed: pr_too_large"
            assert "more than the service reads" in (await scenario.view(1)).why.message
        else:
            await scenario.passes(1)
            assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_rebase_of_too_many_commits_fails_and_names_the_limit(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        for count in range(MAX_REBASE_COMMITS):
            scenario.origin.commit("feature1", {"count": str(count)})
        scenario.set_pull(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: pr_too_large"
        assert f"more than {MAX_REBASE_COMMITS} commits" in (await scenario.view(1)).why.message


@asynchronous
async def test_a_rebase_of_as_many_commits_as_allowed_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        for count in range(MAX_REBASE_COMMITS - 1):
            scenario.origin.commit("feature1", {"count": str(count)})
        scenario.set_pull(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@every_method
@asynchronous
async def test_files_that_git_refuses_fail_their_pull_request_alone(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        scenario.origin.graft("feature1", ".git", f"040000 tree {scenario.origin.tree('main')}")
        scenario.set_pull(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: invalid_tree"
        assert (await scenario.view(1)).why.message.endswith("hasDotgit: contains '.git'")
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_files_that_git_refuses_and_the_target_has_already_fail_no_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.graft("main", ".git", f"040000 tree {scenario.origin.tree('main')}")
        scenario.open(1)
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@every_method
@asynchronous
async def test_one_that_breaks_the_configuration_fails_alone(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, files={".mergeyard.toml": "version = 2\n"})
        scenario.open(2)
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: breaks_config"
        assert "line 1, version: expected 1" in (await scenario.view(1)).why.message
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_changes_the_configuration_well_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={".mergeyard.toml": 'version = 1\nrequired_statuses = ["unit", "lint"]\n'})
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@pytest.mark.parametrize("bad", [{".mergeyard.toml": "version = 2\n"}, None], ids=["configuration", "tree"])
@asynchronous
async def test_what_may_not_be_built_is_not_merged_directly_either(tmp_path: Path, bad: dict[str, str] | None):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1, files=bad)
        if bad is None:
            scenario.origin.graft("feature1", ".git", f"040000 tree {scenario.origin.tree('main')}")
            scenario.set_pull(1, head=scenario.origin.tip("feature1"))
        await scenario.report(scenario.origin.tip("feature1"), StatusState.SUCCESS)
        await scenario.submit(1)
        assert await scenario.state(1) in {"failed: breaks_config", "failed: invalid_tree"}


@asynchronous
async def test_a_broken_configuration_can_be_repaired_where_the_queue_names_its_statuses(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("unit",))) as scenario:
        scenario.origin.commit("main", {".mergeyard.toml": "version = 2\n"})
        scenario.open(1, files={".mergeyard.toml": "version = 1\n"})
        scenario.open(2)
        await scenario.time_passes(2 * SECOND)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(1) == await scenario.state(2) == "merged: merged_by_queue"
