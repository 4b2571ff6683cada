"""What lands is what was tested, whether Mergeyard pushes it or the forge merges it; drafts show test branches."""

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.states import QueueState
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S
from tests.support.forges.faults import ALWAYS, ActsFirst, LosesResponse, RespondsWith
from tests.support.scenario import MINUTE, SECOND

every_method = pytest.mark.parametrize("method", [MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH])


def by_forge(method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Config:
    return Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=method)


@pytest.mark.long
@asynchronous
async def test_three_passed_prs_land_in_one_push_and_are_shown_as_merged(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        tested = scenario.run_of(3).tip
        for number in (3, 2, 1):
            await scenario.passes(number)
        assert scenario.origin.tip("main") == tested
        assert all(scenario.forge.is_merged(number) for number in (1, 2, 3))


@every_method
@asynchronous
async def test_the_forge_merges_what_was_tested(forge_scenario: StartScenario, method: MergeMethod):
    async with forge_scenario(by_forge(method)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        tree = scenario.origin.tree(scenario.run_of(2).tip)
        await scenario.passes(2)
        await scenario.passes(1)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.tree("main") == tree
        assert all(scenario.forge.is_merged(number) for number in (1, 2))
        assert scenario.test_branches() == []
        assert (await scenario.service.merge_auditor.audit_on_request(scenario.queue_actor.key, 20)).mismatches == ()


@pytest.mark.long
@asynchronous
async def test_push_between_the_last_read_and_the_merge_is_noticed_and_pauses_the_queue(forge_scenario: StartScenario):
    async with forge_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        foreign = ActsFirst(lambda: scenario.origin.commit("main", {"foreign": "f"}))
        scenario.forge.faults.plan(foreign, scenario.forge.paths.merge)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert "tree_mismatch" in scenario.status_comment(1)
        assert not scenario.forge.is_merged(2)


@asynchronous
async def test_after_a_lost_response_no_pr_is_merged_on_an_untested_commit(github_scenario: StartScenario):
    async with github_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        foreign = ActsFirst(lambda: scenario.origin.commit("main", {"foreign": "f"}), LosesResponse())
        scenario.forge.faults.plan(foreign, scenario.forge.paths.merge)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert not scenario.forge.is_merged(2)


@pytest.mark.long
@asynchronous
async def test_after_a_lost_response_a_merge_on_a_rewound_target_branch_is_recognized(
    github_scenario: StartScenario,
):
    async with github_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        before = scenario.origin.tip("main")
        undone = ActsFirst(lambda: scenario.origin.set_ref("main", before), LosesResponse())
        scenario.forge.faults.plan(undone, "/pulls/2/merge", method="PUT")
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: tree_mismatch"] * 2
        assert scenario.queue_actor.queue.state is QueueState.PAUSED


@pytest.mark.long
@asynchronous
async def test_commit_removed_during_the_merge_that_comes_back_with_the_head_pauses_the_queue(
    github_scenario: StartScenario,
):
    async with github_scenario(by_forge()) as scenario:
        before = scenario.origin.tip("main")
        scenario.forge.push_to_main({"foreign": "f"})
        scenario.open(1)
        await scenario.submit(1)
        undone = ActsFirst(lambda: scenario.origin.set_ref("main", before))
        scenario.forge.faults.plan(undone, scenario.forge.paths.merge)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: tree_mismatch"
        assert scenario.queue_actor.queue.state is QueueState.PAUSED


@pytest.mark.long
@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_pr_merged_by_the_forge_and_removed_by_hand_does_not_come_back(
    github_scenario: StartScenario, method: MergeMethod
):
    async with github_scenario(by_forge(method), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        clean = scenario.origin.tip("main")
        scenario.open(1, files={"secret": "leaked"})
        scenario.open(2, base="feature1")
        await scenario.submit(1)
        await scenario.passes(1)
        scenario.origin.set_ref("main", clean)
        await scenario.advance_one_minute()
        await scenario.submit(2)
        assert await scenario.state(2) == "failed: contains_removed_commit"


@pytest.mark.long
@asynchronous
async def test_pr_is_tested_again_after_a_push_to_the_target_branch_before_the_merge(forge_scenario: StartScenario):
    async with forge_scenario(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1).id
        foreign = scenario.forge.push_to_main({"foreign": "f"})
        await scenario.advance_one_second()
        assert scenario.run_of(1).id != before
        assert scenario.run_of(1).base == foreign
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_status_is_reset_when_the_merge_does_not_happen(forge_scenario: StartScenario):
    """Where this status is required, any user with write access could otherwise merge the pull request by hand."""
    async with forge_scenario(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        down = ActsFirst(lambda: scenario.forge.push_to_main({"foreign": "f"}), RespondsWith(502))
        scenario.forge.faults.plan(down, scenario.forge.paths.merge)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert scenario.run_of(1).base == scenario.origin.tip("main")
        assert scenario.commit_status(1).state == "pending"


@asynchronous
async def test_a_foreign_commit_with_the_trailers_of_a_merge_stops_no_queue(github_scenario: StartScenario):
    async with github_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        message = scenario.origin.run("log", "-1", "--format=%B", scenario.run_of(1).tip).decode()
        forged = ActsFirst(lambda: scenario.origin.commit("main", {"foreign": "f"}, message=message), RespondsWith(502))
        scenario.forge.faults.plan(forged, scenario.forge.paths.merge)
        await scenario.passes(1)
        await scenario.advance_time(2 * MINUTE)
        assert scenario.run_of(1).base == scenario.origin.tip("main")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_merge_whose_response_was_lost_is_found_and_not_repeated(forge_scenario: StartScenario):
    async with forge_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.merge)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.landed_subjects()) == 1


@pytest.mark.long
@asynchronous
async def test_outage_after_a_merge_does_not_count_towards_the_wait_for_the_target_branch(
    forge_scenario: StartScenario,
):
    async with forge_scenario(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.origin.tip("main")
        scenario.forge.faults.plan(ActsFirst(scenario.fail_all_requests, LosesResponse()), scenario.forge.paths.merge)
        await scenario.passes(1)
        merged = scenario.origin.tip("main")
        scenario.origin.set_ref("main", before)
        await scenario.advance_time(90 * SECOND)
        scenario.forge.faults.clear()
        await scenario.advance_time(20 * SECOND)
        scenario.origin.set_ref("main", merged)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_push_whose_response_was_lost_is_found_and_not_repeated(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.push)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_push_to_the_head_just_before_the_merge_merges_nothing(forge_scenario: StartScenario):
    """The merge request names the expected head, so the forge refuses another one."""
    async with forge_scenario(by_forge()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        untested = ActsFirst(lambda: scenario.forge.push(1, {"evil": "yes"}))
        scenario.forge.faults.plan(untested, scenario.forge.paths.merge)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert "evil" not in scenario.origin.files("main")
        assert not scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_forced_pr_that_the_forge_cannot_merge_fails_and_blocks_no_other(github_scenario: StartScenario):
    """After the squash of the pull request ahead, git can merge it but the forge cannot."""
    async with github_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        scenario.open(1, files={"shared": "1\n"})
        scenario.open(2, base="feature1", files={"shared": "2\n"})
        scenario.open(3)
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.submit(2, forced=True)
        await scenario.submit(3)
        await scenario.passes(3)
        await scenario.passes(2)
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(2) == "failed: merge_refused"
        await scenario.passes(3)
        assert await scenario.state(3) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_pr_merged_by_hand_is_recorded_as_merged(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.forge.merge_by_hand(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "merged: merged_manually"
        assert scenario.queue_text == "main ← 2…"


# Draft pull requests for test branches


@pytest.mark.long
@asynchronous
async def test_test_branches_have_a_draft_while_they_are_tested(forge_scenario: StartScenario):
    """The draft is closed before its commit is on the target branch: otherwise the forge shows it as merged."""
    async with forge_scenario(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        branch = scenario.test_branch_of(1).removeprefix("refs/heads/")
        assert scenario.forge.drafts() == {branch: True}
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)
        assert scenario.forge.drafts() == {branch: False}
        assert not scenario.forge.is_merged(2)


@pytest.mark.long
@asynchronous
async def test_a_pr_that_the_forge_never_merges_fails_with_its_message_and_blocks_no_other(
    github_scenario: StartScenario,
):
    async with github_scenario(by_forge()) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        refuses = RespondsWith(405, body=b'{"message": "The moon is wrong"}')
        scenario.forge.faults.plan(refuses, "/pulls/1/merge", times=ALWAYS)
        await scenario.passes(2)
        await scenario.passes(1)
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "failed: merge_refused"
        assert "The moon is wrong" in (await scenario.view(1)).reason.message
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_drafts_of_all_runs_whose_commits_are_merged_are_closed_before(github_scenario: StartScenario):
    """Also that of the first pull request, which the push for the second one merges."""
    async with github_scenario(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.passes(1)
        assert [scenario.forge.is_merged(number) for number in (1, 2, 3, 4)] == [True, True, False, False]


@asynchronous
async def test_a_draft_that_the_forge_refuses_pauses_the_queue_with_its_message(forge_scenario: StartScenario):
    """Without it, CI that runs for pull requests never starts, and the run would wait until its timeout."""
    async with forge_scenario(Config(create_prs_for_testing_branches=True)) as scenario:
        refuses = RespondsWith(403, body=b'{"message": "Resource not accessible"}')
        scenario.forge.faults.plan(refuses, scenario.forge.paths.drafts, method="POST", times=ALWAYS)
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert "Resource not accessible" in scenario.queue_actor.queue.state_reason
        scenario.forge.faults.clear()
        await scenario.update(state=QueueState.RUNNING)
        assert list(scenario.forge.drafts().values()) == [True]
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_draft_of_a_failed_run_is_closed(forge_scenario: StartScenario):
    async with forge_scenario(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert set(scenario.forge.drafts().values()) == {False}


@pytest.mark.long
@asynchronous
async def test_draft_of_a_test_branch_is_never_queued(forge_scenario: StartScenario):
    async with forge_scenario(Config(create_prs_for_testing_branches=True), poll_seconds=20) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.label(2)
        await scenario.comment(2, "/merge")
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        assert scenario.forge.comments(2)[1:] == []


@pytest.mark.long
@asynchronous
async def test_draft_whose_response_was_lost_is_not_opened_twice(forge_scenario: StartScenario):
    async with forge_scenario(Config(create_prs_for_testing_branches=True)) as scenario:
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.drafts, method="POST")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        assert list(scenario.forge.drafts().values()) == [True]
