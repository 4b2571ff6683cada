"""Administrators create and revoke tokens, and a secret is shown once."""

from pathlib import Path

from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import Repo
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, Scenario, a_scenario
from tests.support.web_client import Page, a_signed_in_client, an_anonymous_client

PAGE = "/administration/tokens"
HOSTILE = "<script>alert(1)</script>"


async def token_of(scenario: Scenario, name: str) -> Token:
    (found,) = [token for token in await scenario.service.tokens.list_manageable(None) if token.name == name]
    return found


def row_of(page: Page, name: str) -> str:
    (row,) = [row.text for row in page.all("tr") if row.all("bdi") and row.all("bdi")[0].text == name]
    return row


@asynchronous
async def test_administrator_finds_the_tokens_page_and_sees_all_tokens(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        assert (await visitor.get("/administration")).location == PAGE
        await scenario.service.tokens.create(HOSTILE, {Scope.STATUS}, [REPO], 86_400_000)
        page = await visitor.get(PAGE)
        assert (page.status, page.one("h1").text) == (200, "Tokens")
        assert "admin" in row_of(page, "ada")
        assert "This is the token you're using" in row_of(page, "ada")
        assert "status git.local/acme/app just now 15 Nov 2023, 22:13:20 UTC valid" in row_of(page, HOSTILE)
        assert "This is the token you're using" not in row_of(page, HOSTILE)
        assert HOSTILE not in page.html


@asynchronous
async def test_the_tokens_show_when_and_from_where_they_were_last_used(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await scenario.service.tokens.create("idle", {Scope.STATUS})
        await scenario.wait_until_idle()
        page = await visitor.get(PAGE)
        assert "valid just now from 127.0.0.1" in row_of(page, "ada")
        assert "valid never" in row_of(page, "idle")


@asynchronous
async def test_token_is_created_and_its_secret_shown_once(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        made = await visitor.post(
            PAGE, name="ci", scope=["read", "status"], repos="git.local/acme/app", lifetime="7 days"
        )
        assert made.status == 200
        secret = made.one(".secret").one("code").text
        token = await scenario.service.tokens.find_valid(secret.encode())
        assert token is not None
        assert (token.name, token.scopes, token.repos) == ("ci", {Scope.READ, Scope.STATUS}, {REPO})
        assert token.expires_at == scenario.clock.now() + 7 * 86_400_000
        assert made.headers["cache-control"] == "no-store"
        assert secret not in (await visitor.get(PAGE)).html
        assert secret not in (await visitor.get("/administration/audit")).html


@asynchronous
async def test_invalid_token_is_explained_and_the_input_kept(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for fields, message in (
            ({"name": "a#b", "scope": "read", "lifetime": "never"}, "no #"),
            ({"name": "ci", "scope": "nonsense", "lifetime": "never"}, "Choose at least one scope"),
            ({"name": "ci", "scope": "read", "lifetime": "for ever"}, "Choose from the list"),
            ({"name": "ci", "scope": "read", "lifetime": "never", "repos": "app"}, "host/owner/name"),
            ({"name": "ci", "scope": "read", "lifetime": "never", "repos": "x.example/a/b"}, "not configured"),
            ({"name": "ci", "scope": "read", "lifetime": "never", "repos": "git.local/a/b:main"}, "not branches"),
        ):
            page = await visitor.post(PAGE, **fields)
            assert page.status == 422
            assert message in page.one("main").one("[role=alert]").text
            assert page.one("#name")["value"] == fields["name"]
            assert page.one("#repos").text == fields.get("repos", "")
        assert len(await scenario.service.tokens.list_manageable(None)) == 1


@asynchronous
async def test_token_is_revoked_after_confirmation_and_its_sessions_end(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
        a_signed_in_client(scenario, name="bob") as bob,
    ):
        there = f"{PAGE}/{(await token_of(scenario, 'bob')).id}/revoke"
        assert "Revoke “bob”?" in (await visitor.get(there)).text
        assert (await bob.get("/")).status == 200
        assert (await visitor.post(there)).location == PAGE
        assert (await bob.get("/")).location.startswith("/sign-in")
        page = await visitor.get(PAGE)
        assert "revoked just now" in row_of(page, "bob")
        (folded,) = [each for each in page.all("details") if each.all("table")]
        assert folded.one("summary").text == "Revoked and expired tokens (1)"
        assert [row.one("th").one("bdi").text for row in folded.one("tbody").all("tr")] == ["bob"]
        assert "already" in (await visitor.get(there)).text
        own = f"{PAGE}/{(await token_of(scenario, 'ada')).id}/revoke"
        assert "you will be signed out" in (await visitor.get(own)).text
        assert (await visitor.get(f"{PAGE}/unknown/revoke")).status == 404


@asynchronous
async def test_tokens_page_needs_an_administrator(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.PRIORITY) as reader,
        an_anonymous_client(scenario.service) as stranger,
    ):
        there = f"{PAGE}/{(await token_of(scenario, 'ada')).id}/revoke"
        for answer in (
            await reader.get(PAGE),
            await reader.post(PAGE, name="x", scope="admin", lifetime="never"),
            await reader.get(there),
            await reader.post(there),
        ):
            assert answer.status == 403
            assert "needs the scope “admin”" in answer.text
        assert (await stranger.get(PAGE)).location == "/sign-in?next=%2Fadministration%2Ftokens"
        (token,) = await scenario.service.tokens.list_manageable(None)
        assert token.revoked_at is None


@asynchronous
async def test_administrator_of_some_repositories_manages_only_tokens_of_these(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(REPO,), name="limited") as limited,
    ):
        other = Repo("git.local", "acme", "other")
        for name, repos in (("all", []), ("other", [other]), ("both", [REPO, other]), ("same", [REPO])):
            await scenario.service.tokens.create(name, {Scope.READ}, repos)
        assert (await limited.get("/administration")).location == PAGE
        page = await limited.get(PAGE)
        assert {row.one("th").one("bdi").text for row in page.one("tbody").all("tr")} == {"limited", "same"}
        for name in ("all", "other", "both"):
            there = f"{PAGE}/{(await token_of(scenario, name)).id}/revoke"
            for answer in (await limited.get(there), await limited.post(there)):
                assert (answer.status, "There is no such token" in answer.text) == (404, True)
        for repos, message in (("", "limit the new token"), (f"{REPO}\n{other}", "no access to git.local/acme/other")):
            refused = await limited.post(PAGE, name="x", scope="admin", repos=repos, lifetime="never")
            assert (refused.status, message in refused.text) == (422, True)
        assert (await limited.post(f"{PAGE}/sign-out")).status == 403
        assert (await limited.post(PAGE, name="x", scope="admin", repos=str(REPO), lifetime="never")).status == 200
        assert (await limited.post(f"{PAGE}/{(await token_of(scenario, 'same')).id}/revoke")).location == PAGE
        revoked = [each.name for each in await scenario.service.tokens.list_manageable(None) if each.revoked_at]
        assert revoked == ["same"]


@asynchronous
async def test_form_of_another_site_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        there = f"{PAGE}/{(await token_of(scenario, 'ada')).id}/revoke"
        forged = await visitor.post(PAGE, name="x", scope="admin", lifetime="never", csrf="guessed")
        assert (forged.status, (await visitor.post(there, csrf="")).status) == (400, 400)
        assert len(await scenario.service.tokens.list_manageable(None)) == 1
        assert (await visitor.get(PAGE)).status == 200
