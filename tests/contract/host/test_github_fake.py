"""The fake GitHub sends only what GitHub's API description allows, and accepts only what is described."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
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


def ask(env: GithubEnvironment, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.request(method, env.github.api_url + path, json=body, headers=headers, trust_env=False, verify=False)


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
    response = httpx.get(f"{github.github.api_url}/repos/acme/app", trust_env=False)
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
        async with httpx.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {TOKEN}"}) as client:
            address = f"{github.github.api_url}/repos/acme/app/pulls/1"
            return [answer.status_code for answer in await asyncio.gather(*(client.get(address) for _ in range(10)))]

    assert asyncio.run(ask_often()) == [200] * 10
