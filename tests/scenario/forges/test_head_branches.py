"""Squashed and rebased pull requests are merged with the tested commit, and the Git host shows them as merged."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config, HeadBranchFallback, MergeMethod
from mergeyard.domain.ids import QueueKey
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.git import Pushed, RefUpdate
from mergeyard.service.submissions import SubmitOptions
from tests.scenario.forges.conftest import StartScenario
from tests.scenario.forges.test_github_rules import require_approval
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import MAINTAINER
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_drivers.registry import FORGE_DRIVERS
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario, a_forge_scenario
from tests.support.forges.faults import ALWAYS, ActsFirst, Fault, LosesResponse, RespondsWith
from tests.support.forges.github.rulesets import required_checks_rule
from tests.support.scenario import KEY, MINUTE

RELEASE = QueueKey(KEY.repo, "release")
METHODS = (MergeMethod.SQUASH, MergeMethod.REBASE)


@pytest.fixture(params=["github", pytest.param("gitlab", marks=pytest.mark.long)])
def scenario_by_head(request: pytest.FixtureRequest, tmp_path: Path) -> StartScenario:
    """At those that show a pull request as merged by its head, if they see the head before the target branch."""
    return partial(a_forge_scenario, tmp_path, FORGE_DRIVERS[request.param])


def squash(**settings: Any) -> Config:
    return Config(merge_method=MergeMethod.SQUASH, **settings)


def plan_at_push(scenario: ForgeScenario, *faults: Fault) -> None:
    """One fault for each of the next pushes: that of the head, then that of the target branch, then others."""
    for fault in faults:
        scenario.forge.faults.plan(fault, scenario.forge.paths.push)


def act(action: Callable[[], object]) -> ActsFirst:
    return ActsFirst(action)


NOTHING = act(lambda: None)


@pytest.mark.parametrize("method", METHODS)
@asynchronous
async def test_the_tested_commit_lands_and_the_pull_request_is_shown_as_merged(
    scenario_by_head: StartScenario, method: MergeMethod
):
    config = Config(merge_method=method, batch=True, batching_min_size=2, head_branch_fallback=HeadBranchFallback.CLOSE)
    async with scenario_by_head(config) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        tested, head = scenario.run_of(1, 2).tip, scenario.forge.head(2)
        await scenario.passes(1, 2)
        assert scenario.origin.tip("main") == tested == scenario.origin.tip("feature2")
        assert scenario.origin.tip("feature1") == scenario.origin.log("main", "%P")[-1]
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert all(scenario.forge.is_merged(number) for number in (1, 2))
        await scenario.advance_time(MINUTE)
        bodies = [comment.text for comment in scenario.forge.comments(2)]
        assert any(f"Commit: {tested}" in body and f"The reviewed head was {head}" in body for body in bodies)
        audit = await scenario.service.merge_auditor.audit_on_request(scenario.queue_actor.key, 20)
        assert (audit.mismatches, {landing.form.value for landing in audit.landings}) == ((), {"tested_commit"})


@pytest.mark.long
@asynchronous
async def test_a_push_of_the_author_before_the_head_is_moved_cancels_and_is_kept(scenario_by_head: StartScenario):
    async with scenario_by_head(squash()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.origin.tip("main")
        plan_at_push(scenario, act(lambda: scenario.push(1, {"more": "more"})))
        await scenario.passes(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.origin.tip("main") == before
        assert scenario.origin.files("feature1")["more"] == "more"
        assert scenario.forge.is_open(1)


@pytest.mark.long
@asynchronous
async def test_a_forced_push_after_the_head_was_moved_is_kept(scenario_by_head: StartScenario):
    """git rejects other pushes then."""
    async with scenario_by_head(squash()) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        head = scenario.forge.head(1)

        def push_by_force() -> None:
            scenario.origin.set_ref("feature1", head)
            scenario.push(1, {"more": "more"})

        before, faults = scenario.origin.tip("main"), scenario.forge.faults
        plan_at_push(scenario, act(lambda: faults.plan(act(push_by_force), r"/git-upload-pack$")))
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.origin.files("feature1")["more"] == "more"
        assert scenario.origin.tip("main") == before


@pytest.mark.long
@asynchronous
async def test_a_head_is_moved_back_if_the_target_branch_moved_meanwhile(scenario_by_head: StartScenario):
    async with scenario_by_head(squash(), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        head = scenario.forge.head(1)
        plan_at_push(scenario, NOTHING, act(lambda: scenario.forge.push_to_main({"foreign": "f"})))
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert scenario.origin.tip("feature1") == head
        assert (await scenario.view(1)).submission.pull_request.head == head
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.forge.is_merged(1)
        assert scenario.origin.tip("feature1") == scenario.origin.tip("main")


@pytest.mark.long
@asynchronous
async def test_a_push_of_ours_that_arrives_late_is_undone_and_is_no_push_of_the_author(scenario_by_head: StartScenario):
    """The process that pushed was killed, but not its git."""
    async with scenario_by_head(squash(), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        head, tested = scenario.forge.head(1), scenario.run_of(1).tip
        plan_at_push(scenario, NOTHING, act(lambda: scenario.forge.push_to_main({"foreign": "f"})))
        await scenario.passes(1)
        await scenario.advance_time(3 * MINUTE)
        assert scenario.origin.tip("feature1") == head
        mirror = await scenario.service.repositories.open_mirror(KEY.repo)
        assert await mirror.push(RefUpdate("refs/heads/feature1", head, tested)) == Pushed()
        await scenario.advance_time(3 * MINUTE)
        assert scenario.origin.tip("feature1") == head
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@pytest.mark.parametrize(
    "faults",
    [
        [RespondsWith(503)],
        [LosesResponse()],
        [NOTHING, RespondsWith(503)],
        [NOTHING, LosesResponse()],
    ],
    ids=["before the head", "after the head", "before the target", "after the target"],
)
@asynchronous
async def test_after_a_crash_the_landing_is_finished_and_our_own_move_is_no_push(
    scenario_by_head: StartScenario, faults: list[Fault]
):
    async with scenario_by_head(squash(), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        plan_at_push(scenario, *faults)
        await scenario.passes(1)
        await scenario.restart()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested == scenario.origin.tip("feature1")
        assert scenario.forge.is_merged(1)


@pytest.mark.parametrize("before", [MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT], ids=["from squash", "to squash"])
@asynchronous
async def test_pull_requests_of_before_a_change_of_the_merge_method_merge_their_tested_commit(
    scenario_by_head: StartScenario, before: MergeMethod
):
    """Of merge commits nothing about head branches is known. A run in progress keeps its method."""
    after = MergeMethod.SQUASH if before is MergeMethod.MERGE_COMMIT else MergeMethod.MERGE_COMMIT
    async with scenario_by_head(Config(merge_method=before)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(merge_method=after)
        if before is MergeMethod.MERGE_COMMIT:
            await scenario.restart_tests(1)
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested == scenario.origin.tip("feature1")
        assert scenario.forge.is_merged(1)


@pytest.mark.parametrize("after", [MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT], ids=["to squash", "from squash"])
@asynchronous
async def test_all_commits_of_a_landing_are_of_one_merge_method(github_scenario: StartScenario, after: MergeMethod):
    """The run of the second pull request, which passes first, has both in its stack."""
    before = MergeMethod.SQUASH if after is MergeMethod.MERGE_COMMIT else MergeMethod.MERGE_COMMIT
    async with github_scenario(Config(merge_method=before)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.update(merge_method=after)
        await scenario.submit(2)
        tested = scenario.run_of(2).tip
        await scenario.passes(2)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.origin.tip("main") == tested
        assert all(scenario.forge.is_merged(number) for number in (1, 2))


@asynchronous
async def test_pull_requests_ahead_of_one_that_the_git_host_merges_land_as_tested(github_scenario: StartScenario):
    async with github_scenario(squash()) as scenario:
        scenario.open(1)
        await scenario.open_fork(2)
        await scenario.submit(1)
        await scenario.submit(2, head=scenario.forge.head(2))
        tested = scenario.run_of(1).tip
        await scenario.passes(2)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert scenario.forge.head(1) == tested
        assert tested in scenario.origin.log("main", "%H")
        assert not [call for call in scenario.forge.faults.calls if call.endswith("/pulls/1/merge")]


@asynchronous
async def test_a_merge_method_that_the_git_host_refuses_fails_only_what_it_has_to_merge(
    github_scenario: StartScenario,
):
    async with github_scenario(squash()) as scenario:
        cast(GithubDriver, scenario.forge).acme.merge_methods = {"merge"}
        await scenario.open_fork(1)
        scenario.open(2)
        await scenario.submit(1, head=scenario.forge.head(1))
        await scenario.submit(2)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "failed: merge_refused"
        assert "headBranchFallback" in (await scenario.view(1)).reason.message
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_fork_without_the_tip_fails_with_what_helps_it_where_a_rule_requires_the_tip(
    github_scenario: StartScenario,
):
    """The queue pushes tested commits already."""
    async with github_scenario(squash()) as scenario:
        acme = cast(GithubDriver, scenario.forge).acme
        acme.add_ruleset("checks", [required_checks_rule("unit", strict=True)])
        await scenario.open_fork(1)
        await scenario.report(scenario.forge.head(1), StatusState.SUCCESS)
        acme.push_commit("main", {"other.txt": "1"})
        await scenario.submit(1, head=scenario.forge.head(1))
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "failed: merge_refused"
        message = (await scenario.view(1)).reason.message
        assert "turn off *Require branches to be up to date before merging*. The Git host has to merge" in message


@pytest.mark.long
@asynchronous
async def test_the_rules_count_again_when_a_late_push_of_ours_was_undone(github_scenario: StartScenario):
    """No webhook about the pull request arrives: the read for the landing is the first one that finds the late push."""
    async with github_scenario(squash()) as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        await scenario.submit(1)
        head, tested = scenario.forge.head(1), scenario.run_of(1).tip
        plan_at_push(scenario, NOTHING, act(lambda: scenario.forge.push_to_main({"foreign": "f"})))
        await scenario.passes(1)
        await scenario.advance_time(3 * MINUTE)
        assert scenario.origin.tip("feature1") == head
        driver.acme.hooks[0].events = ["status"]
        mirror = await scenario.service.repositories.open_mirror(KEY.repo)
        assert await mirror.push(RefUpdate("refs/heads/feature1", head, tested)) == Pushed()
        driver.dismiss_reviews(1)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: waiting_for_review"
        assert scenario.origin.tip("feature1") == head


@pytest.mark.long
@asynchronous
async def test_an_approval_that_is_withdrawn_in_an_outage_after_the_head_moved_stops_the_merge(
    github_scenario: StartScenario,
):
    async with github_scenario(squash()) as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        await scenario.submit(1)
        head = driver.head(1)
        plan_at_push(scenario, NOTHING)
        driver.faults.plan(RespondsWith(503), driver.paths.push, times=ALWAYS)
        await scenario.passes(1)
        assert driver.head(1) != head
        driver.dismiss_reviews(1)
        await scenario.advance_time(10 * MINUTE)
        driver.faults.clear()
        await scenario.advance_time(3 * MINUTE)
        assert await scenario.state(1) == "not_ready: waiting_for_review"
        assert (driver.is_merged(1), driver.head(1)) == (False, head)


# Forks, and head branches that cannot be moved.


@pytest.mark.long
@asynchronous
async def test_the_head_in_a_fork_that_allows_edits_is_moved(scenario_by_head: StartScenario):
    async with scenario_by_head(squash()) as scenario:
        await scenario.open_fork(1)
        scenario.forge.allow_edits(1)
        await scenario.submit(1, head=scenario.forge.head(1))
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested == scenario.forge.head(1)
        assert scenario.forge.is_merged(1)


@asynchronous
async def test_the_git_host_merges_a_fork_that_does_not_allow_edits(scenario_by_head: StartScenario):
    async with scenario_by_head(squash()) as scenario:
        await scenario.open_fork(1)
        await scenario.submit(1, head=scenario.forge.head(1))
        tree = scenario.origin.tree(scenario.run_of(1).tip)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tree("main") == tree
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_with_the_other_fallback_a_fork_is_closed_with_a_link(scenario_by_head: StartScenario):
    async with scenario_by_head(squash(head_branch_fallback=HeadBranchFallback.CLOSE)) as scenario:
        await scenario.open_fork(1)
        await scenario.submit(1, head=scenario.forge.head(1))
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert not scenario.forge.is_open(1)
        assert not scenario.forge.is_merged(1)
        assert tested in scenario.replies(1)[-1]


FORK_PUSH = r"eve/app\.git/git-receive-pack$"


@pytest.mark.long
@pytest.mark.parametrize(("status", "path"), [(403, FORK_PUSH), (503, r"eve/app\.git/")], ids=["refused", "gone"])
@asynchronous
async def test_the_git_host_merges_a_fork_that_refuses_the_push_although_it_allows_edits(
    github_scenario: StartScenario, status: int, path: str
):
    async with github_scenario(squash(), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        await scenario.open_fork(1)
        scenario.forge.allow_edits(1)
        await scenario.submit(1, head=scenario.forge.head(1))
        scenario.forge.faults.plan(RespondsWith(status), path, times=ALWAYS)
        await scenario.passes(1)
        await scenario.advance_time(2 * MINUTE)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.forge.is_merged(1)
        assert any(re.search(scenario.forge.paths.merge, call) for call in scenario.forge.faults.calls)


@pytest.mark.long
@pytest.mark.parametrize("failures", [1, ALWAYS])
@asynchronous
async def test_the_head_in_a_fork_is_moved_back_or_named(github_scenario: StartScenario, failures: int):
    async with github_scenario(squash(), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        await scenario.open_fork(1)
        scenario.forge.allow_edits(1)
        head, faults = scenario.forge.head(1), scenario.forge.faults
        await scenario.submit(1, head=head)
        faults.plan(NOTHING, FORK_PUSH)
        faults.plan(RespondsWith(503), FORK_PUSH, times=failures)
        faults.plan(act(lambda: scenario.forge.push_to_main({"foreign": "f"})), r"acme/app\.git/git-receive-pack$")
        await scenario.passes(1)
        await scenario.advance_time(3 * MINUTE)
        assert (scenario.forge.head(1) == head) is (failures == 1)
        assert any(head in reply for reply in scenario.replies(1)) is (failures == ALWAYS)
        await scenario.passes(1)
        await scenario.advance_time(3 * MINUTE)
        ended = "merged: merged_by_queue" if failures == 1 else "cancelled: head_not_moved_back"
        assert await scenario.state(1) == ended
        assert head in (await scenario.view(1)).reason.message or failures == 1


@pytest.mark.long
@asynchronous
async def test_a_landing_does_not_wait_for_the_comment_that_names_the_head(github_scenario: StartScenario):
    async with github_scenario(squash()) as scenario:
        await scenario.open_fork(1)
        scenario.forge.allow_edits(1)
        faults = scenario.forge.faults
        await scenario.submit(1, head=scenario.forge.head(1))
        faults.plan(NOTHING, FORK_PUSH)
        faults.plan(RespondsWith(403), FORK_PUSH, times=ALWAYS)
        faults.plan(act(lambda: scenario.forge.push_to_main({"foreign": "f"})), r"acme/app\.git/git-receive-pack$")
        faults.plan(RespondsWith(503), r"/issues/1/comments$", times=ALWAYS)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert scenario.queue_actor.queue.landing is None


@pytest.mark.long
@asynchronous
async def test_a_head_branch_that_is_the_target_of_another_queue_is_not_moved(github_scenario: StartScenario):
    async with github_scenario(squash(head_branch_fallback=HeadBranchFallback.CLOSE)) as scenario:
        scenario.open(1)
        head = scenario.forge.head(1)
        await scenario.create_queue(Config(), QueueKey(KEY.repo, "feature1"))
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.origin.tip("feature1") == head
        assert scenario.origin.subjects("main")[-1] == "Change 1 (#1)"


@pytest.mark.long
@asynchronous
async def test_a_head_branch_that_is_the_target_of_a_queue_in_its_fork_is_not_moved(github_scenario: StartScenario):
    async with github_scenario(squash(head_branch_fallback=HeadBranchFallback.CLOSE)) as scenario:
        await scenario.open_fork(1)
        scenario.forge.allow_edits(1)
        head = scenario.forge.head(1)
        await scenario.create_queue(Config(), QueueKey(replace(KEY.repo, owner="eve"), "feature1"))
        await scenario.submit(1, head=head)
        await scenario.passes(1)
        assert scenario.forge.head(1) == head
        assert scenario.origin.subjects("main")[-1] == "Change 1 (#1)"


# Deleting head branches.


@pytest.mark.long
@asynchronous
async def test_queues_do_not_disturb_each_other_after_their_merges(github_scenario: StartScenario):
    """The submissions of both queues have the same IDs."""
    config = Config(batch=True, batching_min_size=2, delete_head_branches=True)
    async with github_scenario(config) as scenario:
        scenario.origin.branch("release", base="main")
        await scenario.create_queue(Config(delete_head_branches=True), RELEASE)
        scenario.open(1, 2, 3)
        scenario.forge.retarget(3, "release")
        await scenario.submit(1, 2)
        (scenario.origin.path / "refs" / "heads" / "feature2.lock").touch()
        await scenario.passes(1, 2)
        await scenario.advance_one_minute()
        assert [scenario.origin.ref(f"feature{number}") is None for number in (1, 2)] == [True, False]
        await scenario.service.submissions.submit(scenario.build_command(3, RELEASE), SubmitOptions())
        await scenario.wait_until_idle()
        (run,) = (await scenario.service.registry.get(RELEASE)).queue.runs.values()
        await scenario.report(run.tip, StatusState.SUCCESS)
        await scenario.advance_one_minute()
        assert scenario.origin.ref("feature3") is None


@pytest.mark.long
@asynchronous
async def test_merged_head_branches_are_deleted_and_pull_requests_into_them_retargeted(forge_scenario: StartScenario):
    async with forge_scenario(squash(delete_head_branches=True)) as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        scenario.forge.retarget(2, "feature1")
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert scenario.origin.ref("feature1") is None
        assert scenario.forge.is_merged(1)
        assert scenario.forge.is_open(2)
        assert scenario.forge.base(2) == "main"


@asynchronous
async def test_a_head_branch_that_the_author_pushed_to_after_the_merge_is_kept(github_scenario: StartScenario):
    async with github_scenario(Config(delete_head_branches=True)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        plan_at_push(scenario, NOTHING, act(lambda: scenario.origin.commit("feature1", {"more": "more"})))
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.files("feature1")["more"] == "more"
