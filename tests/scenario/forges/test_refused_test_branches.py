"""Rules of the Git host that refuse test branches. If they refuse whatever the queue pushes, it pauses, and no pull
request fails; if they refuse what one pull request contains, that one fails."""

from pathlib import Path
from typing import Any

import pytest

from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import QueueState, Reason
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import decode_journal_entry
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_drivers.gitlab import GitlabDriver
from tests.support.forge_scenario import ForgeScenario, a_forge_scenario
from tests.support.forges.github.rulesets import required_checks_rule, rule
from tests.support.long_tests import mark_long_after
from tests.support.push_hooks import TEST_BRANCH_PUSH, ZERO_SHA, refuse_pushes, remove_hooks
from tests.support.scenario import MINUTE

TEST_BRANCHES = "refs/heads/mergeyard/**/*"
PUSH_RULES: dict[str, tuple[dict[str, str | bool], str]] = {
    "address": ({"author_email_regex": "@example.com$"}, "Committer's email '"),
    "branch": ({"branch_name_regex": "^feature/"}, "Branch name 'mergeyard/pr-1/"),
    "sign-off": ({"reject_non_dco_commits": True}, "Commit message must contain a DCO signoff"),
    "start of messages": ({"commit_message_regex": "^JIRA-"}, "Commit message does not follow the pattern '^JIRA-'"),
    "merges": (
        {"commit_message_negative_regex": "^Merge r"},
        "Commit message contains the forbidden pattern '^Merge r'",
    ),
}
GITHUB_RULES = {
    "checks": (required_checks_rule("unit"), 'Required status check "unit" is expected.'),
    "workflows": (
        rule("workflows", workflows=[{"path": ".github/workflows/ci.yml", "repository_id": 1}]),
        "Required workflow '.github/workflows/ci.yml' is not satisfied",
    ),
}


async def check_queue_pauses(scenario: ForgeScenario, message: str) -> None:
    scenario.open(1, 2)
    await scenario.submit(1, 2)
    queue = scenario.queue_actor.queue
    assert queue.state is QueueState.PAUSED
    assert message in queue.state_reason
    entries = [decode_journal_entry(each.body) for each in await scenario.store.audit_entries(AuditQuery(take=9))]
    changes = [entry for entry in entries if isinstance(entry, QueueChanged)]
    assert [change.reason for change in changes] == [Reason.TEST_BRANCH_REFUSED]
    assert [await scenario.state(number) for number in (1, 2)] == ["pending: queue_paused", "not_ready: queue_paused"]
    assert scenario.test_branches() == []


async def check_queue_merges(scenario: ForgeScenario) -> None:
    await scenario.update(state=QueueState.RUNNING)
    for number in (1, 2):
        await scenario.passes(number)
        await scenario.advance_one_second()
        assert scenario.forge.is_merged(number), await scenario.state(number)


@pytest.mark.long
@pytest.mark.parametrize("name", mark_long_after(1, list(PUSH_RULES)))
@asynchronous
async def test_push_rule_that_refuses_every_commit_of_the_queue_fails_no_pull_request(tmp_path: Path, name: str):
    async with a_forge_scenario(tmp_path, GitlabDriver) as scenario:
        assert isinstance(scenario.forge, GitlabDriver)
        project, (push_rule, message) = scenario.forge.project, PUSH_RULES[name]
        project.premium, project.push_rule = True, push_rule
        await check_queue_pauses(scenario, f"GitLab: {message}")
        project.push_rule = None
        await check_queue_merges(scenario)


@pytest.mark.long
@pytest.mark.parametrize("name", mark_long_after(1, list(GITHUB_RULES)))
@asynchronous
async def test_checks_that_github_enforces_when_a_branch_is_created_fail_no_pull_request(
    github_scenario: StartScenario, name: str
):
    async with github_scenario() as scenario:
        assert isinstance(scenario.forge, GithubDriver)
        kind, message = GITHUB_RULES[name]
        ruleset = scenario.forge.acme.add_ruleset("everywhere", [kind], include=[TEST_BRANCHES])
        scenario.forge.report(scenario.origin.tip("main"), "unit", StatusState.SUCCESS)
        await check_queue_pauses(scenario, message)
        ruleset.rules = [kind | {"parameters": kind["parameters"] | {"do_not_enforce_on_create": True}}]
        await check_queue_merges(scenario)


