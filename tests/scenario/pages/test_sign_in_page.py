"""The door: with a token, and out again."""

from pathlib import Path

import httpx
import pytest

from mergeyard.domain.tokens import Scope
from mergeyard.web import visiting
from mergeyard.web.app import application
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_stranger, a_visitor
from tests.support.quiet import captured_warnings
from tests.support.scenario import a_scenario


@asynchronous
async def test_a_token_opens_the_page_that_was_asked_for(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        page = await stranger.get("/sign-in?next=/queues/git.local/acme/app:main")
        assert page.one("input[name=next]")["value"] == "/queues/git.local/acme/app:main"
        answer = await stranger.post("/sign-in", token=secret, next="/queues/git.local/acme/app:main")
        assert (answer.status, answer.location) == (303, "/queues/git.local/acme/app:main")
        assert (await stranger.get("/")).status == 200


@asynchronous
async def test_what_the_browser_keeps_is_for_us_alone(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        kept = (await stranger.post("/sign-in", token=secret, next="/")).headers["set-cookie"]
        assert secret not in kept
        assert {"httponly", "samesite=lax", "path=/"} <= {part.strip().lower() for part in kept.split(";")}


@asynchronous
async def test_over_tls_no_other_host_can_set_the_cookie(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        transport = httpx.ASGITransport(application(scenario.service, over_tls=True))
        async with httpx.AsyncClient(transport=transport, base_url="https://yard.example") as client:
            kept = (await client.post("/sign-in", data={"token": secret, "next": "/"})).headers["set-cookie"]
            assert kept.startswith("__Host-mergeyard_session=")
            assert {"secure", "path=/"} <= {part.strip().lower() for part in kept.split(";")}
            assert "domain" not in kept.lower()
            assert (await client.get("/")).status_code == 200
            session = client.cookies["__Host-mergeyard_session"]
            client.cookies.clear()
            assert (await client.get("/", headers={"cookie": f"mergeyard_session={session}"})).status_code == 303
            client.cookies.set("__Host-mergeyard_session", session)
            csrf = {visiting.FIELD: visiting.csrf_of(session.encode())}
            assert "__Host-mergeyard_session=" in (await client.post("/sign-out", data=csrf)).headers["set-cookie"]
            assert (await client.get("/")).status_code == 303


@pytest.mark.parametrize("token", ["", "my_mistyped", "ü", "my_" + "0" * 49])
@asynchronous
async def test_who_mistypes_is_told_and_asked_again(tmp_path: Path, token: str):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        page = await stranger.post("/sign-in", token=token, next="/pulls/x")
        assert page.status == 401
        assert page.one("[role=alert]").text.startswith("This token is unknown, revoked or expired.")
        assert page.one("input[name=next]")["value"] == "/pulls/x"


@asynchronous
async def test_a_failed_sign_in_is_logged_and_an_empty_form_is_not(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        token, revoked = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        await scenario.service.tokens.revoke(token.id)
        _, blind = await scenario.service.tokens.create("blind", {Scope.STATUS}, ())
        with captured_warnings() as lines:
            for given in ("", "my_mistyped", revoked, blind):
                assert (await stranger.post("/sign-in", token=given, next="/")).status in {401, 403}
        assert [(line["event"], line["client"], line.get("token_name")) for line in lines] == [
            ("sign_in_failed", "127.0.0.1", name) for name in (None, "ada", "blind")
        ]
        assert "my_mistyped" not in str(lines)


@asynchronous
async def test_signing_in_counts_as_a_use_of_the_token(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, name="ada"):
        await scenario.rest()
        (token,) = await scenario.service.tokens.all()
        assert (token.last_used_at, token.last_used_from) == (scenario.clock.now(), "127.0.0.1")


@asynchronous
async def test_a_page_that_needs_another_scope_is_logged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, name="ada") as visitor:
        with captured_warnings() as lines:
            assert (await visitor.get("/administration/tokens")).status == 403
        told = [(line["event"], line["token_name"], line["path"]) for line in lines]
        assert told == [("scope_missing", "ada", "/administration/tokens")]


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb", "", "x"]
)
@asynchronous
async def test_nobody_is_led_elsewhere(tmp_path: Path, elsewhere: str):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ}, ())
        assert (await stranger.post("/sign-in", token=secret, next=elsewhere)).location == "/"


@asynchronous
async def test_who_signs_out_is_a_stranger_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        assert (await visitor.post("/sign-out", csrf="guessed")).status == 400
        assert (await visitor.get("/")).status == 200
        answer = await visitor.post("/sign-out")
        assert (answer.status, answer.location) == (303, "/sign-in")
        assert visiting.COOKIE in answer.headers["set-cookie"]
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
async def test_nobody_is_signed_in_by_a_form_of_another_site(tmp_path: Path, headers: dict[str, str], status: int):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("eve", {Scope.READ}, ())
        assert (await stranger.send("/sign-in", headers, token=secret, next="/")).status == status


@asynchronous
async def test_a_token_that_may_not_look_does_not_sign_in(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        _, secret = await scenario.service.tokens.create("ci", {Scope.STATUS}, ())
        page = await stranger.post("/sign-in", token=secret, next="/")
        assert (page.status, "set-cookie" in page.headers) == (403, False)
        assert page.one("[role=alert]").text.startswith("This token may not look at anything")


@asynchronous
async def test_without_a_provider_there_is_only_the_token(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        assert "Sign in with" not in (await stranger.get("/sign-in")).text
        assert (await stranger.get("/sign-in/elsewhere")).status == 404
