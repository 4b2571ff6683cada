"""A form works only from our own page, with the CSRF token of the same session, and for a user with permission.

All forms are found in the routes, so that new ones are covered too.
"""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.service.webhooks.webhooks import OPERATOR
from mergeyard.web.app import WebApp
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, Scenario, a_scenario
from tests.support.web_client import WebClient, a_signed_in_client, an_anonymous_client

ELSEWHERE = Repo("git.local", "acme", "other")
QUEUE = "git.local/acme/app:main"
SIGN_IN = "/sign-in"
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://yard.example", "sec-fetch-site": "cross-site"},
]


def routes(scenario: Scenario, method: str) -> Iterator[str]:
    for route in WebApp(scenario.service).routes:
        if method in (route.methods or ()):
            yield route.path


@asynccontextmanager
async def forms(folder: Path) -> AsyncGenerator[tuple[Scenario, list[str]]]:
    """The addresses of all forms, each for something that exists."""
    async with a_scenario(folder) as scenario:
        async with a_signed_in_client(scenario, Scope.ADMIN, name="grace") as grace:
            await grace.post(
                "/administration/webhooks", kind="webhook", url="https://there.example", event=["queue.created"]
            )
        (webhook,) = await scenario.service.webhooks.list_visible(OPERATOR)
        token, _ = await scenario.service.tokens.create("victim", {Scope.READ}, ())
        named = {"queue": QUEUE, "action": "pause", "token": token.id, "webhook": webhook.id}
        found = list(routes(scenario, "POST"))
        assert len(found) >= 15
        yield scenario, [re.sub(r"{(\w+)(:path)?}", lambda name: named[name[1]], path) for path in found]


async def is_unchanged(scenario: Scenario) -> bool:
    victims = [token for token in await scenario.service.tokens.list_manageable(None) if token.name == "victim"]
    running = scenario.queue_actor.queue.state == "RUNNING"
    (webhook,) = await scenario.service.webhooks.list_visible(OPERATOR)
    return running and victims[0].revoked_at is None and webhook.disabled is None


@asynchronous
async def test_form_without_the_csrf_token_of_the_session_does_nothing(tmp_path: Path):
    async with (
        forms(tmp_path) as (scenario, found),
        a_signed_in_client(scenario, Scope.ADMIN, name="mallory") as mallory,
    ):
        async with a_signed_in_client(scenario, Scope.ADMIN) as ada:
            tokens = {
                "none": "",
                "a guess": "0" * 64,
                "another session's": mallory.csrf,
                "no ASCII": "ü",
                "long": "a" * 9999,
            }
            for path in found:
                for name, csrf in tokens.items():
                    if path != SIGN_IN:
                        response = await ada.post(path, csrf=csrf, queue=QUEUE, number=1)
                        assert response.status == 400, (path, name, response.text)
            assert (await ada.get("/")).status == 200
        assert await is_unchanged(scenario)


@asynchronous
async def test_form_of_another_site_does_nothing_even_with_the_csrf_token(tmp_path: Path):
    async with forms(tmp_path) as (scenario, found), a_signed_in_client(scenario, Scope.ADMIN) as ada:
        for path, headers in product(found, FOREIGN):
            response = await ada.send(path, headers, queue=QUEUE, number=1)
            assert response.status == 400, (path, headers, response.text)
        assert (await ada.get("/")).status == 200
        assert await is_unchanged(scenario)


@asynchronous
async def test_forms_do_nothing_without_a_session_and_with_read_scope(tmp_path: Path):
    async with forms(tmp_path) as (scenario, found):
        async with an_anonymous_client(scenario.service) as stranger:
            for path in found:
                if path != SIGN_IN:
                    response = await stranger.post(path, queue=QUEUE, number=1)
                    assert (response.status, response.location) == (303, SIGN_IN), path
        async with a_signed_in_client(scenario) as reader:
            for path in found:
                if path not in {SIGN_IN, "/sign-out", "/pulls"}:  # the last one only sets the reader's own cookie
                    assert (await reader.post(path, queue=QUEUE, number=1)).status == 403, path
        assert await is_unchanged(scenario)


# Sessions


@asynchronous
async def test_session_cannot_be_fixed_by_an_attacker(tmp_path: Path):
    """The session secret changes when a user signs in."""
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, name="mallory") as mallory:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ, Scope.ADMIN}, ())
        planted = mallory.csrf
        await mallory.sign_in(secret)
        assert mallory.csrf != planted


@asynchronous
async def test_invalid_session_cookie_gives_no_access(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        for cookie in ("", "x", "my_" + "0" * 49, '"; drop', "a" * 9000, "\\303\\251", "my_" + "0" * 43 + "======"):
            response = await stranger.get("/", cookie=f"mergeyard_session={cookie}")
            assert (response.status, response.location) == (303, "/sign-in?next=%2F"), cookie


@asynchronous
async def test_every_response_has_security_headers(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as ada:
        for address in ("/", "/sign-in", "/nothing", "/queues/nowhere", "/favicon.ico", f"/queues/{QUEUE}"):
            headers = (await ada.get(address)).headers
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), address
            assert "unsafe" not in headers["content-security-policy"]
            assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


# Outside of the user's repositories


@asynchronous
async def test_page_outside_of_the_users_repositories_looks_like_a_missing_one(tmp_path: Path):
    """The same bytes before and after it is created, except for the request id."""
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(ELSEWHERE,)) as outsider,
    ):
        later = "git.local/acme/app:later"
        addresses = [
            *(f"/{kind}/{later}" for kind in ("queues", "settings", "health", "live")),
            "/pulls/git.local/acme/app/1",
            "/pulls/git.local/acme/app/1?branch=later",
            "/actions?queue=git.local%2Facme%2Fapp%3Alater&number=1",
            "/",
            "/health",
            "/administration/audit",
            "/administration/webhooks",
        ]
        before = [await read_page(outsider, address) for address in addresses]
        scenario.origin.branch("later", base="main")
        await scenario.service.queues.create(QueueKey(REPO, "later"), Config(), "ada", lambda _: b"", None)
        scenario.open(1)
        await scenario.submit(1)
        after = [await read_page(outsider, address) for address in addresses]
        assert [address for address, one, other in zip(addresses, before, after, strict=True) if one != other] == []
        run = scenario.run_of(1).id
        unknown = await read_page(outsider, f"/runs/{'0' * 36}")
        assert await read_page(outsider, f"/runs/{run}") == (unknown[0], unknown[1].replace("0" * 36, run))


async def read_page(visitor: WebClient, address: str) -> tuple[int, str]:
    page = await visitor.get(address)
    return page.status, re.sub(r"\b[0-9a-f]{16}\b", "an id", page.html)
