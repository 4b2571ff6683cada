"""The fake GitHub sends only what GitHub's API description allows, and accepts only what is described.

Where it behaves in a way that the description does not have, the test names the source: a page of github/docs, or,
where documents are silent, a report of others about the real GitHub. The pages, below `content/`:

- Repository limits, Renaming a repository: repositories/creating-and-managing-repositories
- Troubleshooting the REST API, Using the REST API to interact with checks: rest
- Stacked pull requests APIs and webhooks, Pull request merges: pull-requests/reference
- Suspending a GitHub App installation: apps/maintaining-github-apps
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest

from mergeyard.domain.timestamps import SECOND
from tests.contract.host.github_environment import (
    APP,
    TOKEN,
    GithubEnvironment,
    github_app_environment,
    github_environment,
    keys,
)
from tests.support.forges.github import payloads
from tests.support.forges.github.api_routes import ROUTES
from tests.support.forges.github.description import ABSENT, DescriptionMismatch, check_described, fill_defaults, models
from tests.support.forges.github.world import PublicApp, to_account_id

pytestmark = pytest.mark.long


def ask(env: GithubEnvironment, method: str, path: str, body: Any = None, token: str = TOKEN) -> httpx2.Response:
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.request(method, env.github.api_url + path, json=body, headers=headers, trust_env=False, verify=False)


# Responses


def test_a_response_that_lacks_a_field_is_caught(github: GithubEnvironment):
    github.open(1)
    answer = payloads.pull_request(github.acme, github.change())
    assert check_described(models.PullRequest, answer) is answer
    del answer["mergeable"]
    with pytest.raises(DescriptionMismatch, match="mergeable"):
        check_described(models.PullRequest, answer)


def test_a_field_of_another_type_is_caught(github: GithubEnvironment):
    github.open(1)
    answer = payloads.pull_request(github.acme, github.change())
    for wrong in ({"number": "1"}, {"state": "merged"}, {"draft": "no"}, {"user": None}, {"updated_at": "today"}):
        with pytest.raises(DescriptionMismatch, match=next(iter(wrong))):
            check_described(models.PullRequest, answer | wrong)


def test_a_field_that_github_never_had_is_caught_however_deep(github: GithubEnvironment):
    github.open(1)
    answer = payloads.pull_request(github.acme, github.change())
    answer["head"]["branch"] = "topic-1"
    with pytest.raises(DescriptionMismatch, match=r"\.head\.branch"):
        check_described(models.PullRequest, answer)
    with pytest.raises(DescriptionMismatch, match=r"\[\]\.colour"):
        check_described(list[models.Label], [fill_defaults(models.Label, {"colour": "red"})])


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
def test_generated_defaults_match_the_api_description(row: Any):
    given: Any = {"object": {"sha": "1" * 40}} if row.response_model is models.GitRef else ABSENT
    check_described(row.response_model, fill_defaults(row.response_model, given))


def test_an_undescribed_response_fails_the_test(tmp_path: Path):
    with github_environment(tmp_path) as env:
        env.open(1, title=1)
        assert ask(env, "GET", "/repos/acme/app/pulls/1").status_code == 500
        with pytest.raises(AssertionError, match="title"):
            env.github.check_mismatches()
        env.github.mismatches.clear()


# Requests


def test_an_undescribed_request_is_an_error_and_recorded(github: GithubEnvironment):
    github.open(1)
    body = {"merge_method": "fast-forward"}
    assert ask(github, "PUT", "/repos/acme/app/pulls/1/merge", body).status_code == 500
    assert ask(github, "GET", "/repos/acme/app/wishes").status_code == 500
    first, second = github.github.mismatches
    assert ("merge_method" in first, "no such request" in second) == (True, True)
    github.github.mismatches.clear()


def test_an_unknown_token_is_rejected(github: GithubEnvironment):
    response = httpx2.get(f"{github.github.api_url}/repos/acme/app", trust_env=False)
    assert (response.status_code, response.json()["message"]) == (401, "Bad credentials")


@pytest.mark.parametrize(
    ("iat", "exp", "enters"), [(-60, 480, True), (-60, 620, False), (-700, -20, False), (60, 500, False)]
)
def test_an_app_jwt_is_accepted_for_ten_minutes_at_most(tmp_path: Path, iat: int, exp: int, enters: bool):
    with github_app_environment(tmp_path) as env:
        now = env.github.clock.now() // SECOND
        token = jwt.encode({"iat": now + iat, "exp": now + exp, "iss": APP}, keys()[0], algorithm="RS256")
        assert (env.github.auth.find_caller(token) is not None) is enters


def test_concurrent_requests_are_served(github: GithubEnvironment):
    github.open(1)

    async def ask_often() -> list[int]:
        async with httpx2.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {TOKEN}"}) as client:
            address = f"{github.github.api_url}/repos/acme/app/pulls/1"
            return [answer.status_code for answer in await asyncio.gather(*(client.get(address) for _ in range(10)))]

    assert asyncio.run(ask_often()) == [200] * 10


# Pull requests


def open_with_api(env: GithubEnvironment, head: str, base: str = "main", *, draft: bool = False) -> httpx2.Response:
    body = {"title": "A test", "body": "", "head": head, "base": base, "draft": draft}
    return ask(env, "POST", "/repos/acme/app/pulls", body)


def test_some_repositories_have_no_drafts(github: GithubEnvironment):
    """Source: the API description, "Create a pull request", for the plans. The words, which are not in `errors`: issue
    260 of cynkra/fledge."""
    github.origin.branch("topic", base="main", files={"b.txt": "1"})
    github.acme.drafts_supported = False
    refused = open_with_api(github, "topic", draft=True)
    message = "Draft pull requests are not supported in this repository."
    assert (refused.status_code, refused.json()["message"], "errors" in refused.json()) == (422, message, False)
    assert open_with_api(github, "topic").json()["draft"] is False


def test_a_pull_request_needs_commits_and_two_branches_and_is_opened_once(github: GithubEnvironment):
    """Source: github/docs, "Troubleshooting the REST API", for the form. The words: issue 91 of
    piceaTech/node-gitlab-2-github, issue 86 of vsoch/pull-request-action, pull request 10 of
    stackitcloud/cloud-provider-stackit."""
    github.origin.branch("same", base="main")
    github.origin.branch("topic", base="main", files={"b.txt": "1"})
    github.origin.branch("release", base="main")
    statuses = [open_with_api(github, "topic", base).status_code for base in ("main", "release")]
    refused = [open_with_api(github, "same"), open_with_api(github, "topic"), open_with_api(github, "missing")]
    assert (statuses, [each.status_code for each in refused]) == ([201, 201], [422, 422, 422])
    first, second, third = [each.json()["errors"][0] for each in refused]
    assert first["message"] == "No commits between main and same"
    assert second["message"] == "A pull request already exists for acme:topic."
    assert (third["field"], third["code"]) == ("head", "invalid")
    github.close(1)
    assert open_with_api(github, "topic").status_code == 201


@pytest.mark.parametrize("branch", ["main", "topic-1"])
def test_the_mergeability_is_unknown_until_it_was_read_once_after_a_push(github: GithubEnvironment, branch: str):
    """Source: the API description, "Get a pull request": a read starts the computation and does not wait for it."""
    github.open(1)
    github.open(2, base="release")

    def read(number: int) -> tuple[bool | None, str]:
        answer = ask(github, "GET", f"/repos/acme/app/pulls/{number}").json()
        return answer["mergeable"], answer["mergeable_state"]

    assert read(1) == (True, "clean")
    github.acme.push_commit(branch, {"other.txt": "1"})
    assert [read(1), read(1), read(2)] == [(None, "unknown"), (True, "clean"), (True, "clean")]
    github.acme.unknown_reads_after_move = 0
    github.acme.push_commit(branch, {"other.txt": "2"})
    assert read(1) == (True, "clean")


def test_a_stacked_pull_request_cannot_be_merged_alone(github: GithubEnvironment):
    """Source: github/docs, "Stacked pull requests APIs and webhooks", for the member and that the request is refused.
    The status and the words are in no document: issue 923 of chdsbd/kodiak."""
    github.open(1)
    github.open(2, base="topic-1")
    assert "stack" not in ask(github, "GET", "/repos/acme/app/pulls/1").json()
    github.acme.stack(1, 2)
    stack = ask(github, "GET", "/repos/acme/app/pulls/2").json()["stack"]
    assert (stack["size"], stack["position"], stack["base"]["ref"]) == (2, 2, "main")
    refused = ask(github, "PUT", "/repos/acme/app/pulls/1/merge", {})
    assert (refused.status_code, "asynchronous merge endpoint" in refused.json()["message"]) == (403, True)


def test_github_rebases_at_most_a_hundred_commits(github: GithubEnvironment):
    """Source: github/docs, "Repository limits"; pull request 181 of cloudflare/workers-py, which measured `rebaseable`.
    No document has the words of the refusal."""
    github.open(1)
    github.change().commits = 101
    shown = ask(github, "GET", "/repos/acme/app/pulls/1").json()
    assert (shown["commits"], shown["rebaseable"], shown["mergeable"]) == (101, False, True)
    assert ask(github, "PUT", "/repos/acme/app/pulls/1/merge", {"merge_method": "rebase"}).status_code == 405
    github.change().commits = 100
    assert ask(github, "PUT", "/repos/acme/app/pulls/1/merge", {"merge_method": "rebase"}).is_success


@pytest.mark.parametrize("closes_first", [True, False])
def test_a_push_that_moves_the_base_to_a_head_and_deletes_its_branch_merges_it(
    github: GithubEnvironment, closes_first: bool
):
    """Source: github/docs, "Pull request merges", indirect merges. Documents do not say whether GitHub first sees that
    the base contains the head, or that the branch is gone; the fake takes the order that a queue has to avoid."""
    branch = "mergeyard/pr-1/0b8f"
    tip = github.origin.branch(branch, base="main", files={"b.txt": "1"})
    assert open_with_api(github, branch, draft=True).status_code == 201
    if closes_first:
        github.close(1)
    main = github.origin.tip("main")
    github.origin.set_ref("main", tip)
    github.origin.delete_ref(branch)
    github.acme.on_push({f"refs/heads/{branch}": (tip, None), "refs/heads/main": (main, tip)})
    shown = ask(github, "GET", "/repos/acme/app/pulls/1").json()
    assert (shown["state"], shown["merged"]) == ("closed", not closes_first)


# Commits


def test_the_avatar_of_a_commit_status_shows_the_app_only_if_it_has_a_logo(github: GithubEnvironment):
    """Source: issue 2125 of refined-github/refined-github: an app without a picture shows that of its developer. The
    API description has `creator` only in the list of all statuses."""
    head = github.open(1)
    github.github.auth.public_apps["jenkins"] = PublicApp(id=77, slug="jenkins", has_logo=False)
    github.acme.report_status(head, "with logo", "success", app=7)
    github.acme.report_status(head, "without logo", "success", app=77)
    github.acme.report_status(head, "user", "success", creator="eve")
    shown = ask(github, "GET", f"/repos/acme/app/commits/{head}/status").json()["statuses"]
    paths = [each["avatar_url"].split("/", 3)[3].split("?")[0] for each in shown]
    assert paths == ["in/7", f"u/{to_account_id('acme')}", f"u/{to_account_id('eve')}"]
    assert not any("creator" in each for each in shown)
    listed = ask(github, "GET", f"/repos/acme/app/commits/{head}/statuses").json()
    creators = [(each["creator"]["login"], each["creator"]["type"]) for each in listed]
    assert creators == [("eve", "User"), ("jenkins[bot]", "Bot"), ("app-7[bot]", "Bot")]
    assert [each["id"] for each in listed] == [each["id"] for each in reversed(shown)]


def test_all_statuses_of_a_commit_are_listed_in_pages_the_newest_first(github: GithubEnvironment):
    """Source: the API description, "List commit statuses for a reference"."""
    head = github.open(1)
    for state in ("pending", "failure", "success"):
        github.acme.report_status(head, "unit", state)
    page = ask(github, "GET", "/repos/acme/app/commits/topic-1/statuses?per_page=2")
    assert [each["state"] for each in page.json()] == ["success", "failure"]
    assert page.links["next"]["url"].endswith("/statuses?per_page=2&page=2")
    assert len(ask(github, "GET", f"/repos/acme/app/commits/{head}/status").json()["statuses"]) == 1


def test_apps_are_found_by_slug(tmp_path: Path):
    """Source: the API description, "Get an app": it needs no permission."""
    with github_app_environment(tmp_path) as env:
        env.github.add_token(TOKEN, "ada", {})
        found = {slug: ask(env, "GET", f"/apps/{slug}") for slug in ("mergeyard-test", "github-actions", "app-7", "x")}
        assert [each.status_code for each in found.values()] == [200, 200, 200, 404]
        assert [each.json().get("id") for each in found.values()] == [int(APP), 15368, 7, None]


def test_a_status_that_the_app_sets_is_by_its_bot(tmp_path: Path):
    with github_app_environment(tmp_path) as env:
        head = env.open(1)
        token, _ = env.github.auth.issue_token(99, None, None) or ("", 0)
        body = {"state": "success", "context": "mergeyard"}
        answer = ask(env, "POST", f"/repos/acme/app/statuses/{head}", body, token).json()
        assert (answer["creator"]["login"], answer["creator"]["type"]) == ("mergeyard-test[bot]", "Bot")


@pytest.mark.parametrize("conclusion", ["startup_failure", "failure"])
def test_a_workflow_that_cannot_start_is_a_check_suite_without_check_runs(github: GithubEnvironment, conclusion: str):
    """Source: github/docs, "Using the REST API to interact with checks", for `startup_failure`. The other conclusion:
    pull request 1737 of hub4j/github-api."""
    head = github.open(1)
    github.acme.add_check_run(head, "unit", conclusion="success", app="Jenkins", app_id=77)
    github.acme.add_check_run(head, "lint", conclusion="failure", app="Jenkins", app_id=77)
    github.acme.fail_startup(head, conclusion)
    github.acme.add_check_suite(head, "queued")
    suites = ask(github, "GET", f"/repos/acme/app/commits/{head}/check-suites").json()["check_suites"]
    facts = [(each["app"]["id"], each["conclusion"], each["latest_check_runs_count"]) for each in suites]
    assert facts == [(77, "failure", 2), (15368, conclusion, 0), (15368, None, 0)]
    assert len(ask(github, "GET", f"/repos/acme/app/commits/{head}/check-runs").json()["check_runs"]) == 2
    selected = ask(github, "GET", f"/repos/acme/app/commits/{head}/check-suites?app_id=77").json()
    assert selected["total_count"] == 1


@pytest.mark.parametrize("kind", ["status", "statuses", "check-runs", "check-suites"])
def test_an_unknown_commit_has_no_results(github: GithubEnvironment, kind: str):
    """The words: issue 1344 of yegor256/rultor for reads, issue 141 of rust-lang/homu for writes. The API description
    does not say with which status each of these reads is refused."""
    refused = ask(github, "GET", f"/repos/acme/app/commits/{'1' * 40}/{kind}")
    assert (refused.status_code, refused.json()["message"]) == (422, f"No commit found for SHA: {'1' * 40}")


# Users and apps


def read_permission(env: GithubEnvironment, person: str) -> httpx2.Response:
    return ask(env, "GET", f"/repos/acme/app/collaborators/{person}/permission")


@pytest.mark.parametrize("person", ["renovate[bot]", "gone"])
def test_bots_and_unknown_logins_have_no_permission(github: GithubEnvironment, person: str):
    """Source: pull request 231 of chdsbd/kodiak: this request does not work with bots. The words are not documented."""
    github.github.auth.missing_users.add("gone")
    assert read_permission(github, person).status_code == 404


def test_a_stranger_can_read_only_public_repositories(github: GithubEnvironment):
    """Source: the API description, "Get repository permissions for a user", for `none`; pull request 14 of
    aws-ia/cloudformation-github-resource-providers for public repositories."""
    assert read_permission(github, "eve").json()["permission"] == "read"
    github.acme.is_private = True
    answer = read_permission(github, "eve").json()
    assert (answer["permission"], answer["user"]["permissions"]["pull"]) == ("none", False)


@pytest.mark.parametrize(
    ("role", "permission", "rights"),
    [
        ("read", "read", {"pull"}),
        ("triage", "read", {"pull", "triage"}),
        ("write", "write", {"pull", "triage", "push"}),
        ("maintain", "write", {"pull", "triage", "push", "maintain"}),
        ("admin", "admin", {"pull", "triage", "push", "maintain", "admin"}),
    ],
)
def test_a_custom_role_has_its_own_name_and_the_rights_of_its_base(
    github: GithubEnvironment, role: str, permission: str, rights: set[str]
):
    """Source: the API description, "Get repository permissions for a user"."""
    github.acme.roles["lin"] = role
    assert read_permission(github, "lin").json()["role_name"] == role
    github.acme.role_names["lin"] = "release captain"
    answer = read_permission(github, "lin").json()
    assert (answer["permission"], answer["role_name"]) == (permission, "release captain")
    assert {name for name, granted in answer["user"]["permissions"].items() if granted} == rights


def test_a_suspended_installation_is_refused(tmp_path: Path):
    """Source: github/docs, "Suspending a GitHub App installation"; pull request 1307 of octokit/octokit.rb for the
    words."""
    with github_app_environment(tmp_path) as env:
        token, _ = env.github.auth.issue_token(99, None, None) or ("", 0)
        assert ask(env, "GET", "/repos/acme/app", token=token).status_code == 200
        assert env.github.auth.app is not None
        env.github.auth.app.suspended = True
        now = env.github.clock.now() // SECOND
        as_app = jwt.encode({"iat": now, "exp": now + 60, "iss": APP}, keys()[0], algorithm="RS256")
        refused = [
            ask(env, "POST", "/app/installations/99/access_tokens", {}, as_app),
            ask(env, "GET", "/repos/acme/app", token=token),
        ]
        message = "This installation has been suspended"
        assert [(each.status_code, each.json()["message"]) for each in refused] == [(403, message)] * 2
