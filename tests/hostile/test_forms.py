"""No form does anything unless it comes from our own page, in the visit that it was drawn for, from somebody who may.

All forms are found among the routes themselves, so that a new one is held to this too.
"""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.routing import Route

from mergeyard.domain.config import Config
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.tokens import Scope
from mergeyard.service.telling.webhooks import OPERATOR
from mergeyard.web.app import application
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Visitor, a_stranger, a_visitor
from tests.support.scenario import REPO, Scenario, a_scenario

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
    inner: object = application(scenario.service)
    while not isinstance(inner, Starlette):
        inner = cast(object, vars(inner)["_app"])
    for route in inner.routes:
        if isinstance(route, Route) and method in (route.methods or ()):
            yield route.path


@asynccontextmanager
async def forms(folder: Path) -> AsyncGenerator[tuple[Scenario, list[str]]]:
    """The addresses of all forms, each about something that is there."""
    async with a_scenario(folder) as scenario:
        async with a_visitor(scenario, Scope.ADMIN, name="grace") as grace:
            await grace.post(
                "/administration/webhooks", kind="webhook", url="https://there.example", event=["queue.created"]
            )
        (webhook,) = await scenario.service.office.webhooks.seen_by(OPERATOR)
        token, _ = await scenario.service.tokens.create("victim", {Scope.READ}, ())
        named = {"queue": QUEUE, "action": "pause", "token": token.id, "webhook": webhook.id}
        found = list(routes(scenario, "POST"))
        assert len(found) >= 15
        yield scenario, [re.sub(r"{(\w+)(:path)?}", lambda name: named[name[1]], path) for path in found]


async def all_is_as_it_was(scenario: Scenario) -> bool:
    victims = [token for token in await scenario.service.tokens.all() if token.name == "victim"]
    running = scenario.keeper.queue.state == "RUNNING"
    (webhook,) = await scenario.service.office.webhooks.seen_by(OPERATOR)
    return running and victims[0].revoked_at is None and webhook.disabled is None


@asynchronous
async def test_a_form_without_the_proof_of_this_very_visit_does_nothing(tmp_path: Path):
    async with forms(tmp_path) as (scenario, found), a_visitor(scenario, Scope.ADMIN, name="mallory") as mallory:
        async with a_visitor(scenario, Scope.ADMIN) as ada:
            proofs = {
                "none": "",
                "a guess": "0" * 64,
                "another visit's": mallory.csrf,
                "no ASCII": "ü",
                "long": "a" * 9999,
            }
            for path in found:
                for name, proof in proofs.items():
                    if path != SIGN_IN:
                        told = await ada.post(path, csrf=proof, queue=QUEUE, number=1)
                        assert told.status == 400, (path, name, told.text)
            assert (await ada.get("/")).status == 200
        assert await all_is_as_it_was(scenario)


@asynchronous
async def test_a_form_of_another_site_does_nothing_even_with_the_proof(tmp_path: Path):
    async with forms(tmp_path) as (scenario, found), a_visitor(scenario, Scope.ADMIN) as ada:
        for path, headers in product(found, FOREIGN):
            told = await ada.send(path, headers, queue=QUEUE, number=1)
            assert told.status == 400, (path, headers, told.text)
        assert (await ada.get("/")).status == 200
        assert await all_is_as_it_was(scenario)


@asynchronous
async def test_a_stranger_and_whoever_may_only_read_do_nothing(tmp_path: Path):
    async with forms(tmp_path) as (scenario, found):
        async with a_stranger(scenario.service) as stranger:
            for path in found:
                if path != SIGN_IN:
                    told = await stranger.post(path, queue=QUEUE, number=1)
                    assert (told.status, told.location) == (303, SIGN_IN), path
        async with a_visitor(scenario) as reader:
            for path in found:
                if path not in {SIGN_IN, "/sign-out"}:
                    assert (await reader.post(path, queue=QUEUE, number=1)).status == 403, path
        assert await all_is_as_it_was(scenario)


# Sessions


@asynchronous
async def test_nobody_chooses_the_session_of_somebody_else(tmp_path: Path):
    """A secret that a browser brought along is not the one that it has afterwards."""
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, name="mallory") as mallory:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ, Scope.ADMIN}, ())
        planted = mallory.csrf
        await mallory.sign_in(secret)
        assert mallory.csrf != planted


@asynchronous
async def test_a_cookie_that_is_no_session_opens_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        for cookie in ("", "x", "my_" + "0" * 49, '"; drop', "a" * 9000, "\\303\\251", "my_" + "0" * 43 + "======"):
            told = await stranger.get("/", cookie=f"mergeyard_session={cookie}")
            assert (told.status, told.location) == (303, "/sign-in?next=%2F"), cookie


@asynchronous
async def test_every_answer_tells_the_browser_to_trust_only_us(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as ada:
        for address in ("/", "/sign-in", "/nothing", "/queues/nowhere", "/favicon.ico", f"/queues/{QUEUE}"):
            above = (await ada.get(address)).headers
            assert above["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), address
            assert "unsafe" not in above["content-security-policy"]
            assert (above["x-content-type-options"], above["x-frame-options"]) == ("nosniff", "DENY")


# What lies outside


@asynchronous
async def test_a_page_outside_of_the_visitors_repositories_is_one_that_is_not_there(tmp_path: Path):
    """The same bytes before and after it comes to be, but for the number under which it is refused."""
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN, repos=(ELSEWHERE,)) as outsider:
        there = "git.local/acme/app:later"
        asked = [
            *(f"/{kind}/{there}" for kind in ("queues", "settings", "health", "live")),
            "/pulls/git.local/acme/app/1",
            "/pulls/git.local/acme/app/1?branch=later",
            "/actions?queue=git.local%2Facme%2Fapp%3Alater&number=1",
            "/",
            "/health",
            "/administration/audit",
            "/administration/webhooks",
        ]
        before = [await seen(outsider, address) for address in asked]
        scenario.origin.branch("later", upon="main")
        await scenario.service.queues.create(QueueKey(REPO, "later"), Config(), "ada", lambda _: b"", None)
        scenario.open(1)
        await scenario.submit(1)
        after = [await seen(outsider, address) for address in asked]
        assert [address for address, one, other in zip(asked, before, after, strict=True) if one != other] == []
        run = scenario.run_of(1).id
        unknown = await seen(outsider, f"/runs/{'0' * 36}")
        assert await seen(outsider, f"/runs/{run}") == (unknown[0], unknown[1].replace("0" * 36, run))


async def seen(visitor: Visitor, address: str) -> tuple[int, str]:
    page = await visitor.get(address)
    return page.status, re.sub(r"\b[0-9a-f]{16}\b", "a number", page.html)
