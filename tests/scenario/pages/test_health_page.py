"""Health: how a queue did, over a period that the reader chooses."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from mergeyard.domain.config import Config
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import PrState
from mergeyard.domain.tokens import Scope
from mergeyard.ports.writes import AppendEntries, EntryRow
from mergeyard.web import visiting
from mergeyard.web.app import application
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Page, a_stranger, a_visitor
from tests.support.foretelling import PatientForeteller
from tests.support.scenario import MINUTE, Scenario, Stage, a_scenario

HERE = "/health/git.local/acme/app:main"
HOSTILE = "</script><b>unit</b>"
DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def a_flaky_merge(folder: Path) -> AsyncGenerator[Scenario]:
    """1 was red after ten minutes, and green when it was run again for five; 2 was cancelled while it waited."""
    stage = Stage(rules=f'version = 1\nrequired_statuses = ["{HOSTILE}"]\n', look_every=DAY)
    async with a_scenario(folder, Config(test_retries=1, concurrency=1), stage) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.cancel(2)
        await scenario.time_passes(10 * MINUTE)
        await scenario.fails(1, check=HOSTILE)
        await scenario.time_passes(5 * MINUTE)
        await scenario.passes(1, check=HOSTILE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        yield scenario


async def something_merged(scenario: Scenario, *, days_ago: int, minutes: int) -> None:
    """As the journal tells it: a story of days would take too long."""
    entry = EntryRow(
        queue=scenario.keeper.id,
        at=Instant(scenario.clock.now() - days_ago * DAY),
        kind="PrChanged",
        actor="mergeyard",
        token=None,
        source=PrState.TESTS_PASSED,
        to=PrState.MERGED,
        reason=Reason.MERGED_BY_QUEUE,
        in_queue=minutes * MINUTE,
        body=b"{}",
    )
    await scenario.store.commit(AppendEntries((entry,)))


def headlines(page: Page) -> dict[str, str]:
    return {each.one("dt").text: each.one(".value").text for each in page.all(".headline")}


def numbers(page: Page, name: str) -> Any:
    """Of a chart, as the script reads them."""
    return json.loads(str(page.one(f"[data-chart={name}]").one("script").parts[0]))


@asynchronous
async def test_a_merge_is_counted_with_its_time_its_runs_and_its_minutes(tmp_path: Path):
    async with a_flaky_merge(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=24h")
        assert page.title == "Health of app main · Mergeyard"
        assert headlines(page) == {
            "Merged": "1",
            "Success": "100 %",
            "Median in queue": "15 min",
            "95 % merge within": "15 min",
            "Runs per merged": "2.00",
            "CI minutes spent": "15",
            "CI minutes saved": "0",
        }
        throughput = page.one("[data-chart=throughput]")
        assert throughput.one("h2").text == "1 merged, 0 failed, 1 cancelled"
        assert [cell.text for cell in throughput.one("tbody").all("td")] == ["1", "0", "1"]
        merged, failed, cancelled = numbers(page, "throughput")["values"]
        assert (sum(merged), sum(failed), sum(cancelled), len(merged)) == (1, 0, 1, 24)
        assert "1 of 1 that did not merge: cancelled by user" in page.text


@asynchronous
async def test_a_check_that_contradicts_itself_is_suspected_and_its_name_is_mere_text(tmp_path: Path):
    async with a_flaky_merge(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(HERE)
        (suspect,) = page.one(".suspects").one("tbody").all("tr")
        assert suspect.one("th").text == HOSTILE
        assert HOSTILE not in page.html
        assert [cell.text for cell in suspect.all("td")][:2] == ["1", "1 run of 2"]
        red, green = suspect.all("a")
        assert red["href"].startswith("/runs/")
        assert red["href"] != green["href"]
        assert "style=" not in page.html
        everywhere = await visitor.get("/health")
        assert everywhere.one("h1").text == "Health of all queues"
        assert everywhere.one(".suspects").one("td[data-label=Queue]").one("a")["href"] == HERE


@asynchronous
async def test_how_often_estimates_held_is_told(tmp_path: Path):
    stage = Stage(look_every=DAY, foreteller=PatientForeteller())
    async with a_scenario(tmp_path, stage=stage) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.time_passes(10 * MINUTE)
        await scenario.passes(1)
        assert (await visitor.get(HERE)).one("[id=estimates]").text == "No estimate has been put to the test"
        await scenario.submit(2)
        await scenario.time_passes(MINUTE)
        await scenario.passes(2)
        await scenario.time_passes(MINUTE)
        for address in (HERE, "/health"):
            page = await visitor.get(address)
            assert page.one("[id=estimates]").text == "Too few merges to judge the estimates"
            assert "So far p90 held for 1 of 1 merged, p50 for 1. Counted since this server started" in page.text


@asynchronous
async def test_the_chosen_period_is_shown_and_what_lies_before_it_is_not(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        await something_merged(scenario, days_ago=8, minutes=15)
        week = await visitor.get(HERE)
        assert week.one(".empty").one("h2").text == "Nothing happened in these 7 days"
        month = await visitor.get(f"{HERE}?period=30d&by=hour")
        assert [choice.text for choice in month.all("a[aria-current=true]")] == ["30 days", "by hour"]
        assert headlines(month)["Merged"] == "1"


@asynchronous
async def test_the_period_before_is_what_it_is_compared_with(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        await something_merged(scenario, days_ago=1, minutes=15)
        await something_merged(scenario, days_ago=0, minutes=30)
        page = await visitor.get(f"{HERE}?period=24h")
        (median,) = [each for each in page.all(".headline") if each.one("dt").text == "Median in queue"]
        assert median.one(".change").text == "▲ 100 % worse"
        assert "15 min before" in median.text


@asynchronous
async def test_what_a_token_may_not_see_is_not_counted(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, repos=elsewhere) as visitor:
        await something_merged(scenario, days_ago=0, minutes=1)
        assert (await visitor.get(HERE)).status == 404
        everything = await visitor.get("/health")
        assert (everything.status, everything.one(".empty").one("h2").text) == (200, "No queue to examine")


@asynchronous
async def test_a_queue_that_is_not_there_has_no_health(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        assert (await visitor.get("/health/git.local/acme/app:gone")).status == 404
        assert (await visitor.get("/health/nonsense")).status == 404
        assert (await visitor.get(HERE)).one(".empty").one("h2").text == "Nothing happened in these 7 days"


@asynchronous
async def test_whoever_is_not_signed_in_is_led_to_the_door(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        led = await stranger.get(f"{HERE}?period=30d")
        assert (led.status, led.location[:14]) == (303, "/sign-in?next=")


@asynchronous
async def test_whoever_asks_again_within_a_minute_is_told_the_same_and_then_something_new(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        await something_merged(scenario, days_ago=0, minutes=1)
        assert headlines(await visitor.get(HERE))["Merged"] == "1"
        await something_merged(scenario, days_ago=0, minutes=1)
        assert headlines(await visitor.get(HERE))["Merged"] == "1"
        assert headlines(await visitor.get(f"{HERE}?by=hour"))["Merged"] == "2"
        await scenario.time_passes(MINUTE)
        assert headlines(await visitor.get(HERE))["Merged"] == "2"


def left_by_its_client(app: ASGIApp) -> ASGIApp:
    async def hung_up() -> Message:
        return {"type": "http.disconnect"}

    async def left(scope: ASGIScope, _: Receive, send: Send) -> None:
        await app(scope, hung_up, send)

    return left


@asynchronous
async def test_nothing_is_read_for_somebody_who_has_left(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ})
        session = await scenario.service.sessions.sign_in(secret.encode())
        assert session is not None
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(left_by_its_client(application(scenario.service))),
            base_url="http://yard.example",
            cookies={visiting.COOKIE: session},
        ) as client:
            answer = await client.get(HERE)
        assert (answer.status_code, answer.content) == (204, b"")
