"""The door: with a token, and out again."""

from pathlib import Path

import pytest

from mergeyard.domain.tokens import Scope
from mergeyard.web import visiting
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_stranger, a_visitor
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


@pytest.mark.parametrize("token", ["", "my_mistyped", "ü", "my_" + "0" * 49])
@asynchronous
async def test_who_mistypes_is_told_and_asked_again(tmp_path: Path, token: str):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        page = await stranger.post("/sign-in", token=token, next="/pulls/x")
        assert page.status == 401
        assert page.one("[role=alert]").text.startswith("This token is unknown, revoked or expired.")
        assert page.one("input[name=next]")["value"] == "/pulls/x"


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
