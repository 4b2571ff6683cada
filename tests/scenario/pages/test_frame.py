"""What holds on every page: its address, and how long a live line lasts."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.instants import later
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.tokens import Scope
from mergeyard.web import addresses, visiting
from mergeyard.web.app import application
from mergeyard.web.live import MOST_FOR_A_TOKEN
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_stranger, a_visitor
from tests.support.scenario import KEY, REPO, SECOND, Scenario, a_scenario

LIVE = "/live/git.local/acme/app:main"


@pytest.mark.parametrize("branch", ["a%41b", "100%", "fix/#1&x", "ünïcode", 'q"uote'])
@asynchronous
async def test_a_page_fetches_itself_anew_and_no_other(tmp_path: Path, branch: str):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.origin.branch(branch, upon="main")
        key = QueueKey(REPO, branch)
        await scenario.service.queues.create(key, Config(), "ada", lambda _: b"", None)
        page = await visitor.get(addresses.queue_page(key))
        assert page.one("h1").text == f"acme/app {branch}"
        again = await visitor.get(page.one("#live")["hx-get"])
        assert again.one("h1").text == page.one("h1").text


@asynchronous
async def test_who_must_sign_in_comes_back_to_the_very_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        asked = await stranger.get("/queues/git.local/acme/app:a%2541b?x=%26")
        form = await stranger.get(asked.location)
        assert form.one("input[name=next]")["value"] == "/queues/git.local/acme/app:a%2541b?x=%26"


async def over(line: asyncio.Task[Any], scenario: Scenario) -> None:
    while not line.done():
        scenario.clock.move_to(later(scenario.clock.now(), SECOND))
        await asyncio.sleep(0)


@asynchronous
async def test_a_live_line_ends_with_the_session(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ})
        session = await scenario.service.sessions.sign_in(secret.encode())
        assert session is not None
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(application(scenario.service)),
            base_url="http://yard.example",
            cookies={visiting.COOKIE: session},
        ) as client:
            line = asyncio.create_task(client.get(LIVE))
            await asyncio.sleep(0)
            await scenario.service.queues.update(KEY, {}, QueueState.PAUSED, "ada", lambda _: b"", None)
            await scenario.service.sessions.sign_out(session.encode())
            async with asyncio.timeout(20):
                await over(line, scenario)
            told = (await line).text
        assert told.startswith("retry: 2000\nevent: follow\n")
        assert "event: change\n" in told


@asynchronous
async def test_a_new_forecast_is_told_of_when_it_is_quiet(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor, asyncio.timeout(20):
        asleep = scenario.clock.next_to_sleep()
        line = asyncio.create_task(visitor.get(LIVE))
        await asleep
        scenario.keeper.forecast = {}
        scenario.service.live.end()
        await over(line, scenario)
        assert (await line).html.count("event: change\n") == 1


@asynchronous
async def test_nobody_follows_with_more_pages_than_the_server_bears(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor, asyncio.timeout(20):
        following = {asyncio.create_task(visitor.get(LIVE)) for _ in range(MOST_FOR_A_TOKEN + 1)}
        (refused,), following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        assert ((await refused).status, (await refused).headers["retry-after"]) == (503, "5")
        gone = following.pop()
        gone.cancel()
        await asyncio.wait([gone])
        following |= {asyncio.create_task(visitor.get(LIVE)) for _ in range(2)}
        (refused,), following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        assert ((await refused).status, len(following)) == (503, MOST_FOR_A_TOKEN)
        scenario.service.live.end()
        assert {line.status for line in await asyncio.gather(*following)} == {200}
