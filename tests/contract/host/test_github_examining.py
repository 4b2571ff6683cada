"""What `host check` says about GitHub: what is missing, and what to do about it, in plain words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.guards import Ruleset
from mergeyard.domain.repositories import Repo
from tests.contract.host.github_stage import EVENTS, NAME, SECRET, TOKEN, GithubStage, github_app_stage, keys
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers
from tests.support.forges.github.facts import AppFacts, Guard, Hook
from tests.support.forges.github.fake import EVERYTHING

US = "mergeyard-test[bot]"
OUR_APP = {"actor_type": "Integration", "actor_id": 7}
TEAM = {"file_patterns": ["*"], "minimum_approvals": 1, "reviewer": {"id": 3, "type": "Team"}}
REVIEWS = Guard(contexts=["unit"], approvals=1)
ADDRESS = "https://queue.example/hooks/github/github.example"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[GithubStage]:
    with github_app_stage(tmp_path) as stage:
        app_of(stage).hooks.append(Hook(address=ADDRESS, secret=SECRET, events=EVENTS))
        stage.acme.guards["main"] = Guard(contexts=["unit"])
        yield stage


@pytest.fixture
def token(github: GithubStage) -> GithubStage:
    github.acme.hooks.append(Hook(address=ADDRESS, secret=SECRET, events=EVENTS))
    github.acme.guards["main"] = Guard(contexts=["unit"])
    return github


def app_of(stage: GithubStage) -> AppFacts:
    assert stage.github.doors.app
    return stage.github.doors.app


async def complaints(stage: GithubStage, **access: Any) -> list[str]:
    async with stage.host(**access) as host:
        return [finding.words for finding in await host.examine(stage.repo) if not finding.fine]


# As an app


@asynchronous
async def test_an_app_that_has_everything_is_fine(app: GithubStage):
    assert await complaints(app) == []
    async with app.host() as host:
        findings = await host.examine(None)
        assert all(finding.fine for finding in findings)
        assert any("signed in as the app mergeyard-test" in finding.words for finding in findings)


@pytest.mark.parametrize(
    ("permission", "level", "words"),
    [
        ("contents", "read", "Contents: Read and write is missing, which is needed to push test branches"),
        ("pull_requests", "read", "Pull requests: Read and write is missing"),
        ("statuses", None, "Commit statuses: Read and write is missing"),
        ("checks", None, "Checks: Read-only is missing"),
        ("workflows", None, "Workflows: Read and write is missing"),
    ],
)
@asynchronous
async def test_a_permission_that_is_missing_is_named_with_its_use(
    app: GithubStage, permission: str, level: str | None, words: str
):
    granted = app_of(app).permissions
    del granted[permission]
    granted |= {permission: level} if level else {}
    found = await complaints(app)
    assert any(complaint.startswith(words) for complaint in found)
    assert any("accept" in complaint for complaint in found)


@asynchronous
async def test_events_a_webhook_and_a_secret_that_are_missing_are_named(app: GithubStage):
    app_of(app).events = ["push"]
    app_of(app).hooks.clear()
    secret, events, hook = await complaints(app, webhook_secret=None)
    assert "`webhook_secret_file` is not set" in secret
    assert "pull_request, pull_request_review, issue_comment, status, check_run and check_suite" in events
    assert "/hooks/github/" in hook


@asynchronous
async def test_a_webhook_that_sends_forms_is_named(app: GithubStage):
    app_of(app).hooks[0].content_type = "form"
    (words,) = await complaints(app)
    assert "application/json" in words


@asynchronous
async def test_an_app_that_is_not_installed_or_suspended_is_told_so(app: GithubStage):
    app_of(app).suspended = True
    assert "unsuspend" in (await complaints(app))[0]
    app_of(app).installed_in.clear()
    (words,) = await complaints(app)
    assert "install it there" in words


@asynchronous
async def test_a_wrong_key_is_told_and_nothing_else_is_asked(app: GithubStage):
    app_of(app).public_key = "another"
    (words,) = await complaints(app)
    assert "401" in words
    assert keys()[0] not in words


# With a token


@asynchronous
async def test_a_token_that_has_everything_is_fine(token: GithubStage):
    assert await complaints(token) == []


@asynchronous
async def test_a_token_that_is_wrong_is_told_so(token: GithubStage):
    (words,) = await complaints(token, token="expired")
    assert "Bad credentials" in words
    assert "expired" not in words


@asynchronous
async def test_a_repository_that_the_token_does_not_see_is_named(token: GithubStage):
    async with token.host() as host:
        findings = await host.examine(Repo(NAME, "acme", "other"))
    assert any("does not see" in finding.words for finding in findings if not finding.fine)


@pytest.mark.parametrize(
    ("permission", "words"),
    [("checks", "Checks cannot be read"), ("issues", "Issues cannot be read"), ("statuses", "Commit statuses cannot")],
)
@asynchronous
async def test_what_the_token_may_not_read_is_named(token: GithubStage, permission: str, words: str):
    token.github.token(TOKEN, "ada", {name: level for name, level in EVERYTHING.items() if name != permission})
    (complaint,) = await complaints(token)
    assert complaint.startswith(words)
    assert "grant it to the token" in complaint


@asynchronous
async def test_the_permission_that_github_names_is_passed_on(token: GithubStage):
    headers = {"x-accepted-github-permissions": "checks=read"}
    token.github.faults.plan(Answers(403, headers), "/check-runs")
    (complaint,) = await complaints(token)
    assert "checks=read" in complaint


@asynchronous
async def test_an_owner_who_may_not_push_is_named(token: GithubStage):
    token.acme.roles["ada"] = "triage"
    (words,) = await complaints(token)
    assert "may not push" in words


@asynchronous
async def test_a_webhook_that_leads_elsewhere_or_tells_too_little_is_named(token: GithubStage):
    token.acme.hooks[0].events = ["push"]
    assert "do not tell of" in (await complaints(token))[0]
    token.acme.hooks[0].content_type = "form"
    assert "application/json" in (await complaints(token))[0]
    token.acme.hooks[0].active = False
    assert "no active webhook leads to us" in (await complaints(token))[0]


@asynchronous
async def test_a_token_that_may_not_see_webhooks_is_no_complaint_but_told(token: GithubStage):
    token.github.faults.plan(Answers(403), "/hooks")
    async with token.host() as host:
        findings = await host.examine(token.repo)
    assert any("see yourself" in finding.words for finding in findings)
    assert all(finding.fine for finding in findings)


# Either way


@asynchronous
async def test_a_branch_without_required_statuses_is_named_for_nothing_would_merge(token: GithubStage):
    token.acme.guards.clear()
    (words,) = await complaints(token)
    assert "requiredStatuses" in words


@asynchronous
async def test_a_github_that_does_not_answer_is_a_finding_and_no_crash(token: GithubStage):
    token.github.faults.plan(Answers(503))
    (words,) = await complaints(token)
    assert "503" in words


# Reviews that we can bypass


@pytest.mark.parametrize("mode", ["always", "pull_request", "exempt"])
@asynchronous
async def test_an_app_that_can_bypass_a_ruleset_with_reviews_is_warned(app: GithubStage, mode: str):
    app.acme.rulesets["main"] = replace(REVIEWS, bypass={US: mode})
    (words,) = await complaints(app)
    assert words.startswith("the app mergeyard-test can bypass the ruleset reviews and checks, which requires reviews")
    assert "unapproved pull request" in words
    assert "set `landing` to `provider_merge`" in words
    async with app.host() as host:
        assert await host.branch_warnings(app.repo, "main") == [words]
        assert await host.branch_warnings(app.repo, "other") == []


@asynchronous
async def test_a_bypass_of_a_ruleset_without_reviews_is_fine(app: GithubStage):
    app.acme.update_rulesets["main"] = Guard(bypass={US: "exempt"})
    app.acme.rulesets["main"] = REVIEWS
    assert await complaints(app) == []
    app.acme.rulesets["main"] = Guard(contexts=["unit"], bypass={US: "always"})
    assert await complaints(app) == []


@pytest.mark.parametrize(
    "reviews",
    [{"require_code_owner_review": True}, {"require_last_push_approval": True}, {"required_reviewers": [TEAM]}],
)
@asynchronous
async def test_other_kinds_of_required_reviews_are_reviews_too(app: GithubStage, reviews: dict[str, Any]):
    app.acme.rulesets["main"] = Guard(contexts=["unit"], reviews=reviews, bypass={US: "always"})
    (words,) = await complaints(app)
    assert "can bypass the ruleset" in words


@asynchronous
async def test_an_app_on_the_bypass_list_of_classic_protection_is_warned(app: GithubStage):
    app.acme.guards["main"] = replace(REVIEWS, bypass={"another[bot]": "", "linus": ""})
    assert await complaints(app) == []
    app.acme.guards["main"] = replace(REVIEWS, bypass={US: ""})
    (words,) = await complaints(app)
    assert "the app mergeyard-test can bypass the branch protection rule" in words


@asynchronous
async def test_an_account_that_administers_is_warned_where_reviews_do_not_apply_to_administrators(token: GithubStage):
    token.acme.guards["main"] = REVIEWS
    assert await complaints(token) == []
    token.acme.guards["main"] = replace(REVIEWS, enforce_admins=False)
    (words,) = await complaints(token)
    assert words.startswith("the account ada administers the repository")
    assert "Do not allow bypassing the above settings" in words
    token.acme.roles["ada"] = "write"
    assert await complaints(token) == []


@asynchronous
async def test_an_account_on_the_bypass_list_is_warned(token: GithubStage):
    token.acme.guards["main"] = replace(REVIEWS, bypass={"ada": ""})
    assert "the account ada can bypass the branch protection rule" in (await complaints(token))[0]
    token.acme.guards["main"] = Guard(contexts=["unit"])
    token.acme.rulesets["main"] = replace(REVIEWS, bypass={"ada": "always"})
    assert "the account ada can bypass the ruleset" in (await complaints(token))[0]


@asynchronous
async def test_where_github_does_not_show_who_can_bypass_it_is_said_and_no_complaint(app: GithubStage):
    app.acme.rulesets["main"] = REVIEWS
    app.github.faults.plan(Answers(404), "/rulesets/")
    async with app.host() as host:
        findings = await host.examine(app.repo)
    assert all(finding.fine for finding in findings)
    assert any("does not show whether the app mergeyard-test can bypass" in finding.words for finding in findings)


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
def test_an_older_server_is_believed_only_as_far_as_it_shows_who_can_bypass(
    ruleset: dict[str, Any], can_bypass: bool | None
):
    assert msgspec.convert({"name": "main"} | ruleset, Ruleset).can_be_bypassed_by(7) is can_bypass
