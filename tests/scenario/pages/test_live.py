"""Live pages: their address, and when the event stream ends."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import later
from mergeyard.web import user_sessions
from mergeyard.web.formats import queue_url
from mergeyard.web.live import ALIVE_INTERVAL_MS, MAX_STREAMS_PER_TOKEN, SESSION_CHECK_INTERVAL_MS
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, REPO, SECOND, Scenario, a_scenario
from tests.support.web_client import a_signed_in_client, an_anonymous_client, build_pages

LIVE = "/live/git.local/acme/app:main"


@pytest.mark.parametrize("branch", ["a%41b", "100%", "fix/#1&x", "ünïcode", 'q"uote'])
@asynchronous
async def test_page_refreshes_itself_from_its_own_address(tmp_path: Path, branch: str):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.origin.branch(branch, base="main")
        key = QueueKey(REPO, branch)
        await scenario.service.queues.create(key, Config(), "ada", lambda _: b"", None)
        page = await visitor.get(queue_url(key))
        assert page.one("h1").text == f"acme/app {branch}"
        again = await visitor.get(page.one("#live")["hx-get"])
        assert again.one("h1").text == page.one("h1").text


@asynchronous
async def test_sign_in_redirects_back_to_the_requested_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        asked = await stranger.get("/queues/git.local/acme/app:a%2541b?x=%26")
        form = await stranger.get(asked.location)
        assert form.one("input[name=next]")["value"] == "/queues/git.local/acme/app:a%2541b?x=%26"


ROUNDS_PER_SECOND = 20


async def advance(scenario: Scenario, milliseconds: int) -> None:
    """Second by second. After each, whatever slept so long goes on."""
    for _ in range(0, milliseconds, SECOND):
        scenario.clock.move_to(later(scenario.clock.now(), SECOND))
        for _ in range(ROUNDS_PER_SECOND):
            await asyncio.sleep(0)


async def advance_until_done(stream: asyncio.Task[Any], scenario: Scenario) -> None:
    while not stream.done():
        scenario.clock.move_to(later(scenario.clock.now(), SECOND))
        await asyncio.sleep(0)


@asynchronous
async def test_event_stream_ends_with_the_session(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ})
        session = await scenario.service.sessions.sign_in(secret.encode())
        assert session is not None
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(build_pages(scenario.service)),
            base_url="http://yard.example",
            cookies={user_sessions.SESSION_COOKIE: session},
        ) as client:
            stream = asyncio.create_task(client.get(LIVE))
            await asyncio.sleep(0)
            await scenario.service.queues.update(KEY, {}, QueueState.PAUSED, "ada", lambda _: b"", None)
            await scenario.service.sessions.sign_out(session.encode())
            async with asyncio.timeout(20):
                await advance_until_done(stream, scenario)
            events = (await stream).text
        assert re.match(r"retry: \d{4}\nevent: follow\n", events)
        assert "event: change\n" in events


@asynchronous
async def test_new_forecast_is_sent_without_other_changes(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor, asyncio.timeout(20):
        asleep = scenario.clock.next_sleep()
        stream = asyncio.create_task(visitor.get(LIVE))
        await asleep
        scenario.queue_actor.forecast = {}
        await advance(scenario, SESSION_CHECK_INTERVAL_MS)
        scenario.service.change_waiter.stop()
        await advance_until_done(stream, scenario)
        assert (await stream).html.count("event: change\n") == 1


@asynchronous
async def test_silent_stream_reports_that_it_is_alive(tmp_path: Path):
    """page.js takes twice this interval without an event for a lost connection."""
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor, asyncio.timeout(20):
        asleep = scenario.clock.next_sleep()
        stream = asyncio.create_task(visitor.get(LIVE))
        await asleep
        await advance(scenario, 10 * ALIVE_INTERVAL_MS)
        scenario.service.change_waiter.stop()
        await advance_until_done(stream, scenario)
        follow, *others = [line for line in (await stream).html.splitlines() if line.startswith("event")]
        assert (follow, set(others)) == ("event: follow", {"event: alive"})
        assert len(others) >= 7  # the clock of this test moves in whole seconds


@asynchronous
async def test_page_of_a_deleted_queue_is_replaced(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        refresh = {"hx-request": "true", "hx-target": "live"}
        stream = asyncio.create_task(visitor.get(LIVE))
        await asyncio.sleep(0)
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        async with asyncio.timeout(20):
            await advance_until_done(stream, scenario)
        gone = await visitor.get("/queues/git.local/acme/app:main", **refresh)
        assert "event: gone\n" in (await stream).html
        assert (gone.status, gone.one("#error").one("h1").text) == (404, "This queue was deleted")
        assert (gone.headers["hx-retarget"], gone.headers["hx-reselect"]) == ("#content", "#error")
        assert "/" in gone.links()


@asynchronous
async def test_page_whose_session_ended_leads_to_sign_in_and_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        page = {"hx-request": "true", "hx-current-url": "http://yard.example/queues/git.local/acme/app:main?x=%26"}
        refreshed = await stranger.get("/queues/git.local/acme/app:main", **page)
        acted = await stranger.send("/actions/pause", page, queue="git.local/acme/app:main")
        back = "/sign-in?next=%2Fqueues%2Fgit.local%2Facme%2Fapp%3Amain%3Fx%3D%2526"
        assert [(each.status, each.headers["hx-redirect"]) for each in (refreshed, acted)] == [(204, back)] * 2
        elsewhere = {"hx-request": "true", "hx-current-url": "http://yard.example//evil.example/"}
        assert (await stranger.get("/", **elsewhere)).headers["hx-redirect"] == "/sign-in?next=%2F"


@asynchronous
async def test_number_of_event_streams_per_token_is_limited(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor, asyncio.timeout(20):
        following = {asyncio.create_task(visitor.get(LIVE)) for _ in range(MAX_STREAMS_PER_TOKEN + 1)}
        (refused,), following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        assert ((await refused).status, (await refused).headers["retry-after"]) == (503, "5")
        gone = following.pop()
        gone.cancel()
        await asyncio.wait([gone])
        following |= {asyncio.create_task(visitor.get(LIVE)) for _ in range(2)}
        (refused,), following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        assert ((await refused).status, len(following)) == (503, MAX_STREAMS_PER_TOKEN)
        scenario.service.change_waiter.stop()
        assert {stream.status for stream in await asyncio.gather(*following)} == {200}
