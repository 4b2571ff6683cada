"""The fake GitHub limits requests, ends API versions and redirects former names, as GitHub's documents say.

Each test names its source: a page of github/docs, or, where documents are silent, a report of others about the real
GitHub. The pages, below `content/`:

- API Versions: rest/about-the-rest-api/api-versions
- Authenticating to the REST API: rest/authentication/authenticating-to-the-rest-api
- Rate limits, Best practices, Using pagination, Troubleshooting: rest/using-the-rest-api
- Renaming a repository: repositories/creating-and-managing-repositories/renaming-a-repository
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, later
from tests.contract.host.github_environment import TOKEN, GithubEnvironment, forge_config
from tests.support.clock import ManualClock
from tests.support.forges.faults import AddsHeaders
from tests.support.forges.github.fake import ALL_PERMISSIONS, FakeGithub
from tests.support.forges.github.limits import (
    DOCUMENTED_CONTENT_PER_HOUR,
    DOCUMENTED_CONTENT_PER_MINUTE,
    DOCUMENTED_POINTS_PER_MINUTE,
    VersionEnd,
)
from tests.support.forges.github.rulesets import required_checks_rule
from tests.support.forges.github.world import Caller
from tests.support.repositories import ENVIRONMENT

pytestmark = pytest.mark.long

APP = "/repos/acme/app"
OTHER = "token of grace"


class Limited(GithubEnvironment):
    """The environment with the clock of the fake, and requests to it."""

    def __init__(self, github: FakeGithub, clock: ManualClock) -> None:
        super().__init__(github, forge_config(github, token=TOKEN))
        self.clock = clock

    def wait(self, milliseconds: int) -> None:
        self.clock.move_to(later(self.clock.now(), milliseconds))

    def ask(self, method: str, path: str, body: Any = None, *, token: str = TOKEN, **headers: str) -> httpx2.Response:
        sent = {"authorization": f"Bearer {token}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        address = path if path.startswith("http") else self.github.api_url + path
        return httpx2.request(method, address, json=body, headers=sent, trust_env=False, verify=False)

    def comment(self, token: str = TOKEN) -> httpx2.Response:
        return self.ask("POST", f"{APP}/issues/1/comments", {"body": "Merged."}, token=token)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Limited]:
    clock = ManualClock()
    with FakeGithub(tmp_path, clock) as github:
        env = Limited(github, clock)
        github.add_token(TOKEN, "ada")
        github.add_token(OTHER, "grace")
        env.open(1)
        yield env


def remaining(response: httpx2.Response) -> int:
    return int(response.headers["x-ratelimit-remaining"])


# Requests


def test_each_answer_shows_the_budget_of_the_account(env: Limited):
    """Source: github/docs, "Rate limits for the REST API": 5,000 requests an hour, and five headers."""
    first, second = env.ask("GET", APP), env.ask("GET", f"{APP}/pulls/9")
    names = ("limit", "remaining", "used", "resource")
    shown = [[each.headers[f"x-ratelimit-{name}"] for name in names] for each in (first, second)]
    assert shown == [["5000", "4999", "1", "core"], ["5000", "4998", "2", "core"]]
    assert second.status_code == 404
    assert int(first.headers["x-ratelimit-reset"]) == (env.clock.now() + HOUR) // SECOND


def test_accounts_installations_and_graphql_have_budgets_of_their_own(env: Limited):
    """Source: github/docs, "Rate limits for the REST API": an installation and a user each have one, and so has the
    GraphQL API."""
    bot = "mergeyard-test[bot]"
    for owner in ("acme", "other"):
        env.github.auth.tokens[owner] = Caller(bot, ALL_PERMISSIONS, frozenset({owner}), app_id=1)
    env.ask("GET", APP)
    assert [remaining(env.ask("GET", APP, token=token)) for token in (OTHER, "acme", "other")] == [4999] * 3
    query = env.ask("POST", f"{env.github.web_url}/api/graphql", {"query": "{ rateLimit { limit } }"})
    assert (query.headers["x-ratelimit-resource"], remaining(query)) == ("graphql", 4999)


def test_an_answer_that_nothing_changed_costs_nothing(env: Limited):
    """Source: github/docs, "Best practices for using the REST API", conditional requests."""
    first = env.ask("GET", APP)
    again = env.ask("GET", APP, if_none_match=first.headers["etag"])
    assert (again.status_code, remaining(again)) == (304, remaining(first))


def test_a_used_budget_refuses_until_the_hour_is_over(env: Limited):
    """Source: github/docs, "Rate limits for the REST API", exceeding the rate limit."""
    env.github.limits.requests_per_hour = 2
    assert [env.ask("GET", APP).status_code for _ in range(3)] == [200, 200, 403]
    refused = env.ask("GET", APP)
    assert (remaining(refused), "API rate limit exceeded" in refused.json()["message"]) == (0, True)
    env.wait(HOUR)
    assert env.ask("GET", APP).status_code == 200


def test_a_used_budget_of_queries_is_an_error_in_an_answer_of_success(env: Limited):
    """Source: github/docs, "Rate limits and query limits for the GraphQL API", exceeding the rate limit."""
    query = {"query": "{ rateLimit { limit } }"}
    graphql = f"{env.github.web_url}/api/graphql"
    env.ask("POST", graphql, query)
    env.github.limits.leave(1)
    assert "data" in env.ask("POST", graphql, query).json()
    refused = env.ask("POST", graphql, query)
    assert (refused.status_code, remaining(refused)) == (200, 0)
    assert refused.json()["errors"][0]["type"] == "RATE_LIMITED"


def test_a_minute_has_so_many_points_and_a_write_costs_five(env: Limited):
    """Source: github/docs, "Rate limits for the REST API", secondary limits: 900 points a minute, a read costs one, a
    write five. The primary budget does not show it."""
    assert DOCUMENTED_POINTS_PER_MINUTE["core"] == 900
    env.github.limits.points_per_minute = {"core": 7}
    assert [env.ask("GET", APP).status_code for _ in range(2)] == [200, 200]
    assert env.comment().status_code == 201
    refused = env.ask("GET", APP)
    assert (refused.status_code, "secondary rate limit" in refused.json()["message"]) == (403, True)
    assert (refused.headers["retry-after"], remaining(refused) > 4000) == ("60", True)
    env.wait(MINUTE)
    assert env.ask("GET", APP).status_code == 200


def test_wrong_credentials_cost_nothing_and_show_no_budget(env: Limited):
    """No document says so. Source: a measurement on api.github.com, issue 273 of brekkylab/backlot, September 2026."""
    before = remaining(env.ask("GET", APP))
    wrong = env.ask("GET", APP, token="wrong")
    assert (wrong.status_code, [name for name in wrong.headers if "ratelimit" in name]) == (401, [])
    assert remaining(env.ask("GET", APP)) == before - 1


def test_many_wrong_credentials_lock_out_right_ones_for_a_while(env: Limited):
    """Source: github/docs, "Authenticating to the REST API", failed login limit. The words: issue 1248 of
    PyGithub/PyGithub. Documents do not say how many, nor for how long."""
    env.github.limits.max_failed_logins = 3
    assert [env.ask("GET", APP, token="wrong").status_code for _ in range(3)] == [401] * 3
    refused = env.ask("GET", APP)
    assert (refused.status_code, "Maximum number of login attempts exceeded" in refused.text) == (403, True)
    env.wait(env.github.limits.lockout_s * SECOND)
    assert env.ask("GET", APP).status_code == 200


def test_a_planned_header_replaces_the_one_of_the_fake(env: Limited):
    """With two values of one header a client would see neither."""
    env.github.faults.plan(AddsHeaders({"x-ratelimit-remaining": "7"}), APP)
    assert env.ask("GET", APP).headers["x-ratelimit-remaining"] == "7"


# Content


@pytest.mark.parametrize("retry_after", [60, None])
def test_an_account_can_create_so_much_content_a_minute(env: Limited, retry_after: int | None):
    """Source: github/docs, "Rate limits for the REST API", secondary limits: 80 requests that create content a minute.
    The header `retry-after` is not always there. The words: issue 62 of gr2m/helpdesk."""
    env.github.limits.content_per_minute = DOCUMENTED_CONTENT_PER_MINUTE
    env.github.limits.retry_after_s = retry_after
    for _ in range(79):
        env.github.limits.record_content("ada", is_comment=True)
    assert env.comment().status_code == 201
    refused = env.comment()
    assert (refused.status_code, "secondary rate limit" in refused.json()["message"]) == (403, True)
    assert refused.headers.get("retry-after") == (str(retry_after) if retry_after else None)
    assert remaining(refused) > 4000
    assert [env.ask("GET", APP).status_code, env.comment(OTHER).status_code] == [200, 201]
    env.wait(MINUTE)
    assert env.comment().status_code == 201


def test_every_kind_of_write_counts(env: Limited):
    """Source: github/docs, "Best practices for using the REST API", pause between mutative requests."""
    env.github.limits.content_per_minute = 4
    comment = env.comment().json()["id"]
    env.change().labels.append("ready")
    env.ask("PATCH", f"{APP}/issues/comments/{comment}", {"body": "Queued."})
    env.ask("DELETE", f"{APP}/issues/1/labels/ready")
    env.ask("PUT", f"{APP}/pulls/1/merge", {"sha": "0" * 40})
    assert env.comment().status_code == 403


def test_the_limit_of_an_hour_is_smaller_than_sixty_minutes_of_content(env: Limited):
    """Source: github/docs, "Rate limits for the REST API", secondary limits: 500 requests an hour."""
    limits = env.github.limits
    limits.content_per_minute, limits.content_per_hour = DOCUMENTED_CONTENT_PER_MINUTE, DOCUMENTED_CONTENT_PER_HOUR
    for _ in range(10):
        for _ in range(50):
            limits.record_content("ada", is_comment=False)
        env.wait(MINUTE)
    assert env.comment().status_code == 403
    env.wait(HOUR - 10 * MINUTE)
    assert env.comment().status_code == 201


def test_comments_in_a_row_are_too_quick(env: Limited):
    """The API description calls the status 422 also the answer to spam. The words: issue 4801 of cli/cli."""
    env.github.limits.comment_interval_s = 5
    assert [env.comment().status_code, env.comment(OTHER).status_code] == [201, 201]
    refused = env.comment()
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["message"]) == (422, "was submitted too quickly")
    env.wait(5 * SECOND)
    assert env.comment().status_code == 201


# API versions


def test_an_unknown_api_version_is_refused(env: Limited):
    """Source: issue 79 of expipiplus1/update-nix-fetchgit, which has the whole message."""
    refused = env.ask("GET", APP, x_github_api_version="v3")
    assert (refused.status_code, "is not a supported version" in refused.json()["message"]) == (400, True)
    assert remaining(refused) == 4999
    assert env.ask("GET", APP, x_github_api_version="2022-11-28").status_code == 200


def test_the_end_of_an_api_version_is_announced_and_then_everything_is_gone(env: Limited):
    """Source: github/docs, "API Versions": the headers `Deprecation` and `Sunset`, then 410. No document has the words
    of the 410, and no version has ended yet."""
    now = env.clock.now()
    env.github.limits.versions["2022-11-28"] = VersionEnd(now, later(now, HOUR))
    announced = env.ask("GET", f"{APP}/pulls/9", x_github_api_version="2022-11-28")
    assert announced.status_code == 404
    assert [announced.headers[name][-4:] for name in ("deprecation", "sunset")] == [" GMT", " GMT"]
    assert "sunset" not in env.ask("GET", APP, x_github_api_version="2026-03-10").headers
    env.wait(HOUR)
    assert env.ask("GET", APP, x_github_api_version="2022-11-28").status_code == 410
    assert env.ask("GET", APP).status_code == 200


# Former names


def test_a_former_name_redirects_to_the_id(env: Limited):
    """Source: github/docs, "Best practices for using the REST API", follow redirects; the location and the status 307:
    pull request 85 of 18F/charlie."""
    ruleset = env.acme.add_ruleset("checks", [required_checks_rule("unit")])
    env.github.rename_repository("acme/app", "acme/engine")
    read = env.ask("GET", f"{APP}/pulls?state=all")
    address = f"{env.github.api_url}/repositories/{env.acme.id}"
    assert (read.status_code, read.headers["location"]) == (301, f"{address}/pulls?state=all")
    assert (read.json()["message"], read.json()["url"]) == ("Moved Permanently", read.headers["location"])
    written = env.comment()
    assert (written.status_code, written.headers["location"]) == (307, f"{address}/issues/1/comments")
    assert env.ask("GET", read.headers["location"]).json()[0]["number"] == 1
    assert env.ask("GET", address).json()["full_name"] == "acme/engine"
    assert env.ask("GET", "/repos/acme/engine/pulls/1").json()["head"]["repo"]["full_name"] == "acme/engine"
    assert env.ask("GET", f"/repos/acme/engine/rulesets/{ruleset.id}").json()["source"] == "acme/engine"


def test_a_former_name_that_is_used_again_is_not_redirected(env: Limited):
    """Source: github/docs, "Renaming a repository"."""
    env.github.rename_repository("acme/app", "acme/engine")
    env.github.create_repository("acme/app")
    assert env.ask("GET", f"{APP}/pulls/1").status_code == 404
    assert env.ask("GET", f"/repositories/{env.acme.id}/pulls/1").status_code == 200


def test_a_repository_can_get_its_former_name_back(env: Limited):
    """Source: github/docs, "Renaming a repository": only a name that no repository has is redirected."""
    env.github.rename_repository("acme/app", "acme/engine")
    env.github.rename_repository("acme/engine", "acme/app")
    assert env.ask("GET", f"{APP}/pulls/1").status_code == 200
    assert env.ask("GET", "/repos/acme/engine/pulls/1").status_code == 301


def test_a_former_name_shows_nothing_to_those_who_cannot_see_the_repository(env: Limited):
    """Source: github/docs, "Troubleshooting the REST API": 404 for private resources."""
    env.github.auth.tokens["stranger"] = Caller("eve", ALL_PERMISSIONS, frozenset({"eve"}))
    env.github.rename_repository("acme/app", "acme/engine")
    assert env.ask("GET", APP, token="stranger").status_code == 404


def run_git(env: Limited, command: str, repository: str, *arguments: str) -> str:
    address = env.github.web_url.replace("http://", f"http://x-access-token:{TOKEN}@")
    words = ["git", command, "-q", f"{address}/{repository}.git", *arguments]
    return subprocess.run(
        words, cwd=env.origin.path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout


def test_git_follows_a_former_name(env: Limited):
    """Source: github/docs, "Renaming a repository"."""
    env.github.rename_repository("acme/app", "acme/engine")
    assert "refs/heads/topic-1" in run_git(env, "ls-remote", "acme/app")
    reads = [call.split("/info/")[0] for call in env.github.faults.calls]
    assert [call for call in reads if call.startswith("GET /acme/app")] == ["GET /acme/app.git"] * 2
    assert "GET /acme/engine.git" in reads
    run_git(env, "push", "acme/app", "main:refs/heads/topic-2")
    assert env.origin.tip("topic-2") == env.origin.tip("main")


def test_graphql_follows_a_former_name(env: Limited):
    """Source: the GraphQL schema, argument `followRenames`."""
    env.github.rename_repository("acme/app", "acme/engine")
    query = '{ repository(owner: "acme", name: "app") { nameWithOwner } }'
    found = env.ask("POST", f"{env.github.web_url}/api/graphql", {"query": query})
    assert found.json()["data"]["repository"]["nameWithOwner"] == "acme/engine"


def test_names_have_no_case(env: Limited):
    """Source: the API description, path parameters `owner` and `repo`. For git no document says so."""
    assert env.ask("GET", "/repos/Acme/APP/pulls/1").status_code == 200
    assert "refs/heads/topic-1" in run_git(env, "ls-remote", "Acme/APP")


def test_pages_link_to_the_id_of_the_repository(env: Limited):
    """Source: github/docs, "Using pagination in the REST API", whose example has such a link."""
    env.open(2)
    page = env.ask("GET", f"{APP}/pulls?per_page=1")
    assert f"<{env.github.api_url}/repositories/{env.acme.id}/pulls?" in page.headers["link"]
    assert [each["number"] for each in env.ask("GET", page.links["next"]["url"]).json()] == [1]
