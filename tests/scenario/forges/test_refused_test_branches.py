"""Rules of the Git host that refuse whatever the queue pushes: the queue pauses, and no pull request fails."""

from pathlib import Path

import pytest

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

TEST_BRANCHES = "refs/heads/mergeyard/**/*"
PUSH_RULES: dict[str, tuple[dict[str, str | bool], str]] = {
    "address": ({"author_email_regex": "@example.com$"}, "Committer's email '"),
    "branch": ({"branch_name_regex": "^feature/"}, "Branch name 'mergeyard/pr-1/"),
    "sign-off": ({"reject_non_dco_commits": True}, "Commit message must contain a DCO signoff"),
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
