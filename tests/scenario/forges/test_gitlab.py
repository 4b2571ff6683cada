"""GitLab only: rules of the project that a merge request lacks, gets and loses again."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.gitlab import GitlabDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario, a_forge_scenario
from tests.support.forges.faults import ALWAYS, ActsFirst, RespondsWith
from tests.support.forges.gitlab.world import BOT, ApprovalRule
from tests.support.long_tests import mark_long_after
from tests.support.scenario import MINUTE, SECOND

BY_GITLAB = Config(landing=LandingMethod.PROVIDER_MERGE)
Act = Callable[[GitlabDriver], None]


@pytest.fixture
def gitlab_scenario(tmp_path: Path) -> StartScenario:
    return partial(a_forge_scenario, tmp_path, GitlabDriver)


def driver(scenario: ForgeScenario) -> GitlabDriver:
    assert isinstance(scenario.forge, GitlabDriver)
    return scenario.forge


def lack_a_review(gitlab: GitlabDriver) -> None:
    gitlab.require_approvals(ApprovalRule(name="Database", needed=2, groups={"acme/db": ("bob", "carol")}))
    gitlab.approve(1, "bob")


def lack_a_code_owner(gitlab: GitlabDriver) -> None:
    gitlab.require_approvals(ApprovalRule(name="*.sql", rule_type="code_owner", users=("carol",)))


class Case(Struct, frozen=True):
    lack: Act
    get: Act
    lose: Act
    reason: str
    message: str
    reason_after_loss: str = ""
    """Empty: the same reason again."""


CASES = {
    "review": Case(
        lack_a_review,
        lambda gitlab: gitlab.approve(1, "carol"),
        lambda gitlab: gitlab.unapprove(1, "carol"),
        "waiting_for_review",
        "Waiting for a review from @acme/db (1 of 2 approvals).",
    ),
    "code owner": Case(
        lack_a_code_owner,
        lambda gitlab: gitlab.approve(1, "carol"),
        lambda gitlab: gitlab.unapprove(1, "carol"),
        "waiting_for_code_owner",
        "Waiting for a review from a code owner: @carol.",
    ),
    "changes": Case(
        lambda gitlab: gitlab.request_changes(1, "bob"),
        lambda gitlab: gitlab.withdraw_request(1, "bob"),
        lambda gitlab: gitlab.request_changes(1, "bob"),
        "changes_requested",
        "Changes were requested by @bob.",
    ),
    "threads": Case(
        lambda gitlab: gitlab.set_unresolved(1, 2),
        lambda gitlab: gitlab.set_unresolved(1, 0),
        lambda gitlab: gitlab.set_unresolved(1, 2),
        "waiting_for_conversations",
        "Unresolved review conversations: 2.",
    ),
    "external check": Case(
        lambda gitlab: gitlab.set_external_check(1, "license", "pending"),
        lambda gitlab: gitlab.set_external_check(1, "license", "passed"),
        lambda gitlab: gitlab.set_external_check(1, "license", "failed"),
        "waiting_for_head_checks",
        "Required checks of the pull request itself are running or have not reported: license.",
        "head_checks_failed",
    ),
    "other rule": Case(
        lambda gitlab: gitlab.set_obstacle(1, "title_regex"),
        lambda gitlab: gitlab.set_obstacle(1, None),
        lambda gitlab: gitlab.set_obstacle(1, "title_regex"),
        "blocked_by_host_rule",
        "A rule of the Git host blocks the pull request: the pattern for titles.",
    ),
}
"""How a merge request lacks what a rule requires, gets it and loses it; and what people read."""


@pytest.mark.long
@pytest.mark.parametrize("case", mark_long_after(2, list(CASES.values())), ids=CASES)
@asynchronous
async def test_mr_waits_until_it_has_what_a_rule_requires_and_does_not_merge_after_it_lost_it(
    gitlab_scenario: StartScenario, case: Case
):
    async with gitlab_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        case.lack(driver(scenario))
        await scenario.submit(1)
        assert await scenario.state(1) == f"not_ready: {case.reason}"
        assert case.message in (await scenario.view(1)).reason.message
        case.get(driver(scenario))
        await wait_until_ready(scenario)
        case.lose(driver(scenario))
        await scenario.passes(1)
        assert await scenario.state(1) == f"not_ready: {case.reason_after_loss or case.reason}"
        assert not scenario.forge.is_merged(1)


async def wait_until_ready(scenario: ForgeScenario) -> None:
    """By the webhook, else by the next recheck of the poller."""
    for _ in range(10):
        await scenario.advance_one_minute()
        if scenario.queue_text == "main ← 1…":
            return
    raise AssertionError(await scenario.state(1))


@pytest.mark.long
@asynchronous
async def test_withdrawn_approval_takes_the_mr_out_of_its_run_at_once(gitlab_scenario: StartScenario):
    async with gitlab_scenario() as scenario:
        scenario.open(1, 2)
        lack_a_code_owner(driver(scenario))
        driver(scenario).approve(1, "carol")
        driver(scenario).approve(2, "carol")
        await scenario.submit(1, 2)
        driver(scenario).unapprove(1, "carol")
        await scenario.advance_one_second()
        assert await scenario.state(1) == "not_ready: waiting_for_code_owner"
        assert scenario.queue_text == "main ← 2…"


@pytest.mark.parametrize("config", mark_long_after(1, [None, BY_GITLAB]), ids=["push", "by gitlab"])
@asynchronous
async def test_approval_that_is_withdrawn_unnoticed_is_missed_right_before_the_merge(
    gitlab_scenario: StartScenario, config: Config | None
):
    async with gitlab_scenario(config) as scenario:
        scenario.open(1)
        lack_a_code_owner(driver(scenario))
        driver(scenario).approve(1, "carol")
        driver(scenario).give_role(BOT, 50)
        await scenario.submit(1)
        tip = scenario.origin.tip("main")
        driver(scenario).project.merge_requests[1].approvals.clear()
        await scenario.passes(1)
        assert await scenario.state(1) == "not_ready: waiting_for_code_owner"
        assert scenario.origin.tip("main") == tip


CHANGES_REQUESTED = "not_ready: changes_requested"


async def decide_while_pushes_fail(scenario: ForgeScenario, **options: bool) -> None:
    """Decides the landing of !1, whose push fails. Then GitLab checks the merge request."""
    scenario.open(1)
    await scenario.submit(1, **options)
    scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.push, times=ALWAYS)
    await scenario.passes(1)
    assert is_landing_decided(scenario)
    driver(scenario).hide_mergeability(1)
    await scenario.advance_time(20 * SECOND)
    scenario.forge.faults.clear()


def is_landing_decided(scenario: ForgeScenario) -> bool:
    landing = scenario.queue_actor.queue.landing
    return landing is not None and landing.is_intended


@pytest.mark.long
@asynchronous
async def test_changes_that_are_requested_while_gitlab_checks_the_mr_stop_the_push(gitlab_scenario: StartScenario):
    """Until the check has finished, GitLab shows none of its rules."""
    async with gitlab_scenario() as scenario:
        await decide_while_pushes_fail(scenario)
        driver(scenario).request_changes(1, "bob")
        await scenario.advance_time(30 * SECOND)
        assert is_landing_decided(scenario)
        driver(scenario).show_mergeability(1)
        await scenario.advance_time(5 * SECOND)
        assert (await scenario.state(1), scenario.forge.is_merged(1)) == (CHANGES_REQUESTED, False)


@pytest.mark.long
@asynchronous
async def test_a_check_that_gitlab_does_not_finish_locks_no_mr(gitlab_scenario: StartScenario):
    async with gitlab_scenario() as scenario:
        await decide_while_pushes_fail(scenario)
        await scenario.advance_time(2 * MINUTE)
        assert (is_landing_decided(scenario), scenario.forge.is_merged(1)) == (False, False)
        driver(scenario).show_mergeability(1)
        await scenario.advance_time(10 * SECOND)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_a_forced_mr_does_not_wait_for_the_check_of_gitlab(gitlab_scenario: StartScenario):
    async with gitlab_scenario() as scenario:
        await decide_while_pushes_fail(scenario, forced=True)
        await scenario.advance_time(5 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@pytest.mark.parametrize("requests_changes", [False, True])
@asynchronous
async def test_the_check_that_follows_our_own_move_of_the_head_is_awaited(
    gitlab_scenario: StartScenario, requests_changes: bool
):
    async with gitlab_scenario(Config(merge_method=MergeMethod.SQUASH)) as scenario:
        gitlab = driver(scenario)
        scenario.open(1)
        await scenario.submit(1)
        head = gitlab.head(1)
        gitlab.gitlab.world.reads_before_recording = 25
        gitlab.faults.plan(ActsFirst(lambda: gitlab.hide_mergeability(1)), gitlab.paths.push)
        await scenario.passes(1)
        if requests_changes:
            gitlab.request_changes(1, "bob")
        await scenario.advance_time(30 * SECOND)
        assert (gitlab.head(1) == head, gitlab.is_merged(1), is_landing_decided(scenario)) == (False, False, True)
        gitlab.show_mergeability(1)
        await scenario.advance_time(5 * SECOND)
        expected = (CHANGES_REQUESTED, False) if requests_changes else ("merged: merged_by_queue", True)
        assert (await scenario.state(1), gitlab.is_merged(1)) == expected


@pytest.mark.long
@asynchronous
async def test_gitlab_itself_refuses_a_merge_while_it_checks_the_mr(gitlab_scenario: StartScenario):
    """So this landing does not wait for the check, which follows each merge into the target branch."""
    async with gitlab_scenario(BY_GITLAB) as scenario:
        gitlab = driver(scenario)
        scenario.open(1)
        await scenario.submit(1)
        hide = ActsFirst(lambda: gitlab.hide_mergeability(1), RespondsWith(502))
        gitlab.faults.plan(hide, gitlab.paths.merge)
        await scenario.passes(1)
        gitlab.request_changes(1, "bob")
        await scenario.advance_time(20 * SECOND)
        assert (is_landing_decided(scenario), gitlab.is_merged(1)) == (True, False)
        assert len([call for call in gitlab.faults.calls if call.startswith("PUT") and call.endswith("/merge")]) > 1
        gitlab.show_mergeability(1)
        await scenario.advance_time(20 * SECOND)
        assert (await scenario.state(1), gitlab.is_merged(1)) == (CHANGES_REQUESTED, False)


@asynchronous
async def test_developer_submits_by_comment_to_a_queue_that_is_the_only_one_to_merge(gitlab_scenario: StartScenario):
    async with gitlab_scenario() as scenario:
        gitlab = driver(scenario)
        gitlab.project.merge_access["main"] = [{"access_level": 0}]
        gitlab.project.push_access["main"] = [{"user_id": gitlab.gitlab.world.user(BOT).id}]
        scenario.open(1)
        await scenario.comment(1, "/merge")
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)


@asynchronous
async def test_numbers_of_merge_requests_are_written_as_gitlab_links_them(gitlab_scenario: StartScenario):
    """`#1` would be an issue, and GitLab would leave a note there for every commit and comment."""
    async with gitlab_scenario(Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert "Tested together with !2" in scenario.status_comment(1)
        await scenario.passes(1, 2)
        assert scenario.origin.subjects("main")[-2:] == ["Merge request 1: Change 1", "Merge request 2: Change 2"]
        assert "#" not in scenario.status_comment(1).replace("###", "")


@pytest.mark.long
@pytest.mark.parametrize("reads", [0, 3])
@asynchronous
async def test_approvals_that_our_own_move_of_the_head_resets_do_not_stop_the_merge(
    gitlab_scenario: StartScenario, reads: int
):
    """GitLab removes approvals when a source branch moves, also when we move it. It records the head later."""
    async with gitlab_scenario(Config(merge_method=MergeMethod.SQUASH)) as scenario:
        gitlab = driver(scenario)
        gitlab.require_approvals(ApprovalRule(name="owners", users=("bob",)))
        scenario.open(1)
        gitlab.approve(1, "bob")
        gitlab.gitlab.world.reads_before_recording = reads
        await scenario.submit(1)
        await scenario.passes(1)
        for _ in range(reads + 1):
            await scenario.advance_one_second()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert gitlab.is_merged(1)


@pytest.mark.parametrize("landing", list(LandingMethod))
@asynchronous
async def test_mr_waits_before_its_first_test_where_unsigned_commits_are_rejected(
    gitlab_scenario: StartScenario, landing: LandingMethod
):
    """The push rule also refuses the test branches, so it does not matter how the merge request lands."""
    async with gitlab_scenario(Config(merge_method=MergeMethod.SQUASH, landing=landing)) as scenario:
        project = driver(scenario).project
        project.premium, project.push_rule = True, {"reject_unsigned_commits": True}
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: signing_key_not_accepted"