@pytest.mark.long
@asynchronous
async def test_rule_against_merge_commits_on_test_branches_fails_no_pull_request(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GitlabDriver) as scenario:
        is_merge = 'git log -1 --format=%P "$new" | grep -q " "'
        refuse_pushes(scenario.origin, TEST_BRANCH_PUSH, "no merge commits", only_if=is_merge)
        await check_queue_pauses(scenario, "no merge commits")
        remove_hooks(scenario.origin)
        await check_queue_merges(scenario)


KEY: dict[str, str | bool] = {"commit_message_regex": "JIRA-[0-9]+"}
REFUSED = "failed: start_refused"
MERGED = "merged: merged_by_queue"


def open_where_messages_need(scenario: ForgeScenario, push_rule: dict[str, str | bool], *titles: str) -> None:
    """Opens a merge request with each title in a project with this push rule."""
    assert isinstance(scenario.forge, GitlabDriver)
    project = scenario.forge.project
    project.premium, project.push_rule = True, push_rule
    for number, title in enumerate(titles, 1):
        scenario.open(number)
        project.merge_requests[number].title = title


@pytest.mark.parametrize("method", mark_long_after(1, [MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH]))
@asynchronous
async def test_only_the_mr_whose_title_lacks_what_a_push_rule_requires_fails(tmp_path: Path, method: MergeMethod):
    async with a_forge_scenario(tmp_path, GitlabDriver, Config(merge_method=method)) as scenario:
        open_where_messages_need(scenario, KEY, "JIRA-1 Add", "Change", "JIRA-3 Remove")
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.submit(2, 3)
        assert await scenario.state(2) == REFUSED
        assert "Commit message does not follow the pattern" in (await scenario.view(2)).reason.message
        await scenario.passes(3)
        assert [await scenario.state(number) for number in (1, 3)] == [MERGED] * 2


@pytest.mark.long
@pytest.mark.parametrize("culprit", [1, 3])
@asynchronous
async def test_only_the_mr_of_a_batch_whose_message_is_refused_fails(tmp_path: Path, culprit: int):
    """Nothing has merged before. Another rule refuses to update test branches."""
    async with a_forge_scenario(tmp_path, GitlabDriver, Config(batch=True, batching_min_size=3)) as scenario:
        updates = "[!0]*' refs/heads/mergeyard/'*"
        refuse_pushes(scenario.origin, updates, "no updates", only_if=f'[ "$new" != {ZERO_SHA} ]')
        titles = ("Change" if number == culprit else f"JIRA-{number}" for number in (1, 2, 3))
        open_where_messages_need(scenario, KEY, *titles)
        await scenario.submit(1, 2, 3)
        assert await scenario.state(culprit) == REFUSED
        remove_hooks(scenario.origin)
        others = [number for number in (1, 2, 3) if number != culprit]
        await scenario.advance_time(10 * MINUTE)
        await scenario.passes(*others)
        assert [await scenario.state(number) for number in others] == [MERGED] * 2


@pytest.mark.long
@asynchronous
async def test_a_forbidden_word_fails_only_the_mr_that_has_it_also_before_the_first_merge(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GitlabDriver, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        open_where_messages_need(scenario, {"commit_message_negative_regex": "WIP"}, "WIP", "Change")
        await scenario.submit(1, 2)
        await scenario.passes(2)
        assert [await scenario.state(number) for number in (1, 2)] == [REFUSED, MERGED]


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [{"merge_method": MergeMethod.MERGE_COMMIT}, {"squash_template": "[{number}] {title}"}], ids=str
)
@asynchronous
async def test_messages_of_another_form_that_were_accepted_before_fail_no_mr(tmp_path: Path, settings: dict[str, Any]):
    async with a_forge_scenario(tmp_path, GitlabDriver, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        open_where_messages_need(scenario, {"commit_message_regex": "^JIRA-"}, "JIRA-1 Add", "JIRA-2 Change")
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == MERGED
        await scenario.update(**settings)
        await scenario.submit(2)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert await scenario.state(2) == "pending: queue_paused"
