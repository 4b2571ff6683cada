"""The poller notices changes at the host within two seconds, without webhooks."""

from functools import partial
from pathlib import Path

import pytest

from mergeyard.domain.config import Config, MergeMethod, Mode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.ports.forge import PullRequestNotice
from mergeyard.service.errors import Code, RequestRefused
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, SECOND, Scenario, a_scenario

TWO_SECONDS = 2 * SECOND


@asynchronous
async def test_push_removes_the_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.push(1, {"more": "m"})
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.queue_text == "main ← 2…"
        assert scenario.test_branches() == [scenario.test_branch_of(2)]


async def push_and_notify(scenario: Scenario) -> None:
    scenario.push(1, {"more": "m"})
    scenario.service.forge_events.dispatch([PullRequestNotice(REPO, PullRequestNumber(1))])
    await scenario.wait_until_idle()


@asynchronous
async def test_forge_notice_during_a_submission_is_not_lost(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        scenario.store.before_targets_read = partial(push_and_notify, scenario)
        await scenario.submit(1)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_push_during_a_submission_is_applied_as_soon_as_it_can_be_stored(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)

        async def push_before_the_store_fails() -> None:
            await push_and_notify(scenario)
            scenario.store.commits_before_failure = scenario.store.failing_commits = 1

        scenario.store.before_targets_read = push_before_the_store_fails
        await scenario.submit(1)
        await scenario.advance_time(2 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_targets_uploaded_during_a_submission_are_not_lost(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)

        async def upload_impacted_targets() -> None:
            await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))

        scenario.store.after_targets_read = upload_impacted_targets
        await scenario.submit(1)
        assert (await scenario.submission(1)).impacted_targets == impacted_targets_from_names("fe")


