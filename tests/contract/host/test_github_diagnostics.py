"""What `host check` reports about GitHub: what is missing, and what to do about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.rules import Ruleset
from mergeyard.domain.ids import Repo
from tests.contract.host.github_environment import (
    EVENTS,
    NAME,
    SECRET,
    TOKEN,
    GithubEnvironment,
    github_app_environment,
    keys,
)
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.github.fake import ALL_PERMISSIONS
from tests.support.forges.github.world import BranchProtection, Hook, RegisteredApp

US = "mergeyard-test[bot]"
OUR_APP = {"actor_type": "Integration", "actor_id": 7}
TEAM = {"file_patterns": ["*"], "minimum_approvals": 1, "reviewer": {"id": 3, "type": "Team"}}
REVIEWS = BranchProtection(contexts=["unit"], approvals=1)
ADDRESS = "https://queue.example/hooks/github/github.example"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[GithubEnvironment]:
    with github_app_environment(tmp_path) as env:
        app_of(env).hooks.append(Hook(url=ADDRESS, secret=SECRET, events=EVENTS))
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


async def problems(env: GithubEnvironment, **access: Any) -> list[str]:
    async with env.host(**access) as host:
        return [finding.message for finding in await host.diagnose(env.repo) if not finding.ok]


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
    assert "pull_request, pull_request_review, issue_comment, status, check_run and check_suite" in events
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
    token.acme.hooks[0].active = False
    assert "No active webhook sends events to Mergeyard" in (await problems(token))[0]


@asynchronous
async def test_a_token_that_cannot_read_webhooks_gets_a_note_and_no_problem(token: GithubEnvironment):
    token.github.faults.plan(RespondsWith(403), "/hooks")
    async with token.host() as host:
        findings = await host.diagnose(token.repo)
    assert any("check under Settings, Webhooks" in finding.message for finding in findings)
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


# Reviews that we can bypass


@pytest.mark.parametrize("mode", ["always", "pull_request", "exempt"])
@asynchronous
async def test_an_app_that_can_bypass_a_ruleset_with_reviews_is_warned(app: GithubEnvironment, mode: str):
    app.acme.rulesets["main"] = replace(REVIEWS, bypass={US: mode})
    (message,) = await problems(app)
    assert message.startswith(
        "The app mergeyard-test can bypass the ruleset reviews and checks, which requires reviews"
    )
    assert "unapproved pull request" in message
    assert "set `landing` to `provider_merge`" in message
    async with app.host() as host:
        assert await host.branch_warnings(app.repo, "main") == [message]
        assert await host.branch_warnings(app.repo, "other") == []


@asynchronous
async def test_a_bypass_of_a_ruleset_without_reviews_is_fine(app: GithubEnvironment):
    app.acme.update_rulesets["main"] = BranchProtection(bypass={US: "exempt"})
    app.acme.rulesets["main"] = REVIEWS
    assert await problems(app) == []
    app.acme.rulesets["main"] = BranchProtection(contexts=["unit"], bypass={US: "always"})
    assert await problems(app) == []


@pytest.mark.parametrize(
    "reviews",
    [{"require_code_owner_review": True}, {"require_last_push_approval": True}, {"required_reviewers": [TEAM]}],
)
@asynchronous
async def test_other_kinds_of_required_reviews_are_reviews_too(app: GithubEnvironment, reviews: dict[str, Any]):
    app.acme.rulesets["main"] = BranchProtection(contexts=["unit"], reviews=reviews, bypass={US: "always"})
    (message,) = await problems(app)
    assert "can bypass the ruleset" in message


@asynchronous
async def test_an_app_on_the_bypass_list_of_classic_protection_is_warned(app: GithubEnvironment):
    app.acme.protections["main"] = replace(REVIEWS, bypass={"another[bot]": "", "linus": ""})
    assert await problems(app) == []
    app.acme.protections["main"] = replace(REVIEWS, bypass={US: ""})
    (message,) = await problems(app)
    assert "The app mergeyard-test can bypass the branch protection rule" in message


@asynchronous
async def test_an_account_that_administers_is_warned_where_reviews_do_not_apply_to_administrators(
    token: GithubEnvironment,
):
    token.acme.protections["main"] = REVIEWS
    assert await problems(token) == []
    token.acme.protections["main"] = replace(REVIEWS, enforce_admins=False)
    (message,) = await problems(token)
    assert message.startswith("The account ada administers the repository")
    assert "Do not allow bypassing the above settings" in message
    token.acme.roles["ada"] = "write"
    assert await problems(token) == []


@asynchronous
async def test_an_account_on_the_bypass_list_is_warned(token: GithubEnvironment):
    token.acme.protections["main"] = replace(REVIEWS, bypass={"ada": ""})
    assert "The account ada can bypass the branch protection rule" in (await problems(token))[0]
    token.acme.protections["main"] = BranchProtection(contexts=["unit"])
    token.acme.rulesets["main"] = replace(REVIEWS, bypass={"ada": "always"})
    assert "The account ada can bypass the ruleset" in (await problems(token))[0]


@asynchronous
async def test_hidden_bypass_actors_give_a_note_and_no_problem(app: GithubEnvironment):
    app.acme.rulesets["main"] = REVIEWS
    app.github.faults.plan(RespondsWith(404), "/rulesets/")
    async with app.host() as host:
        findings = await host.diagnose(app.repo)
    assert all(finding.ok for finding in findings)
    assert any("does not show whether the app mergeyard-test can bypass" in finding.message for finding in findings)


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
def test_an_older_server_gives_a_warning_only_if_it_shows_who_can_bypass(
    ruleset: dict[str, Any], can_bypass: bool | None
):
    assert msgspec.convert({"name": "main"} | ruleset, Ruleset).can_be_bypassed_by(7) is can_bypass
