"""Hosts are listed, and checked on request."""

from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, a_scenario
from tests.support.web_client import a_signed_in_client

PAGE = "/administration/hosts"


@asynchronous
async def test_a_host_is_shown_and_checked_on_demand(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        page = await visitor.get(PAGE)
        assert "local Git · checks are reported by CI over the API · 1 repository" in page.text
        assert not page.all(".findings")
        fine = await visitor.post(PAGE, host="git.local", repo="acme/app")
        assert "All checks passed." in fine.text
        missing = await visitor.post(PAGE, host="git.local", repo="acme/<i>lib")
        assert "Problems found." in missing.text
        assert "<i>" not in missing.html
        assert (await visitor.post(PAGE, host="git.local")).status == 200


@asynchronous
async def test_invalid_check_request_is_explained(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for host, repo, message in (("git.local", "app", "write owner/name"), ("x.example", "", "not configured")):
            page = await visitor.post(PAGE, host=host, repo=repo)
            assert page.status == 422
            assert message in page.one("main").one("[role=alert]").text
        assert (await visitor.post(PAGE, host="git.local", csrf="forged")).status == 400


@asynchronous
async def test_limited_administrator_checks_only_their_repositories(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(REPO,)) as limited,
        a_signed_in_client(
            scenario, Scope.ADMIN, repos=(Repo("elsewhere.example", "a", "b"),), name="stranger"
        ) as stranger,
        a_signed_in_client(scenario, name="reader") as reader,
    ):
        assert (await limited.post(PAGE, host="git.local", repo="acme/app")).status == 200
        for repo in ("", "acme/lib"):
            page = await limited.post(PAGE, host="git.local", repo=repo)
            assert "name one of them" in page.one("main").one("[role=alert]").text
        assert "git.local" not in (await stranger.get(PAGE)).text
        assert (await reader.get(PAGE)).status == 403
        assert (await reader.post(PAGE, host="git.local")).status == 403
