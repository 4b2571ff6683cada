"""What `host check` reports about GitHub: what is missing, and what to do about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github import auth
from mergeyard.adapters.forges.github.diagnostics import Account, AppliedRuleset, Target, judge_target
from mergeyard.adapters.forges.github.rules import BypassActor as WireActor
from mergeyard.adapters.forges.github.rules import Rule, Ruleset, apply_ruleset
from mergeyard.domain.config import HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import Finding, QueueSetup
from tests.contract.host.github_environment import (
    NAME,
    SECRET,
    TOKEN,
    FakeSigner,
    GithubEnvironment,
    github_app_environment,
    keys,
)
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.forges.github.fake import ALL_PERMISSIONS
from tests.support.forges.github.rulesets import BypassActor, RuleData, pull_request_rule, required_checks_rule, rule
from tests.support.forges.github.world import BranchProtection, Hook, RegisteredApp, to_account_id

US = "mergeyard-test[bot]"
OUR_APP = {"actor_type": "Integration", "actor_id": 7}
REVIEWS = BranchProtection(contexts=["unit"], approvals=1)
SERVER = "https://queue.example"
ADDRESS = f"{SERVER}/hooks/github/github.example"
EVENTS = list[str](auth.EVENTS)
PUSHES = QueueSetup(branch="main")
MERGES = QueueSetup(branch="main", landing=LandingMethod.PROVIDER_MERGE, merge_method=MergeMethod.SQUASH)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[GithubEnvironment]:
    with github_app_environment(tmp_path) as env:
        app_of(env).hooks.append(Hook(url=ADDRESS, secret=SECRET, events=EVENTS))
        app_of(env).events = EVENTS
        env.acme.protections["main"] = BranchProtection(contexts=["unit"])
        yield env


@pytest.fixture
def token(github: GithubEnvironment) -> GithubEnvironment:
    github.acme.hooks.append(Hook(url=ADDRESS, secret=SECRET, events=EVENTS))
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    return github


def app_of(env: GithubEnvironment) -> RegisteredApp:
    assert env.github.auth.app
    return env.github.auth.app


async def find(env: GithubEnvironment, *queues: QueueSetup, **access: Any) -> list[Finding]:
    async with env.host(**access) as host:
        return await host.diagnose(env.repo, queues)


async def problems(env: GithubEnvironment, *queues: QueueSetup, **access: Any) -> list[str]:
    return [finding.message for finding in await find(env, *queues, **access) if not finding.ok]


async def notes(env: GithubEnvironment, *queues: QueueSetup, **access: Any) -> str:
    """What is fine or only advice."""
    return "\n".join(finding.message for finding in await find(env, *queues, **access) if finding.ok)


async def warnings(env: GithubEnvironment, queue: QueueSetup = PUSHES, **access: Any) -> list[str]:
    async with env.host(**access) as host:
        return await host.branch_warnings(env.repo, queue)


def us(mode: str = "always") -> BypassActor:
    return BypassActor("Integration", 4711, mode)


# As an app


@asynchronous
async def test_an_app_that_has_everything_is_fine(app: GithubEnvironment):
    assert await problems(app) == []
    async with app.host() as host:
        findings = await host.diagnose(None)
        assert all(finding.ok for finding in findings)
        assert any("Signed in as the app mergeyard-test" in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("permission", "level", "message"),
    [
        ("contents", "read", "Contents: Read and write is missing. It is needed to push test branches"),
        ("pull_requests", "read", "Pull requests: Read and write is missing"),
        ("statuses", None, "Commit statuses: Read and write is missing"),
        ("checks", None, "Checks: Read-only is missing"),
        ("workflows", None, "Workflows: Read and write is missing"),
    ],
)
@asynchronous
async def test_a_missing_permission_is_named_with_its_purpose(
    app: GithubEnvironment, permission: str, level: str | None, message: str
):
    granted = app_of(app).permissions
    del granted[permission]
    granted |= {permission: level} if level else {}
    found = await problems(app)
    assert any(problem.startswith(message) for problem in found)
    assert any("accept" in problem for problem in found)


@asynchronous
async def test_missing_events_webhook_and_secret_are_named(app: GithubEnvironment):
    app_of(app).events = ["push"]
    app_of(app).hooks.clear()
    secret, events, hook = await problems(app, webhook_secret=None)
    assert "`webhook_secret_file` is not set" in secret
    assert (
        "pull_request, pull_request_review, pull_request_review_thread, issue_comment, status, check_run and" in events
    )
    assert "/hooks/github/" in hook


@asynchronous
async def test_a_webhook_that_sends_forms_is_named(app: GithubEnvironment):
    app_of(app).hooks[0].content_type = "form"
    (message,) = await problems(app)
    assert "application/json" in message


@asynchronous
async def test_an_app_that_is_not_installed_or_suspended_is_reported(app: GithubEnvironment):
    app_of(app).suspended = True
    assert "unsuspend" in (await problems(app))[0]
    app_of(app).installations.clear()
    (message,) = await problems(app)
    assert "install it there" in message


@asynchronous
async def test_a_wrong_key_is_reported_without_further_calls(app: GithubEnvironment):
    app_of(app).public_key = "another"
    (message,) = await problems(app)
    assert "401" in message
    assert keys()[0] not in message


# With a token


@asynchronous
async def test_a_token_that_has_everything_is_fine(token: GithubEnvironment):
    assert await problems(token) == []


@asynchronous
async def test_a_wrong_token_is_reported(token: GithubEnvironment):
    (message,) = await problems(token, token="expired")
    assert "Bad credentials" in message
    assert "expired" not in message


@asynchronous
async def test_a_repository_that_the_token_cannot_see_is_reported(token: GithubEnvironment):
    async with token.host() as host:
        findings = await host.diagnose(Repo(NAME, "acme", "other"))
    assert any("cannot read" in finding.message for finding in findings if not finding.ok)


@pytest.mark.parametrize(
    ("permission", "message"),
    [("checks", "Checks cannot be read"), ("issues", "Issues cannot be read"), ("statuses", "Commit statuses cannot")],
)
@asynchronous
async def test_missing_read_permissions_of_a_token_are_named(token: GithubEnvironment, permission: str, message: str):
    token.github.add_token(TOKEN, "ada", {name: level for name, level in ALL_PERMISSIONS.items() if name != permission})
    (problem,) = await problems(token)
    assert problem.startswith(message)
    assert "grant it to the token" in problem


@asynchronous
async def test_the_permission_that_github_names_is_in_the_finding(token: GithubEnvironment):
    headers = {"x-accepted-github-permissions": "checks=read"}
    token.github.faults.plan(RespondsWith(403, headers), "/check-runs")
    (problem,) = await problems(token)
    assert "checks=read" in problem


@asynchronous
async def test_a_missing_permission_that_github_hides_behind_a_404_is_reported(token: GithubEnvironment):
    token.github.faults.plan(RespondsWith(404, body=b'{"message": "Not Found"}'), "/check-runs")
    (problem,) = await problems(token)
    assert problem.startswith("Checks cannot be read (Not Found): grant it to the token")


@asynchronous
async def test_what_github_cannot_show_yet_is_no_missing_permission(token: GithubEnvironment):
    disabled = b'{"message": "Issues are disabled for this repo"}'
    token.github.faults.plan(RespondsWith(410, body=disabled), "/issues")
    token.github.faults.plan(RespondsWith(409, body=b'{"message": "Git Repository is empty."}'), "/status$")
    findings = await find(token)
    assert all(finding.ok for finding in findings)
    advice = [finding.message for finding in findings if finding.advice]
    assert any(message.startswith("Issues are turned off, so GitHub does not show whether") for message in advice)
    assert any("no commit yet" in message and "Commit statuses" in message for message in advice)


@asynchronous
async def test_an_owner_without_push_permission_is_reported(token: GithubEnvironment):
    token.acme.roles["ada"] = "triage"
    (message,) = await problems(token)
    assert "cannot push" in message


@asynchronous
async def test_a_webhook_with_another_url_or_too_few_events_is_reported(token: GithubEnvironment):
    token.acme.hooks[0].events = ["push"]
    assert "does not send" in (await problems(token))[0]
    token.acme.hooks[0].content_type = "form"
    assert "application/json" in (await problems(token))[0]
    token.acme.hooks[0].url = "https://ci.example/hook"
    assert "There is no webhook: under Settings, Webhooks, set its URL to <public_url>" in (await problems(token))[0]


@asynchronous
async def test_a_token_that_cannot_read_webhooks_gets_a_note_and_no_problem(token: GithubEnvironment):
    token.github.faults.plan(RespondsWith(403), "/hooks")
    async with token.host() as host:
        findings = await host.diagnose(token.repo)
    assert any("lacks Webhooks: Read-only. Check under Settings" in finding.message for finding in findings)
    assert all(finding.ok for finding in findings)


# With an app or a token


@asynchronous
async def test_a_branch_without_required_statuses_is_reported(token: GithubEnvironment):
    token.acme.protections.clear()
    (message,) = await problems(token)
    assert "in the queue's required checks" in message


@asynchronous
async def test_a_github_that_does_not_respond_is_a_finding(token: GithubEnvironment):
    token.github.faults.plan(RespondsWith(503))
    (message,) = await problems(token)
    assert "503" in message


# The webhook points at this server


@asynchronous
async def test_the_webhook_is_compared_with_the_public_url(app: GithubEnvironment):
    assert f"Webhooks are sent to this server: {ADDRESS}." in await notes(app, public_url=SERVER)
    (message,) = await problems(app, public_url="https://elsewhere.example")
    assert message.startswith(f"The webhook points at {ADDRESS}")
    assert "set its URL to https://elsewhere.example/hooks/github/github.example" in message
    assert "`webhook_secret_file`" in message


@asynchronous
async def test_without_a_public_url_only_the_path_is_compared(app: GithubEnvironment):
    assert "Set `public_url`" in await notes(app)
    app_of(app).hooks[0].url = f"{SERVER}/hooks/github/github.com"
    (message,) = await problems(app)
    assert "<public_url>/hooks/github/github.example" in message


@pytest.mark.long
@asynchronous
async def test_a_repository_needs_a_webhook_to_this_server(token: GithubEnvironment):
    assert await problems(token, public_url=SERVER) == []
    token.acme.hooks[0].active = False
    assert "is switched off" in (await problems(token, public_url=SERVER))[0]
    token.acme.hooks.append(Hook(url=ADDRESS, secret=SECRET, events=EVENTS))
    assert await problems(token, public_url=SERVER) == []
    (message,) = await problems(token, public_url="https://elsewhere.example")
    assert "There is no webhook" in message
    assert "https://elsewhere.example/hooks/github/github.example" in message


# Permissions that only some rules need


@pytest.mark.parametrize("permission", ["members", "deployments"])
@asynchronous
async def test_an_optional_permission_that_is_missing_is_named_with_its_purpose(
    app: GithubEnvironment, permission: str
):
    title = f"{permission.capitalize()}: Read-only is not granted. It is needed only to read"
    assert title not in await notes(app)
    del app_of(app).permissions[permission]
    assert title in await notes(app)
    assert await problems(app) == []


# The target branch: pushes


@pytest.mark.parametrize(
    ("rules", "title"),
    [
        ([pull_request_rule(1)], "*Require a pull request before merging*"),
        ([pull_request_rule(0)], "*Require a pull request before merging*"),
        ([rule("update")], "*Restrict updates*"),
        ([rule("required_linear_history")], "*Require linear history*"),
        ([pull_request_rule(1), rule("update")], "*Require a pull request before merging* and *Restrict updates*"),
    ],
)
@asynchronous
async def test_a_ruleset_that_refuses_the_push_needs_a_bypass(
    app: GithubEnvironment, rules: list[RuleData], title: str
):
    ruleset = app.acme.add_ruleset("main rules", rules)
    (message,) = await problems(app, PUSHES)
    assert message.startswith(f'The ruleset "main rules" refuses the queue\'s push to main ({title}')
    assert "put the app mergeyard-test on its bypass list with *Always allow* or *Exempt*" in message
    assert ("or set `landing` to `provider_merge`" in message) is (title == "*Require a pull request before merging*")
    assert await warnings(app) == [message]
    ruleset.bypass = [us("pull_request")]
    assert "A bypass for pull requests only does not allow a push" in (await warnings(app))[0]
    for mode in ("always", "exempt"):
        ruleset.bypass = [us(mode)]
        assert await warnings(app) == []


@asynchronous
async def test_an_app_needs_a_bypass_where_signed_commits_are_required(app: GithubEnvironment):
    ruleset = app.acme.add_ruleset("signed", [rule("required_signatures")])
    (message,) = await problems(app, PUSHES, signer=FakeSigner())
    assert message == (
        'The ruleset "signed" refuses the queue\'s push to main (*Require signed commits*): GitHub accepts no keys of '
        "apps, so put the app mergeyard-test on its bypass list with *Always allow* or *Exempt*, or set `landing` to "
        "`provider_merge`."
    )
    assert await warnings(app) == [message]
    assert await problems(app, MERGES) == []
    ruleset.bypass = [us()]
    assert await problems(app, PUSHES) == []
    app.acme.own_rulesets.clear()
    signatures = {"required_signatures": {"enabled": True, "url": "-"}}
    app.acme.protections["main"] = BranchProtection(contexts=["unit"], other_rules=signatures)
    (message,) = await problems(app, PUSHES)
    assert "Use a ruleset for this that the app mergeyard-test can bypass" in message


@asynchronous
async def test_an_account_needs_a_registered_key_where_signed_commits_are_required(token: GithubEnvironment):
    assert await problems(token, PUSHES, signer=FakeSigner()) == []
    assert not any("/users/" in call for call in token.github.faults.calls)
    token.acme.add_ruleset("signed", [rule("required_signatures")])
    (message,) = await problems(token, PUSHES)
    remedy = "set `signing_key_file`, and add its public key to the account ada under Settings, SSH and GPG keys"
    assert f"(*Require signed commits*): {remedy}, or set `landing` to `provider_merge`." in message
    signer = FakeSigner()
    (message,) = await problems(token, PUSHES, signer=signer)
    assert f": add the signing key {signer.fingerprint} to the account ada under Settings" in message
    token.github.auth.ssh_signing_keys["ada"] = [signer.public_key]
    assert await problems(token, PUSHES, signer=signer) == await warnings(token, signer=signer) == []
    (message,) = await problems(token, PUSHES, signer=signer, committer_email="queue@example.org")
    assert "change the key or `committer_email` (not found: committer_email queue@example.org, which is no" in message


@asynchronous
async def test_signed_test_branches_are_refused_only_because_of_other_commits(token: GithubEnvironment):
    signer, signed = FakeSigner(), rule("required_signatures")
    token.acme.add_ruleset("all", [signed], include=["~ALL"], exclude=["refs/heads/main"])
    (message,) = await problems(token, MERGES, signer=signer)
    assert message.startswith('The ruleset "all" refuses test branches (*Require signed commits*)')
    token.github.auth.ssh_signing_keys["ada"] = [signer.public_key]
    assert await problems(token, MERGES, signer=signer) == []
    assert 'The ruleset "all" can refuse test branches (*Require signed commits*)' in await notes(
        token, MERGES, signer=signer
    )


@asynchronous
async def test_commits_that_github_rebases_are_not_signed(token: GithubEnvironment):
    token.acme.add_ruleset("signed", [rule("required_signatures")])
    rebases = QueueSetup(branch="main", merge_method=MergeMethod.REBASE, landing=LandingMethod.PROVIDER_MERGE)
    (message,) = await problems(token, rebases)
    assert "refuses the queue's merges by rebase into main (*Require signed commits*)" in message
    assert message.endswith(", or set `landing` to `tested_commit`.")


@asynchronous
async def test_that_unsigned_commits_can_block_a_squash_is_advice(token: GithubEnvironment):
    advice = (
        'The ruleset "signed" can refuse the queue\'s merges by squash into main (*Require signed commits*): GitHub '
        "documents that only the author of a pull request can squash it there. Users report that apps can, and that "
        "unsigned commits block it. If GitHub refuses, "
        "put a team that contains only the account ada on its bypass list with *Always allow* or *Exempt*, or set "
        "`landing` to `tested_commit`."
    )
    assert advice not in await notes(token, MERGES)
    ruleset = token.acme.add_ruleset("signed", [rule("required_signatures")])
    assert (await problems(token, MERGES), advice in await notes(token, MERGES)) == ([], True)
    assert "can refuse" not in await notes(token, replace(MERGES, merge_method=MergeMethod.MERGE_COMMIT))
    ruleset.bypass = [BypassActor("User", to_account_id("ada"), "pull_request")]
    assert "can refuse" not in await notes(token, MERGES)


@pytest.mark.parametrize("value", [True, False])
@asynchronous
async def test_the_rule_about_copilot_is_one_that_the_queue_checks(app: GithubEnvironment, value: bool):
    app.acme.add_ruleset("reviews", [pull_request_rule(1, extra_for_copilot=value)], bypass=[us()])
    assert await problems(app, PUSHES) == await warnings(app) == []


SQUASHES = QueueSetup(branch="main", merge_method=MergeMethod.SQUASH)


@asynchronous
async def test_a_method_that_the_repository_refuses_matters_only_where_github_merges(token: GithubEnvironment):
    token.acme.merge_methods = {"rebase"}
    advice = (
        "The repository refuses squash, so GitHub cannot merge pull requests into main whose head branch cannot be "
        "moved: allow it under Settings, General, or set `headBranchFallback` to `close`."
    )
    assert (await problems(token, SQUASHES), advice in await notes(token, SQUASHES)) == ([], True)
    assert advice not in await notes(token, replace(SQUASHES, head_branch_fallback=HeadBranchFallback.CLOSE))
    assert await problems(token, MERGES) == ["The repository refuses squash: allow it under Settings, General."]
    for queue in (PUSHES, replace(SQUASHES, merge_method=MergeMethod.REBASE)):
        assert "The repository refuses" not in await notes(token, queue)


FALLBACK = "GitHub merges the pull requests whose head branch the queue cannot move, such as from forks: "


@asynchronous
async def test_what_refuses_the_merges_of_pull_requests_from_forks_is_advice(app: GithubEnvironment):
    checks = app.acme.add_ruleset("checks", [required_checks_rule("unit", strict=True)])
    squashes = replace(SQUASHES, branch="main")
    advice = (
        f'{FALLBACK}The ruleset "checks" refuses pull requests without the tip of main: turn *Require branches to be '
        "up to date before merging* off there, or set `headBranchFallback` to `close`."
    )
    assert advice in await notes(app, squashes)
    assert "refuses pull requests without the tip" not in str(await problems(app, squashes))
    closes = replace(squashes, head_branch_fallback=HeadBranchFallback.CLOSE)
    for queue in (closes, PUSHES, MERGES):
        assert FALLBACK not in await notes(app, queue)
    checks.bypass = [us()]
    assert FALLBACK not in await notes(app, squashes)


@asynchronous
async def test_a_method_that_only_a_ruleset_refuses_matters_for_forks(app: GithubEnvironment):
    app.acme.add_ruleset("methods", [pull_request_rule(1, allowed_merge_methods=["merge"])])
    assert f'{FALLBACK}The ruleset "methods" refuses the merge method squash' in await notes(app, SQUASHES)
    app.acme.own_rulesets.clear()
    app.acme.add_ruleset("queue", [rule("merge_queue")])
    assert FALLBACK not in await notes(app, SQUASHES)


@asynchronous
async def test_who_cannot_move_branches_of_forks_is_told_about_the_fallback(token: GithubEnvironment):
    advice = "The account ada cannot move branches of forks, because only a classic token can"
    assert advice in await notes(token, SQUASHES)
    assert advice not in await notes(token, PUSHES)
    token.github.add_token("ghp_classic", "ada")
    assert advice not in await notes(token, SQUASHES, token="ghp_classic")


@asynchronous
async def test_a_branch_that_only_rulesets_protect_has_no_classic_rule_to_read(app: GithubEnvironment):
    summary = b'{"protection": {"enabled": true}}'
    app.github.faults.plan(RespondsWith(200, body=summary), "app/branches/main$", times=ALWAYS)
    assert not [message for message in await problems(app, PUSHES) if "cannot be read" in message]


@asynchronous
async def test_a_permission_that_a_rule_makes_necessary_is_missing(app: GithubEnvironment):
    team = app.acme.organization.add_team("db", "linus")
    rules = [
        pull_request_rule(reviewers=[(team, ["*"], 1)]),
        rule("required_deployments", required_deployment_environments=["staging"]),
    ]
    app.acme.add_ruleset("reviews", rules, bypass=[us()])
    assert await problems(app, PUSHES) == []
    assert app.github.auth.app
    del app.github.auth.app.permissions["members"], app.github.auth.app.permissions["deployments"]
    found = await problems(app, PUSHES)
    assert ["grant Members: Read-only" in found[0], "grant Deployments: Read-only" in found[1]] == [True, True]


@asynchronous
async def test_rules_that_depend_on_the_commit_give_advice(app: GithubEnvironment):
    app.acme.add_ruleset("checks", [required_checks_rule("unit")])
    assert await problems(app, PUSHES) == await warnings(app) == []
    assert 'The ruleset "checks" can refuse the queue\'s push to main for some commits' in await notes(app, PUSHES)
    app.acme.add_ruleset("own", [required_checks_rule("mergeyard")])
    (message,) = await problems(app, PUSHES)
    assert 'The ruleset "own" requires the check mergeyard, and so refuses the queue\'s push' in message


@asynchronous
async def test_a_ruleset_of_the_organization_is_named_with_its_owner(app: GithubEnvironment):
    app.acme.organization.add_ruleset("all repositories", [rule("update")])
    (message,) = await problems(app, PUSHES)
    assert message.startswith('The ruleset "all repositories" of the organization acme refuses')


@asynchronous
async def test_the_account_of_a_token_needs_a_team(token: GithubEnvironment):
    ruleset = token.acme.add_ruleset("main rules", [rule("update")])
    (message,) = await problems(token, PUSHES)
    assert "put a team that contains only the account ada on its bypass list" in message
    team = token.acme.organization.add_team("queue", "ada")
    ruleset.bypass = [BypassActor("Team", team.id)]
    assert await problems(token, PUSHES) == []


@asynchronous
async def test_hidden_details_of_a_ruleset_give_a_note_and_no_problem(app: GithubEnvironment):
    app.acme.add_ruleset("main rules", [pull_request_rule(1)])
    app.github.faults.plan(RespondsWith(404), "/rulesets/")
    found = await find(app, PUSHES)
    assert all(finding.ok for finding in found)
    assert "GitHub does not show whether the app mergeyard-test can bypass the ruleset" in str(found)


# The target branch: GitHub merges


@asynchronous
async def test_where_github_merges_only_restricted_updates_need_a_bypass(app: GithubEnvironment):
    app.acme.add_ruleset("reviews", [pull_request_rule(1), required_checks_rule("unit")])
    assert await problems(app, MERGES) == await warnings(app, MERGES) == []
    updates = app.acme.add_ruleset("only the queue", [rule("update")])
    (message,) = await problems(app, MERGES)
    assert message.startswith(
        'The ruleset "only the queue" refuses the queue\'s merges by squash into main (*Restrict updates*)'
    )
    for mode in ("pull_request", "always", "exempt"):
        updates.bypass = [us(mode)]
        assert await problems(app, MERGES) == []


@asynchronous
async def test_linear_history_refuses_merge_commits_only(app: GithubEnvironment):
    app.acme.add_ruleset("linear", [rule("required_linear_history")])
    assert await problems(app, MERGES) == []
    (message,) = await problems(app, replace(MERGES, merge_method=MergeMethod.MERGE_COMMIT))
    assert "refuses the queue's merges by merge_commit into main (*Require linear history*)" in message


@asynchronous
async def test_strict_checks_and_forbidden_methods_are_reported(app: GithubEnvironment):
    app.acme.add_ruleset("strict", [required_checks_rule("unit", strict=True)])
    (message,) = await problems(app, MERGES)
    assert "turn *Require branches to be up to date before merging* off" in message
    assert await problems(app, PUSHES) == []
    app.acme.own_rulesets.clear()
    app.acme.add_ruleset("methods", [pull_request_rule(1, allowed_merge_methods=["merge", "rebase"])])
    (message,) = await problems(app, MERGES)
    assert 'The ruleset "methods" refuses the merge method squash' in message
    assert await problems(app, replace(MERGES, merge_method=MergeMethod.MERGE_COMMIT)) == []
    app.acme.own_rulesets.clear()
    app.acme.merge_methods = {"merge"}
    (message,) = await problems(app, MERGES)
    assert message == "The repository refuses squash: allow it under Settings, General."


@asynchronous
async def test_the_merge_queue_of_github_must_be_off(app: GithubEnvironment):
    app.acme.add_ruleset("queue", [rule("merge_queue")], bypass=[us()])
    for queue in (PUSHES, MERGES):
        (message,) = await problems(app, queue)
        assert message == 'The ruleset "queue" requires GitHub\'s own merge queue on main: turn this rule off.'


# Rules that the queue cannot judge or read


@asynchronous
async def test_rules_that_the_queue_cannot_check_are_reported(app: GithubEnvironment):
    ruleset = app.acme.add_ruleset("scan", [rule("workflows", workflows=[])])
    assert "refuses the queue's push" in (await problems(app, PUSHES))[0]
    assert await problems(app, MERGES) == []
    found = await notes(app, MERGES)
    assert "requires (workflows) only for pull requests: set `createPrsForTestingBranches`" in found
    ruleset.bypass = [us()]
    (message,) = await problems(app, PUSHES)
    assert message.startswith('The queue cannot check rules of the ruleset "scan" (workflows): move them')
    assert message.endswith(
        "or remove them, or set `unreadable_rules` of the Git host to `unknown`. Until then, pull requests wait."
    )
    assert await warnings(app) == [message]
    (message,) = await problems(app, PUSHES, unreadable_rules_block=False)
    assert message.endswith("Until then, the queue merges without them.")


@asynchronous
async def test_a_classic_rule_that_an_app_cannot_read_names_the_permission(app: GithubEnvironment):
    for status in (404, 403):
        app.github.faults.plan(RespondsWith(status), "/protection")
        (message,) = await problems(app, PUSHES)
        assert message.startswith("The branch protection rule of main cannot be read: grant Administration: Read-only")


@asynchronous
async def test_a_classic_rule_that_an_account_cannot_read_names_the_role(token: GithubEnvironment):
    token.acme.roles["ada"], token.acme.only_admins_read_protection = "write", True
    (message,) = await problems(token, PUSHES)
    assert "cannot be read: grant the role Admin to the account ada" in message
    token.acme.protections.clear()
    assert "cannot be read" not in str(await find(token, PUSHES))


# Classic protection


@asynchronous
async def test_a_classic_rule_must_let_the_queue_push(app: GithubEnvironment):
    app.acme.protections["main"] = replace(REVIEWS, bypass={"another[bot]": "", "linus": ""})
    (message,) = await problems(app, PUSHES)
    assert message.startswith("The branch protection rule refuses the queue's push to main (*Require a pull request")
    assert "let the app mergeyard-test push and bypass pull requests there (only in organizations)" in message
    assert await problems(app, MERGES) == []
    app.acme.protections["main"] = replace(REVIEWS, bypass={US: ""})
    assert await problems(app, PUSHES) == []


@asynchronous
async def test_a_classic_rule_that_restricts_pushes_must_list_the_queue(app: GithubEnvironment):
    def restrict_to(*slugs: str, **others: Any) -> None:
        apps = [{"slug": slug, "owner": {"login": "acme"}} for slug in slugs]
        restrictions = {"users": [], "teams": [], "apps": apps} | others
        app.acme.protections["main"] = BranchProtection(contexts=["unit"], other_rules={"restrictions": restrictions})

    restrict_to("another")
    for queue in (PUSHES, MERGES):
        assert "(*Restrict updates*)" in (await problems(app, queue))[0]
    restrict_to("another", "mergeyard-test")
    assert await problems(app, PUSHES) == []
    assert "All who can bypass the branch protection rule can merge into main" in await notes(app, PUSHES)
    restrict_to("mergeyard-test", teams=[{"slug": "release"}])
    assert "the team release (always)" in await notes(app, PUSHES)
    assert "No account but the queue's can merge into main." not in await notes(app, PUSHES)
    restrict_to("mergeyard-test")
    assert "No account but the queue's can merge into main." in await notes(app, PUSHES)
    app.acme.protections["main"].enforce_admins = False
    assert "All who can bypass the branch protection rule can merge into main" in await notes(app, PUSHES)
    assert "repository administrators (exempt)" in await notes(app, PUSHES)


@asynchronous
async def test_other_settings_of_a_classic_rule_are_compared_too(app: GithubEnvironment):
    signatures = {"required_signatures": {"enabled": True, "url": "-"}}
    app.acme.protections["main"] = BranchProtection(contexts=["unit"], other_rules=signatures)
    assert "*Require signed commits*" in (await problems(app, PUSHES))[0]
    linear = {"required_linear_history": {"enabled": True}}
    app.acme.protections["main"] = BranchProtection(contexts=["unit"], other_rules=linear)
    assert "*Require linear history*" in (await problems(app, PUSHES))[0]
    app.acme.protections["main"] = BranchProtection(contexts=["unit"], strict=True)
    assert "up to date" in (await problems(app, MERGES))[0]


@asynchronous
async def test_a_classic_rule_that_exempts_administrators_exempts_the_account(token: GithubEnvironment):
    token.acme.protections["main"] = REVIEWS
    assert "The branch protection rule refuses" in (await problems(token, PUSHES))[0]
    token.acme.protections["main"] = replace(REVIEWS, enforce_admins=False)
    assert await problems(token, PUSHES) == []
    assert "can bypass the reviews that the branch protection rule requires" in await notes(token, PUSHES)


# Reviews that we can bypass, and who else can


@pytest.mark.parametrize(
    ("mode", "reviews"),
    [("always", {"approvals": 1}), ("pull_request", {"code_owners": True}), ("exempt", {"last_push": True})],
)
@asynchronous
async def test_an_own_bypass_of_reviews_is_harmless(app: GithubEnvironment, mode: str, reviews: dict[str, Any]):
    app.acme.add_ruleset("reviews", [pull_request_rule(**reviews)], bypass=[us(mode)])
    assert await problems(app, MERGES) == await warnings(app, MERGES) == []
    found = await notes(app, MERGES)
    assert 'The app mergeyard-test can bypass the reviews that the ruleset "reviews" requires. The queue reads' in found
    app.acme.own_rulesets[0].bypass.clear()
    assert "can bypass the reviews" not in await notes(app, MERGES)


@asynchronous
async def test_everyone_who_can_bypass_a_ruleset_is_listed(token: GithubEnvironment):
    actors = [BypassActor("Team", 3, "pull_request"), BypassActor("RepositoryRole", 5), BypassActor("Integration", 7)]
    actors += [BypassActor("OrganizationAdmin", 1, "exempt")]
    ruleset = token.acme.add_ruleset("main rules", [rule("update")], bypass=actors)
    listed = (
        'The ruleset "main rules" (*Restrict updates*) can be bypassed by team 3 (for pull requests only), repository '
        "role 5 (always), app 7 (always) and OrganizationAdmin (exempt)."
    )
    assert listed in await notes(token, PUSHES)
    ruleset.bypass = []
    assert 'The ruleset "main rules" (*Restrict updates*) can be bypassed by no account.' in await notes(token, PUSHES)
    token.acme.roles["ada"] = "write"
    found = await notes(token, PUSHES)
    assert 'GitHub shows who can bypass the ruleset "main rules" only to accounts that can edit it' in found
    assert "Bypass of the account ada: never." in found


@asynchronous
async def test_host_check_says_whether_only_the_queue_can_merge(token: GithubEnvironment):
    found = await notes(token, PUSHES)
    assert "Others can merge into main without the queue. To prevent that, have only a team that contains only" in found
    assert "a new ruleset with *Restrict updates*" in found
    ruleset = token.acme.add_ruleset("main rules", [rule("update")], bypass=[BypassActor("Team", 3)])
    found = await notes(token, PUSHES)
    assert 'All who can bypass the ruleset "main rules" can merge into main. For a mandatory queue,' in found
    ruleset.bypass = []
    assert "No account but the queue's can merge into main." not in await notes(token, PUSHES)
    token.acme.roles["ada"] = "write"
    assert "GitHub does not show whether only the queue can merge into main." in await notes(token, PUSHES)


@pytest.mark.parametrize(
    ("actors", "is_mandatory"),
    [((WireActor("Integration", 7),), True), ((WireActor("Integration", 7), WireActor("Team", 3)), False), ((), False)],
)
def test_a_queue_is_mandatory_if_only_its_app_can_bypass_restricted_updates(
    actors: tuple[WireActor, ...], is_mandatory: bool
):
    ruleset = AppliedRuleset("the ruleset x", (Rule("update"),), "always", actors)
    target, account = Target("main", (ruleset,), True, frozenset()), Account("the app x", "x[bot]", 7)
    found = [finding.message for finding in judge_target(target, account)]
    assert ("No account but the queue's can merge into main." in found) is is_mandatory


# Several queues, and none


@asynchronous
async def test_the_account_of_a_token_can_be_on_the_list_itself(token: GithubEnvironment):
    ruleset = token.acme.add_ruleset("main rules", [rule("update")])
    for login, is_only in (("grace", False), ("ada", True)):
        ruleset.bypass = [BypassActor("User", to_account_id(login))]
        assert ("No account but the queue's can merge into main." in await notes(token, PUSHES)) is is_only


@asynchronous
async def test_the_target_branch_of_each_queue_is_checked(app: GithubEnvironment):
    app.origin.branch("stable", base="main")
    app.acme.add_ruleset("stable rules", [rule("update")], include=["refs/heads/stable"])
    queues = QueueSetup(branch="stable"), PUSHES
    found = await problems(app, *queues)
    (refusal,) = [message for message in found if "refuses" in message]
    assert refusal.startswith('The ruleset "stable rules" refuses the queue\'s push to stable (*Restrict updates*)')
    assert any(message.startswith("No rule of the branch stable names a required check") for message in found)
    assert await warnings(app) == []
    assert len(await warnings(app, queues[0])) == 1


@asynchronous
async def test_before_the_first_queue_the_needs_of_each_landing_are_only_advice(app: GithubEnvironment):
    app.acme.add_ruleset("reviews", [pull_request_rule(1)])
    assert await problems(app) == []
    found = await notes(app)
    assert 'Before you create a queue with `landing` set to `tested_commit`: The ruleset "reviews" refuses' in found
    assert "set to `provider_merge`" not in found


# Required checks that CI does not report


@asynchronous
async def test_a_required_check_that_no_test_branch_had_is_reported(app: GithubEnvironment):
    app.acme.protections["main"] = BranchProtection(contexts=["unit", "lint", "mergeyard"])
    for reported, missing in (({"unit"}, "lint"), (set[str](), "lint and unit")):
        found = await problems(app, replace(MERGES, reported_checks=frozenset(reported)))
        assert [each.partition(" on ")[0] for each in found] == [f"CI did not report {missing}"]
        assert "run CI on pushes to `mergeyard/**`" in found[0]
    assert await problems(app, replace(MERGES, reported_checks=frozenset({"unit", "lint"}))) == []
    assert "The branch main requires lint and unit." in await notes(app, MERGES)


PULL_REQUESTS_ONLY = "A check that runs only for pull requests is never reported on a test branch"


@asynchronous
async def test_a_check_that_runs_only_for_pull_requests_is_named_before_the_first_run(app: GithubEnvironment):
    app.acme.protections["main"] = BranchProtection(contexts=["Unit", "semantic-title", "mergeyard"])
    head = app.open(1)
    for name in ("unit", "semantic-title"):
        app.acme.report_status(head, name, "success")
    app.acme.add_check_run(app.origin.tip("main"), "unit", "completed", "success")
    app.acme.push_commit("main", {"readme.md": "1"})
    for queues in ((), (PUSHES,), (MERGES,)):
        advice = [line for line in (await notes(app, *queues)).splitlines() if PULL_REQUESTS_ONLY in line]
        assert [line.partition(" on ")[0] for line in advice] == ["CI reported no semantic-title"]
        assert advice[0].endswith("or name the checks of test branches in `requiredStatuses`.")
    app.acme.report_status(app.origin.tip("main"), "Semantic-Title", "failure")
    assert PULL_REQUESTS_ONLY not in await notes(app, PUSHES)


@pytest.mark.parametrize(
    "queue",
    [replace(PUSHES, needs_push_checks=False), replace(PUSHES, reported_checks=frozenset({"unit"}))],
)
@asynchronous
async def test_the_last_commits_say_nothing_where_test_branches_need_no_checks_of_pushes_or_had_them(
    app: GithubEnvironment, queue: QueueSetup
):
    assert PULL_REQUESTS_ONLY in await notes(app, PUSHES)
    assert PULL_REQUESTS_ONLY not in await notes(app, queue)


@asynchronous
async def test_checks_of_the_last_commits_that_github_hides_give_no_advice(app: GithubEnvironment):
    empty = RespondsWith(409, body=b'{"message": "Git Repository is empty."}')
    app.github.faults.plan(empty, "app/commits$", times=ALWAYS)
    assert PULL_REQUESTS_ONLY not in await notes(app, PUSHES)


@asynchronous
async def test_the_names_of_checks_can_be_spelled_in_another_case(app: GithubEnvironment):
    app.acme.protections["main"] = BranchProtection(contexts=["Unit", "Mergeyard"])
    assert await problems(app, replace(MERGES, reported_checks=frozenset({"unit"}))) == []
    assert "The branch main requires Unit." in await notes(app, MERGES)
    assert "requires the check mergeyard, and so refuses" in str(await problems(app, PUSHES))


# Test branches


@asynchronous
async def test_a_plan_without_rules_gets_advice(app: GithubEnvironment):
    message = b'{"message": "Upgrade to GitHub Pro or make this repository public to enable this feature."}'
    app.github.faults.plan(RespondsWith(403, body=message), "/rules/", times=ALWAYS)
    assert "no branch rules and no draft pull requests" in await notes(app, MERGES)
    assert "No ruleset refuses test branches" not in await notes(app, MERGES)
    app.github.faults.clear()
    assert "no draft pull requests" not in await notes(app, MERGES)


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (rule("creation"), "*Restrict creations*"),
        (rule("deletion"), "*Restrict deletions*"),
        (rule("update"), "*Restrict updates*"),
        (rule("non_fast_forward"), "*Block force pushes*"),
        (pull_request_rule(), "*Require a pull request before merging*"),
        (rule("merge_queue"), "*Require merge queue*"),
        (rule("required_signatures"), "*Require signed commits*"),
        (required_checks_rule("unit"), "*Require status checks to pass*"),
        (rule("workflows", workflows=[]), "workflows"),
        (rule("branch_name_pattern", operator="starts_with", pattern="topic/"), "branch_name_pattern"),
        (rule("branch_name_pattern", operator="ends_with", pattern="-wip"), "branch_name_pattern"),
        (rule("branch_name_pattern", operator="contains", pattern="/pr-", negate=True), "branch_name_pattern"),
    ],
)
@asynchronous
async def test_a_ruleset_that_refuses_test_branches_is_reported(app: GithubEnvironment, data: RuleData, title: str):
    app.acme.add_ruleset("all branches", [data], include=["~ALL"], exclude=["refs/heads/main"])
    (message,) = await problems(app, MERGES)
    assert message.startswith(f'The ruleset "all branches" refuses test branches ({title}')


@asynchronous
async def test_test_branches_need_an_exception_or_a_bypass(app: GithubEnvironment):
    ruleset = app.acme.add_ruleset("all branches", [rule("deletion")], include=["~ALL"])
    (message,) = await problems(app, MERGES)
    assert "exclude `mergeyard/**/*` there, or put the app mergeyard-test on its bypass list" in message
    ruleset.bypass = [us("pull_request")]
    assert len(await problems(app, MERGES)) == 1
    ruleset.bypass = [us()]
    assert await problems(app, MERGES) == []
    ruleset.bypass = []
    ruleset.exclude.append("refs/heads/mergeyard/**/*")
    assert await problems(app, MERGES) == []
    assert "No ruleset refuses test branches." in await notes(app, MERGES)


@asynchronous
async def test_other_rules_over_test_branches_are_fine(app: GithubEnvironment):
    checks = required_checks_rule("unit")
    checks["parameters"]["do_not_enforce_on_create"] = True
    rules = [
        rule("copilot_code_review"),
        rule("branch_name_pattern", operator="starts_with", pattern="mergeyard/"),
        rule("branch_name_pattern", operator="starts_with", pattern="topic/", negate=True),
        checks,
    ]
    app.acme.add_ruleset("all branches", rules, include=["refs/heads/mergeyard/**/*"])
    assert await problems(app, MERGES) == []
    assert "No ruleset refuses test branches." in await notes(app, MERGES)


@pytest.mark.parametrize(
    "data",
    [
        rule("branch_name_pattern", operator="regex", pattern="^topic/.*"),
        rule("commit_message_pattern", operator="regex", pattern="^ABC-"),
    ],
)
@asynchronous
async def test_patterns_that_are_not_evaluated_give_advice(app: GithubEnvironment, data: RuleData):
    app.acme.add_ruleset("names", [data], include=["refs/heads/mergeyard/**/*"])
    assert await problems(app, MERGES) == []
    assert 'The ruleset "names" can refuse test branches' in await notes(app, MERGES)


# Older servers


@pytest.mark.parametrize(
    ("ruleset", "can_bypass"),
    [
        ({"current_user_can_bypass": "never", "bypass_actors": [OUR_APP]}, False),
        ({"current_user_can_bypass": "exempt"}, True),
        ({"bypass_actors": [OUR_APP]}, True),
        ({"bypass_actors": [{"actor_type": "Integration", "actor_id": 8}]}, None),
        ({"bypass_actors": []}, False),
        ({}, None),
    ],
)
def test_an_older_server_shows_by_the_list_of_actors_whether_we_can_bypass(
    ruleset: dict[str, Any], can_bypass: bool | None
):
    assert msgspec.convert({"name": "main"} | ruleset, Ruleset).can_be_bypassed_by(7) is can_bypass


@pytest.mark.parametrize(
    ("facts", "bypass"),
    [
        ({"current_user_can_bypass": "never", "bypass_actors": [OUR_APP]}, "never"),
        ({"bypass_actors": [OUR_APP]}, "always"),
        ({"bypass_actors": [OUR_APP | {"bypass_mode": "exempt"}]}, "exempt"),
        ({"bypass_actors": [OUR_APP | {"bypass_mode": "pull_request"}]}, "pull_requests_only"),
        ({"bypass_actors": [OUR_APP | {"actor_id": 8}]}, None),
        ({"bypass_actors": []}, "never"),
        ({}, None),
    ],
)
def test_an_older_server_shows_by_the_list_of_actors_how_we_can_bypass(facts: dict[str, Any], bypass: str | None):
    ruleset = msgspec.convert({"name": "main"} | facts, Ruleset)
    assert apply_ruleset([Rule("update", ruleset_id=1)], ruleset, 7).bypass == bypass


def test_long_lists_and_names_are_cut():
    actors = tuple(WireActor("Team", number) for number in range(30))
    ruleset = AppliedRuleset("the ruleset x", (Rule("update"),), "never", actors)
    target, account = Target("main", (ruleset,), True, frozenset()), Account("the app x", "x[bot]", 7)
    listed = next(iter(judge_target(target, account))).message
    assert listed.endswith("team 9 (always) and 20 more.")
    ruleset = replace(ruleset, rules=(Rule("x" * 1000),))
    assert all(len(each.message) < 600 for each in judge_target(replace(target, rulesets=(ruleset,)), account))
