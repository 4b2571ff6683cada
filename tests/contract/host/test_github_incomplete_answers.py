"""Answers of GitHub that lack something: none of them counts as a rule that does not exist, or that is met."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import Reason
from mergeyard.ports.forge import HostRefused, HostUnavailable, QueueSetup
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import APP, GithubEnvironment, github_app_environment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.github.rulesets import BypassActor, RuleData, pull_request_rule, required_checks_rule, rule
from tests.support.forges.github.world import BranchProtection

READ_REVIEWS = "Pull requests: Read-only"
PULL_REQUEST = ["repository", "pullRequest"]
THREADS, SIGNED = pull_request_rule(threads=True), rule("required_signatures")
TRANSIENT = "Something went wrong while executing your query."


@pytest.fixture
def env(tmp_path: Path) -> Generator[GithubEnvironment]:
    with github_app_environment(tmp_path) as env:
        env.acme.roles |= {"grace": "write", "linus": "write"}
        yield env


def require(env: GithubEnvironment, *rules: RuleData) -> None:
    """Our account can bypass it, so GitHub itself enforces nothing."""
    env.acme.add_ruleset("rules", list(rules), bypass=[BypassActor("Integration", int(APP), "exempt")])


async def unmet(host: GithubHost, env: GithubEnvironment) -> tuple[Requirement, ...]:
    pull_request = await host.read_pull_request(env.repo, ONE)
    assert pull_request
    return pull_request.unmet_requirements


def require_a_team(env: GithubEnvironment) -> None:
    team = env.acme.organization.add_team("db", "linus")
    require(env, pull_request_rule(reviewers=[(team, ["*.txt"], 1)]))


# A 404 for a moment


def require_by_classic_rule(env: GithubEnvironment) -> None:
    env.acme.protections["main"] = BranchProtection(approvals=1)


def require_by_ruleset(env: GithubEnvironment) -> None:
    require(env, pull_request_rule(1))


def require_signatures(env: GithubEnvironment) -> None:
    require(env, SIGNED)


LISTS = {
    "rulesets": ("/rules/branches/main$", require_by_ruleset, Reason.WAITING_FOR_REVIEW),
    "classic protection": ("/app/branches/main$", require_by_classic_rule, Reason.WAITING_FOR_REVIEW),
    "files": ("/pulls/1/files", require_a_team, Reason.WAITING_FOR_REVIEW),
    "commits": ("/pulls/1/commits", require_signatures, Reason.COMMITS_UNSIGNED),
}


@pytest.mark.parametrize("name", LISTS)
@asynchronous
async def test_a_404_about_what_exists_is_asked_again(env: GithubEnvironment, name: str):
    path, prepare, reason = LISTS[name]
    prepare(env)
    env.open(1)
    env.github.faults.plan(RespondsWith(404, body=b'{"message": "Not Found"}'), path)
    async with env.host() as host:
        with pytest.raises(HostUnavailable) as raised:
            await unmet(host, env)
        assert not isinstance(raised.value, HostRefused), "a retry can succeed"
        assert str(raised.value).endswith("we ask again")
        assert [each.reason for each in await unmet(host, env)] == [reason]


@pytest.mark.parametrize("path", ["/rules/branches/main$", "/app/branches/main$"])
@asynchronous
async def test_a_404_about_the_rules_does_not_leave_out_required_checks(env: GithubEnvironment, path: str):
    env.acme.protections["main"] = BranchProtection(contexts=["unit"])
    env.acme.add_ruleset("lint", [required_checks_rule("lint")])
    async with env.host() as host:
        env.github.faults.plan(RespondsWith(404), path)
        with pytest.raises(HostUnavailable):
            await host.required_statuses(env.repo, "main")
        assert await host.required_statuses(env.repo, "main") == ("lint", "unit")


@asynchronous
async def test_a_branch_that_does_not_exist_has_only_the_rules_for_its_name(env: GithubEnvironment):
    env.acme.add_ruleset("lint", [required_checks_rule("lint")], include=["~ALL"])
    async with env.host() as host:
        assert await host.required_statuses(env.repo, "new/one") == ("lint",)
        findings = await host.diagnose(env.repo, [QueueSetup(branch="new/one")])
    assert "The branch new/one requires lint." in [finding.message for finding in findings]


@asynchronous
async def test_a_404_about_the_rules_of_test_branches_is_a_finding(env: GithubEnvironment):
    env.github.faults.plan(RespondsWith(404), "/rules/branches/mergeyard")
    async with env.host() as host:
        findings = await host.diagnose(env.repo, [QueueSetup(branch="main")])
    assert "we ask again" in findings[-1].message
    assert not findings[-1].ok


# More than GitHub lists


@asynchronous
async def test_signatures_of_commits_that_github_does_not_list_are_unknown(env: GithubEnvironment):
    require(env, SIGNED)
    env.acme.verified_commits.add(env.open(1))
    async with env.host() as host:
        assert await unmet(host, env) == ()
        env.change().commits = 3
        (found,) = await unmet(host, env)
        assert (found.reason, found.given) == (Reason.COMMITS_UNSIGNED, None)
        assert found.names == ("signatures of all but 1 of 3 commits (GitHub does not list the others: squash some)",)
    async with env.host(unreadable_rules_block=False) as host:
        assert await unmet(host, env) == ()


@asynchronous
async def test_files_that_github_does_not_list_count_as_those_of_each_team(env: GithubEnvironment):
    require_a_team(env)
    env.open(1, files={"web/a.js": "1"})
    async with env.host() as host:
        assert await unmet(host, env) == ()
        env.change().changed_files = 2
        assert [each.reason for each in await unmet(host, env)] == [Reason.WAITING_FOR_REVIEW]


# Errors of GraphQL


def answer(facts: Any, *errors: dict[str, Any], **others: Any) -> RespondsWith:
    data = {"repository": {"pullRequest": facts, **others}}
    return RespondsWith(200, body=json.dumps({"data": data, "errors": list(errors)}).encode())


@pytest.mark.parametrize("facts", [None, {"reviewThreads": None}])
@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        ({"message": TRANSIENT}, False),
        ({"message": TRANSIENT, "type": "INTERNAL"}, False),
        ({"message": "not allowed", "type": "FORBIDDEN"}, True),
        ({"message": "Resource not accessible by integration"}, True),
        ({"message": "Resource not accessible by personal access token"}, True),
    ],
)
@asynchronous
async def test_only_a_refusal_to_show_conversations_is_a_missing_permission(
    env: GithubEnvironment, facts: Any, error: dict[str, Any], is_refused: bool
):
    require(env, THREADS)
    env.open(1)
    env.acme.add_thread(1)
    env.github.faults.plan(answer(facts, error | {"path": [*PULL_REQUEST, "reviewThreads"]}), "graphql")
    async with env.host() as host:
        if is_refused:
            (found,) = await unmet(host, env)
            assert (found.reason, found.names) == (Reason.HOST_RULE_UNREADABLE, (READ_REVIEWS,))
        else:
            with pytest.raises(HostUnavailable, match="Something went wrong") as raised:
                await unmet(host, env)
            assert not isinstance(raised.value, HostRefused)
        assert [each.reason for each in await unmet(host, env)] == [Reason.WAITING_FOR_CONVERSATIONS]


APPROVED = {
    "reviewDecision": "APPROVED",
    "latestOpinionatedReviews": {"nodes": [{"state": "APPROVED", "author": {"login": "grace"}}]},
}


@pytest.mark.parametrize(
    "path",
    [["repository", "sameName", "nodes", 0], ["repository", "headCommit"], [*PULL_REQUEST, "reviewDecision"], None],
)
@asynchronous
async def test_an_error_that_can_hide_requested_changes_is_asked_again(env: GithubEnvironment, path: list[Any] | None):
    require(env, pull_request_rule(1))
    env.open(1)
    env.github.faults.plan(answer(APPROVED, {"message": TRANSIENT, "path": path}, headCommit=None), "graphql")
    async with env.host() as host:
        with pytest.raises(HostUnavailable, match="Something went wrong"):
            await unmet(host, env)


@pytest.mark.parametrize("name", ["reviewThreads", "latestOpinionatedReviews"])
@asynchronous
async def test_an_answer_without_a_list_is_not_an_empty_list(env: GithubEnvironment, name: str):
    require(env, THREADS if name == "reviewThreads" else pull_request_rule(0, code_owners=True))
    env.open(1)
    env.github.faults.plan(answer(APPROVED | {name: None}), "graphql")
    async with env.host() as host:
        with pytest.raises(HostUnavailable, match="GitHub does not show the"):
            await unmet(host, env)
