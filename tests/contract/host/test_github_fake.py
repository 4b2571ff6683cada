"""The fake GitHub says only what GitHub's own description allows, and understands only what is described."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from mergeyard.domain.instants import SECOND
from tests.contract.host.github_stage import APP, TOKEN, GithubStage, github_app_stage, github_stage, keys
from tests.support.forges.github import answers
from tests.support.forges.github.description import ABSENT, Undescribed, checked, filled, models
from tests.support.forges.github.table import TABLE


def ask(stage: GithubStage, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.request(method, stage.github.api + path, json=body, headers=headers, trust_env=False, verify=False)


# Answers


def test_an_answer_that_lacks_a_field_is_caught(github: GithubStage):
    github.open(1)
    answer = answers.pull(github.acme, github.change())
    assert checked(models.PullRequest, answer) is answer
    del answer["mergeable"]
    with pytest.raises(Undescribed, match="mergeable"):
        checked(models.PullRequest, answer)


def test_a_field_of_another_type_is_caught(github: GithubStage):
    github.open(1)
    answer = answers.pull(github.acme, github.change())
    for wrong in ({"number": "1"}, {"state": "merged"}, {"draft": "no"}, {"user": None}, {"updated_at": "today"}):
        with pytest.raises(Undescribed, match=next(iter(wrong))):
            checked(models.PullRequest, answer | wrong)


def test_a_field_that_github_never_had_is_caught_however_deep(github: GithubStage):
    github.open(1)
    answer = answers.pull(github.acme, github.change())
    answer["head"]["branch"] = "topic-1"
    with pytest.raises(Undescribed, match=r"\.head\.branch"):
        checked(models.PullRequest, answer)
    with pytest.raises(Undescribed, match=r"\[\]\.colour"):
        checked(list[models.Label], [filled(models.Label, {"colour": "red"})])


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.method} {row.path}")
def test_whatever_is_filled_in_fits_the_description(row: Any):
    given: Any = {"object": {"sha": "1" * 40}} if row.says is models.GitRef else ABSENT
    checked(row.says, filled(row.says, given))


def test_a_fake_that_said_something_undescribed_fails_its_test(tmp_path: Path):
    with github_stage(tmp_path) as stage:
        stage.open(1, title=1)
        assert ask(stage, "GET", "/repos/acme/app/pulls/1").status_code == 500
        with pytest.raises(AssertionError, match="title"):
            stage.github.check()
        stage.github.undescribed.clear()


# Requests


def test_a_request_that_is_not_described_is_an_error_and_remembered(github: GithubStage):
    github.open(1)
    body = {"merge_method": "fast-forward"}
    assert ask(github, "PUT", "/repos/acme/app/pulls/1/merge", body).status_code == 500
    assert ask(github, "GET", "/repos/acme/app/wishes").status_code == 500
    first, second = github.github.undescribed
    assert ("merge_method" in first, "no such request" in second) == (True, True)
    github.github.undescribed.clear()


def test_whoever_is_not_known_is_not_let_in(github: GithubStage):
    response = httpx.get(f"{github.github.api}/repos/acme/app", trust_env=False)
    assert (response.status_code, response.json()["message"]) == (401, "Bad credentials")


@pytest.mark.parametrize(
    ("iat", "exp", "enters"), [(-60, 480, True), (-60, 620, False), (-700, -20, False), (60, 500, False)]
)
def test_an_app_is_let_in_for_ten_minutes_at_most(tmp_path: Path, iat: int, exp: int, enters: bool):
    with github_app_stage(tmp_path) as stage:
        now = stage.github.clock.now() // SECOND
        token = jwt.encode({"iat": now + iat, "exp": now + exp, "iss": APP}, keys()[0], algorithm="RS256")
        assert (stage.github.doors.visitor(token) is not None) is enters


def test_many_may_ask_at_once(github: GithubStage):
    github.open(1)

    async def ask_often() -> list[int]:
        async with httpx.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {TOKEN}"}) as client:
            address = f"{github.github.api}/repos/acme/app/pulls/1"
            return [answer.status_code for answer in await asyncio.gather(*(client.get(address) for _ in range(10)))]

    assert asyncio.run(ask_often()) == [200] * 10