@asynchronous
async def test_push_to_a_pr_that_is_not_ready_updates_its_head(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        scenario.push(1, {"more": "m"})
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "not_ready: draft"
        assert (await scenario.submission(1)).pull_request.head == scenario.origin.tip("feature1")


@asynchronous
async def test_push_to_a_pinned_pr_removes_it_even_before_it_is_ready(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1, head=scenario.origin.tip("feature1"))
        scenario.push(1, {"more": "m"})
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_closing_removes_a_pr_and_after_reopening_it_can_be_submitted_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull_request(1, state="closed")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_closed"
        with pytest.raises(RequestRefused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_CLOSED
        scenario.set_pull_request(1, state="open")
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_pr_that_no_longer_exists_at_the_host_is_closed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.delete_ref("refs/pull/1/head")
        scenario.origin.delete_ref("refs/pull/1/meta")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_draft_waits_until_it_is_ready_and_is_removed_when_converted_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: draft"
        scenario.set_pull_request(1, draft=False)
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1…"
        scenario.set_pull_request(1, draft=True)
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_converted_to_draft"


@asynchronous
async def test_changing_the_base_branch_removes_the_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull_request(1, base="stable")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_base_changed"


@asynchronous
async def test_pr_with_another_base_branch_is_admitted_when_its_base_is_changed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, base="stable")
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: base_branch_mismatch"
        scenario.set_pull_request(1, base="main")
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_new_title_is_shown_and_the_run_continues(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        scenario.set_pull_request(1, title="A better name")
        await scenario.advance_time(TWO_SECONDS)
        assert (await scenario.submission(1)).pull_request.title == "A better name"
        assert scenario.run_of(1) == run


@asynchronous
async def test_pr_merged_by_hand_is_recorded_as_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.origin.commit("main", {"file1": "1\n"}, merging="feature1")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "merged: merged_manually"
        assert scenario.queue_text == "main ← 2…"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_pr_that_the_host_shows_as_merged_is_recorded_as_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull_request(1, state="merged")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "merged: merged_manually"


@asynchronous
async def test_foreign_push_to_the_target_branch_fails_no_pr_and_all_are_tested_again_on_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        stale = [run.tip for run in scenario.runs()]
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1… ← 2…"
        assert scenario.run_of(1).base == foreign
        assert not {run.tip for run in scenario.runs()} & set(stale)
        assert len(scenario.test_branches()) == 2


@asynchronous
async def test_status_on_a_run_with_an_outdated_base_is_ignored(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        stale = scenario.run_of(1).tip
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.advance_time(TWO_SECONDS)
        await scenario.report_without_waiting(stale)
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert scenario.origin.tip("main") == foreign


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_commit_removed_from_the_target_branch_does_not_come_back(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.advance_time(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.set_ref("main", clean)
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"
        assert "secret" not in scenario.origin.files("main")


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_removed_pr_does_not_come_back_with_another_pr(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        clean = scenario.origin.tip("main")
        scenario.open(1, files={"secret": "leaked"})
        scenario.open(2, 3, base="feature1")
        await scenario.submit(1)
        await scenario.passes(1)
        landed = scenario.origin.tip("main")
        scenario.origin.set_ref("main", clean)
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(2)
        assert await scenario.state(2) == "failed: contains_removed_commit"
        assert "secret" not in scenario.origin.files("main")
        scenario.origin.set_ref("main", landed)
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(3)
        assert scenario.queue_text == "main ← 3…"


@asynchronous
async def test_commit_removed_by_recreating_the_target_branch_does_not_come_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.advance_time(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.delete_ref("main")
        await scenario.advance_time(TWO_SECONDS)
        scenario.origin.set_ref("main", clean)
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@asynchronous
async def test_rewind_during_tests_fails_the_pr_that_contains_the_removed_commit(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        scenario.origin.commit("main", {"secret": "leaked"})
        await scenario.advance_time(TWO_SECONDS)
        scenario.open(1)
        scenario.open(2, base=clean)
        await scenario.submit(1, 2)
        scenario.origin.set_ref("main", clean)
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "failed: contains_removed_commit"
        assert scenario.queue_text == "main ← 2…"
        await scenario.passes(2)
        assert "secret" not in scenario.origin.files("main")


@asynchronous
async def test_restored_commit_of_the_target_branch_is_accepted_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        clean = scenario.origin.tip("main")
        later = scenario.origin.commit("main", {"fine": "after all"})
        await scenario.advance_time(TWO_SECONDS)
        scenario.open(1)
        scenario.origin.set_ref("main", clean)
        await scenario.advance_time(TWO_SECONDS)
        scenario.origin.set_ref("main", later)
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_work_continues_when_a_deleted_target_branch_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.origin.tip("main")
        scenario.origin.delete_ref("main")
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "pending: target_branch_missing"
        scenario.origin.set_ref("main", tip)
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_unmergeable_pr_is_admitted_after_a_foreign_push_resolves_the_conflict(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.advance_time(TWO_SECONDS)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: not_mergeable"
        scenario.origin.commit("main", {"README": "hello\n"})
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_unmergeable_pr_is_admitted_after_a_landing_resolves_the_conflict(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.advance_time(TWO_SECONDS)
        scenario.open(2, files={"README": "hello\n"})
        await scenario.submit(1, 2)
        assert scenario.queue_text == "main ← 2…"
        await scenario.passes(2)
        await scenario.advance_time(TWO_SECONDS)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_changes_during_downtime_are_noticed_at_start(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.service.stop()
        scenario.push(1, {"more": "m"})
        scenario.set_pull_request(2, state="closed")
        foreign = scenario.origin.commit("main", {"foreign": "f"})
        await scenario.start()
        await scenario.advance_time(TWO_SECONDS)
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert await scenario.state(2) == "cancelled: pr_closed"
        assert scenario.run_of(3).base == foreign


@asynchronous
async def test_a_pr_is_known_as_merged_when_another_one_that_has_its_commits_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        await scenario.submit(2)
        await scenario.submit(1)
        await scenario.passes(2)
        assert await scenario.state(1) == "merged: merged_with_another"
