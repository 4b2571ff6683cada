"""Landings: the target branch moves only from the expected commit, only to the tested one, and never twice."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod, Mode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import StatusState, impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.ports.git import RefUpdate, Stale
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import (
    AFTER_UPDATE,
    LANDING_PUSH,
    TEST_BRANCH_PUSH,
    ZERO_SHA,
    PushGate,
    PushLog,
    kill_pusher_after_update,
    refuse_pushes,
    remove_hooks,
)
from tests.support.scenario import CONFIG, MINUTE, REPO, SECOND, Scenario, a_scenario

MAIN = "refs/heads/main"


@asynchronous
async def test_landing_whose_push_response_was_lost_is_found_complete(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        kill_pusher_after_update(scenario.origin, LANDING_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.origin.log("main", "%H")) == 2


@pytest.mark.long
@asynchronous
async def test_landing_whose_push_response_was_lost_is_found_when_the_host_is_reachable_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        away = scenario.folder / "away.git"
        kill_pusher_after_update(scenario.origin, LANDING_PUSH, also=f"mv {scenario.origin.path} {away}")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "tests_passed: provider_unavailable"
        away.rename(scenario.origin.path)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.subjects("main") == ["A change", "Merge pull request #1: Change 1"]


@asynchronous
async def test_landing_finished_before_a_crash_is_not_repeated(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.report_without_waiting(tested)
        await gate.wait_for_push()
        await scenario.restart()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested


@asynchronous
async def test_landing_planned_before_a_crash_is_carried_out(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.report_without_waiting(tested)
        await gate.wait_for_push()
        await scenario.service.stop()
        assert scenario.origin.tip("main") != tested
        remove_hooks(scenario.origin)
        await scenario.start()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested


@asynchronous
async def test_foreign_push_during_a_landing_is_kept_and_the_pr_is_tested_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.report_without_waiting(tested)
        await gate.wait_for_push()
        foreign = scenario.origin.commit("main", {"foreign": "f"}, message="From elsewhere")
        gate.open()
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert scenario.origin.tip("main") == foreign
        assert scenario.run_of(1).tip != tested
        await scenario.passes(1)
        assert scenario.origin.subjects("main") == ["A change", "From elsewhere", "Merge pull request #1: Change 1"]


@asynchronous
async def test_late_landing_push_changes_nothing_even_if_the_target_branch_is_back_at_its_base(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, LANDING_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        before, tested, branch = scenario.origin.tip("main"), scenario.run_of(1).tip, scenario.test_branch_of(1)
        await scenario.report_without_waiting(tested)
        await gate.wait_for_push()
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        scenario.origin.commit("main", {"foreign": "f"})
        await scenario.start()
        scenario.origin.set_ref("main", before)
        mirror = await scenario.service.repositories.open_mirror(REPO)
        late = await mirror.push(RefUpdate(MAIN, before, tested), RefUpdate(branch, tested, None))
        assert late == Stale()
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_pr_whose_landing_was_withdrawn_is_tested_again_even_if_the_target_branch_is_back(tmp_path: Path):
    """While its test branch exists, it cannot have landed: the landing push deletes the branch."""
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1)
        scenario.origin.set_ref(scenario.test_branch_of(1), scenario.origin.tip("feature1"))
        await scenario.passes(1)
        assert scenario.run_of(1).id != before.id
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_deleted_test_branch_makes_the_landing_outcome_unknown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.delete_ref(scenario.test_branch_of(1))
        await scenario.passes(1)
        assert await scenario.state(1) == "cancelled: landing_unknown"
        assert scenario.origin.tip("main") == before


@asynchronous
async def test_pr_whose_test_branch_must_not_be_moved_is_tested_again_when_its_landing_is_given_up(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        moves = f"'{tested} '*' refs/heads/mergeyard/'*"
        refuse_pushes(scenario.origin, moves, "Cannot force-push to this branch", only_if=f'[ "$new" != {ZERO_SHA} ]')
        scenario.origin.commit("main", {"foreign": "f"})
        await scenario.passes(1)
        assert scenario.run_of(1).tip != tested
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_landing_refused_by_the_host_pauses_the_queue_with_the_host_message(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        refuse_pushes(scenario.origin, LANDING_PUSH, "main is frozen: ask Ada")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert await scenario.state(1) == "tests_passed: queue_paused"
        assert "main is frozen: ask Ada" in (await scenario.view(1)).reason.message
        remove_hooks(scenario.origin)
        await scenario.update(state=QueueState.RUNNING)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_run_cancelled_while_it_is_built_does_not_keep_others_from_merging(tmp_path: Path):
    """The host does not let its branch be deleted, so the run is kept, without commits."""
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        for number, lane in ((1, "x"), (2, "y")):
            await scenario.upload_impacted_targets(number, impacted_targets_from_names(lane))
        await scenario.submit(1)
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        await scenario.submit_without_waiting(2)
        await gate.wait_for_push()
        refuse_pushes(scenario.origin, f"*' {ZERO_SHA} refs/heads/mergeyard/pr-2'*", "not deleted")
        await scenario.service.submissions.cancel(scenario.build_command(2))
        gate.open()
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_pull_requests_are_read_again_before_they_land(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        before = scenario.origin.tip("main")
        scenario.push(1, {"late": "change"})
        await scenario.passes(1)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.origin.tip("main") == before
        assert scenario.queue_text == "main ← 2…"


@asynchronous
async def test_landed_configuration_change_applies_to_the_next_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={".mergeyard.toml": CONFIG.replace('"unit"', '"unit", "lint"')})
        scenario.open(2)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.run_of(2).required_statuses == ("unit", "lint")
        await scenario.passes(2)
        assert (await scenario.view(2)).reason.message == "Waiting for required checks: lint."
        await scenario.passes(2, check="lint")
        assert await scenario.state(2) == "merged: merged_by_queue"


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_head_with_passed_checks_on_the_current_tip_merges_directly(tmp_path: Path, method: MergeMethod):
    config = Config(direct_merge_mode=DirectMergeMode.ALWAYS, merge_method=method)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        head = scenario.origin.tip("feature1")
        await scenario.report_without_waiting(head)
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.origin.tree("main") == scenario.origin.tree("feature1")
        assert scenario.test_branches() == []
        assert scenario.pull_request_meta(1)["state"] == "merged"


@asynchronous
async def test_skipped_check_of_a_head_satisfies_a_direct_merge(tmp_path: Path):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"), StatusState.SKIPPED)
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_directly"


@asynchronous
async def test_head_without_all_required_checks_is_tested(tmp_path: Path):
    config = Config(direct_merge_mode=DirectMergeMode.ALWAYS, required_statuses=("unit", "lint"))
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_head_with_another_tree_than_the_test_commit_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"))
        scenario.origin.commit("main", {"foreign": "push"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_restarted_direct_merge_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        refuse_pushes(scenario.origin, LANDING_PUSH, "main is frozen")
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert await scenario.state(1) == "tests_passed: queue_paused"
        await scenario.restart_tests(1)
        remove_hooks(scenario.origin)
        await scenario.update(state=QueueState.RUNNING)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_independent_lane_is_rebased_onto_the_moved_tip_and_lands(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        assert scenario.queue_text == "main ← 1… ∥ main ← 2…"
        await scenario.passes(1)
        tested = scenario.run_of(2)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") != tested.tip
        assert {"file1", "file2"} <= scenario.origin.files("main").keys()
        assert scenario.origin.log("main", "%P")[-1].split()[1] == scenario.origin.tip("feature2")
        assert scenario.test_branches() == []


@asynchronous
async def test_lanes_that_change_the_same_path_are_tested_again_on_top_of_each_other(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        lines = "".join(f"{number}\n" for number in range(30))
        scenario.origin.commit("main", {"shared": lines})
        await scenario.advance_time(SECOND)
        scenario.open(1, files={"shared": f"top\n{lines}"})
        scenario.open(2, files={"shared": f"{lines}bottom\n"})
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        tested = scenario.run_of(2)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "testing: waiting_for_checks"
        assert scenario.run_of(2).id != tested.id
        await scenario.passes(2)
        assert scenario.origin.files("main")["shared"] == f"top\n{lines}bottom\n"


@asynchronous
async def test_commits_that_change_a_path_and_restore_it_do_not_bring_back_what_another_lane_removed(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=MergeMethod.REBASE)) as scenario:
        scenario.origin.commit("main", {"shared": "1\n"})
        await scenario.advance_time(SECOND)
        scenario.open(1)
        scenario.set_pull_request(1, head=scenario.origin.delete("feature1", "shared"))
        scenario.open(2, files={"shared": "2\n", "file2": "2\n"})
        scenario.push(2, {"shared": "1\n"})
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "testing: waiting_for_checks"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.files("main").keys() >= {"file2"}
        assert "shared" not in scenario.origin.files("main")


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
        assert (await scenario.submission(1)).merged_sha == tested
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
        landed = [(await scenario.submission(number)).merged_sha for number in (1, 2, 3)]
        assert scenario.origin.log("main", "%H")[1:] == landed


@every_method
@asynchronous
async def test_a_chain_of_three_lands_in_one_update_that_also_deletes_the_test_branch(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        last, branch = scenario.run_of(3), scenario.test_branch_of(3)
        book = PushLog(scenario.origin)
        await scenario.passes(3)
        await scenario.passes(2)
        assert book.pushes() == []
        await scenario.passes(1)
        assert scenario.origin.tip("main") == last.tip
        moved = () if method is MergeMethod.MERGE_COMMIT else ("feature1", "feature2", "feature3")
        assert [push for push in book.pushes() if "moved refs/heads/main" in push] == [
            {f"deleted {branch}", *(f"moved refs/heads/{name}" for name in ("main", *moved))}
        ]
        assert scenario.test_branches() == []


@every_method
@asynchronous
async def test_chain_reuses_the_commits_of_the_runs_ahead_so_that_it_remains_a_fast_forward(
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
        scenario.set_pull_request(1, head=head)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert scenario.origin.subjects("main") == ["A change", "Change 1 (#1)"]
        assert scenario.origin.log("main", "%an <%ae> by %cn")[-1] == "Ada <ada@example.org> by Mergeyard"
        assert scenario.origin.log("main", "%(trailers:key=Mergeyard-Run,valueonly)")[-1].strip() == run.id
        assert len(scenario.origin.log("main", "%P")[-1].split()) == 1


@asynchronous
async def test_rebasing_keeps_commits_messages_and_authors_and_drops_merges_and_empty_ones(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        origin = scenario.origin
        origin.branch("feature1", base="main")
        origin.commit("feature1", {"one": "1"}, message="First\n\nWhy it is so.", author="Grace <grace@example.org>")
        origin.commit("feature1", {}, message="Nothing at all")
        origin.commit("main", {"meanwhile": "m"})
        origin.commit("feature1", {"meanwhile": "m"}, message="Catch up", merging="main")
        origin.commit("feature1", {"two": "2"}, message="Second")
        scenario.set_pull_request(1, head=origin.tip("feature1"), branch="feature1")
        await scenario.advance_time(1000)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert origin.subjects("main")[-3:] == ["A change", "First", "Second"]
        assert origin.log("main", "%an")[-2:] == ["Grace", "Ada"]
        assert "Why it is so." in origin.log("main", "%b")[-2]
        assert all(run.id in trailers for trailers in origin.log("main", "%(trailers)")[-2:])
        assert all(len(parents.split()) == 1 for parents in origin.log("main", "%P")[1:])


@asynchronous
async def test_merge_commit_with_own_changes_is_refused_in_a_rebase(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        origin = scenario.origin
        origin.branch("feature1", base="main", files={"one": "1"})
        origin.commit("main", {"meanwhile": "m"})
        origin.commit("feature1", {"meanwhile": "m", "one": "1 as m wants it"}, message="Catch up", merging="main")
        scenario.set_pull_request(1, head=origin.tip("feature1"), branch="feature1")
        await scenario.advance_time(1000)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: rebase_differs"
        assert (await scenario.view(1)).reason.message.endswith("The two differ in one.")
        assert "one" not in origin.files("main")


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
@asynchronous
async def test_pr_based_on_another_pr_keeps_its_partial_revert_of_that_pr(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "hello from 1\n", "one": "1"})
        scenario.open(2, base="feature1", files={"README": "hello\n", "one": "2"})
        await scenario.submit(1, 2)
        await scenario.passes(1)
        scenario.origin.commit("main", {"foreign": "push"})
        await scenario.advance_time(5000)
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
        assert scenario.pull_request_meta(1)["state"] == "merged"


@asynchronous
async def test_marking_a_pr_as_merged_twice_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        refs = scenario.origin.refs()
        await mark_merged_again(scenario, 1)
        assert scenario.origin.refs() == refs


@asynchronous
async def test_only_the_target_branch_test_branches_and_pr_metadata_are_written(tmp_path: Path):
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
    submission = await scenario.submission(number)
    assert submission.merged_sha
    host = scenario.service.repositories.get_host(REPO.host)
    await host.mark_merged(REPO, PullRequestNumber(number), submission.pull_request.head, submission.merged_sha)


# Head branches.


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
@asynchronous
async def test_one_push_moves_the_target_branch_and_every_head_branch(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.origin.install_hook("pre-receive", f"cat >> {tmp_path}/pushes; echo . >> {tmp_path}/pushes")
        await scenario.passes(1, 2)
        tip = scenario.origin.tip("main")
        assert scenario.origin.tip("feature2") == tip
        assert scenario.origin.tip("feature1") == scenario.origin.log("main", "%P")[-1]
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert [scenario.pull_request_meta(number)["state"] for number in (1, 2)] == ["merged"] * 2
        (landing,) = [push for push in (tmp_path / "pushes").read_text().split(".\n") if "refs/heads/main" in push]
        assert {line.split()[2] for line in landing.splitlines()} > {"refs/heads/feature1", "refs/heads/feature2"}


@asynchronous
async def test_a_push_of_the_author_in_the_moment_of_the_landing_makes_all_of_it_fail(tmp_path: Path):
    """A hook pushes for the author after the service has compared everything and before any ref moves."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.origin.tip("main")
        newer = scenario.origin.branch("newer", base="feature1", files={"more": "more"})
        update = f"env -u GIT_QUARANTINE_PATH git update-ref refs/heads/feature1 {newer}"
        scenario.origin.install_hook("pre-receive", f"grep -q refs/heads/main && {update}; exit 0")
        await scenario.passes(1)
        assert scenario.origin.tip("main") == before
        assert scenario.origin.tip("feature1") == newer


@asynchronous
async def test_a_head_branch_that_was_deleted_is_not_created_again(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.delete_ref("feature1")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.ref("feature1") is None
