"""Signing in with a token, and signing out."""

from pathlib import Path

import pytest

from mergeyard.domain.access import Scope
from mergeyard.web import user_sessions
from tests.support.asynchronous import asynchronous
from tests.support.log_capture import capture_warnings
from tests.support.scenario import a_scenario
from tests.support.web_client import a_browser, a_signed_in_client, an_anonymous_client, build_pages


@asynchronous
async def test_a_token_opens_the_page_that_was_asked_for(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        page = await stranger.get("/sign-in?next=/queues/git.local/acme/app:main")
        assert page.one("input[name=next]")["value"] == "/queues/git.local/acme/app:main"
        answer = await stranger.post("/sign-in", token=secret, next="/queues/git.local/acme/app:main")
        assert (answer.status, answer.location) == (303, "/queues/git.local/acme/app:main")
        assert (await stranger.get("/")).status == 200


@asynchronous
async def test_session_cookie_is_protected_and_does_not_contain_the_token(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        kept = (await stranger.post("/sign-in", token=secret, next="/")).headers["set-cookie"]
        assert secret not in kept
        assert {"httponly", "samesite=lax", "path=/"} <= {part.strip().lower() for part in kept.split(";")}


@asynchronous
async def test_over_tls_no_other_host_can_set_the_cookie(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        async with a_browser(build_pages(scenario.service, over_tls=True), "https://yard.example") as client:
            kept = (await client.post("/sign-in", data={"token": secret, "next": "/"})).headers["set-cookie"]
            assert kept.startswith("__Host-mergeyard_session=")
            assert {"secure", "path=/"} <= {part.strip().lower() for part in kept.split(";")}
            assert "domain" not in kept.lower()
            assert (await client.get("/")).status_code == 200
            session = client.cookies["__Host-mergeyard_session"]
            client.cookies.clear()
            assert (await client.get("/", headers={"cookie": f"mergeyard_session={session}"})).status_code == 303
            client.cookies.set("__Host-mergeyard_session", session)
            csrf = {user_sessions.CSRF_FIELD: user_sessions.derive_csrf_token(session.encode())}
            assert "__Host-mergeyard_session=" in (await client.post("/sign-out", data=csrf)).headers["set-cookie"]
            assert (await client.get("/")).status_code == 303


@pytest.mark.parametrize("token", ["", "my_mistyped", "ü", "my_" + "0" * 49])
@asynchronous
async def test_wrong_token_is_reported_and_asked_for_again(tmp_path: Path, token: str):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        page = await stranger.post("/sign-in", token=token, next="/pulls/x")
        assert page.status == 401
        assert page.one("main").one("[role=alert]").text.startswith("Invalid, revoked or expired token.")
        assert page.one("input[name=next]")["value"] == "/pulls/x"


@asynchronous
async def test_a_failed_sign_in_is_logged_and_an_empty_form_is_not(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        token, revoked = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        await scenario.service.tokens.revoke(token.id)
        _, blind = await scenario.service.tokens.create("blind", {Scope.STATUS}, ())
        with capture_warnings() as lines:
            for given in ("", "my_mistyped", revoked, blind):
                assert (await stranger.post("/sign-in", token=given, next="/")).status in {401, 403}
        assert [(line["event"], line["client"], line.get("token_name")) for line in lines] == [
            ("sign_in_failed", "127.0.0.1", name) for name in (None, "ada", "blind")
        ]
        assert "my_mistyped" not in str(lines)


@asynchronous
async def test_signing_in_counts_as_a_use_of_the_token(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, name="ada"):
        await scenario.wait_until_idle()
        (token,) = await scenario.service.tokens.list_manageable(None)
        assert (token.last_used_at, token.last_used_from) == (scenario.clock.now(), "127.0.0.1")


@asynchronous
async def test_a_page_that_needs_another_scope_is_logged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, name="ada") as visitor:
        with capture_warnings() as lines:
            assert (await visitor.get("/administration/tokens")).status == 403
        logged = [(line["event"], line["token_name"], line["path"]) for line in lines]
        assert logged == [("scope_missing", "ada", "/administration/tokens")]


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb", "", "x"]
)
@asynchronous
async def test_sign_in_never_redirects_to_another_site(tmp_path: Path, elsewhere: str):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        assert (await stranger.post("/sign-in", token=secret, next=elsewhere)).location == "/"


@asynchronous
async def test_signing_out_ends_the_session(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        assert (await visitor.post("/sign-out", csrf="guessed")).status == 400
        assert (await visitor.get("/")).status == 200
        answer = await visitor.post("/sign-out")
        assert (answer.status, answer.location) == (303, "/sign-in")
        assert user_sessions.SESSION_COOKIE in answer.headers["set-cookie"]
        assert (await visitor.get("/")).status == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://yard.example"}, 303),
        ({"origin": "http://evil.example"}, 400),
        ({"origin": "http://yard.example.evil.example"}, 400),
        ({"origin": "http://yard.example:8080"}, 400),
        ({"origin": "null"}, 400),
        ({"origin": "http://["}, 400),
        ({"origin": "http://yard.example", "sec-fetch-site": "cross-site"}, 400),
        ({"origin": "http://rewritten.example", "sec-fetch-site": "same-origin"}, 303),
    ],
    ids=str,
)
@asynchronous
async def test_form_of_another_site_cannot_sign_in(tmp_path: Path, headers: dict[str, str], status: int):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("eve", {Scope.READ}, ())
        assert (await stranger.send("/sign-in", headers, token=secret, next="/")).status == status


@asynchronous
async def test_token_without_the_read_scope_cannot_sign_in(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ci", {Scope.STATUS}, ())
        page = await stranger.post("/sign-in", token=secret, next="/")
        assert (page.status, "set-cookie" in page.headers) == (403, False)
        assert page.one("main").one("[role=alert]").text.startswith("This token cannot read anything")


@asynchronous
async def test_without_an_identity_provider_only_the_token_is_offered(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        page = await stranger.get("/sign-in")
        assert not [link for link in page.links() if link.startswith("/sign-in/sso")]
        assert (
            "Sign in with an API token. Ask your administrator for one. You get the token's permissions." in page.text
        )
        assert "mergeyard token create" not in page.text
        assert (await stranger.get("/sign-in/sso")).status == 404
