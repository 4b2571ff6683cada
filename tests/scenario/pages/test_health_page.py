"""The health page: metrics of a queue over a chosen period."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import Repo
from mergeyard.domain.states import PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.writes import AppendEntries, EntryRow
from mergeyard.web import user_sessions
from mergeyard.web.pull_request_list import ROWS_PER_PAGE
from tests.support.asynchronous import asynchronous
from tests.support.forecasts import InProcessForecaster
from tests.support.scenario import MINUTE, SECOND, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Page, WebClient, a_signed_in_client, an_anonymous_client, build_pages

HERE = "/health/git.local/acme/app:main"
HOSTILE = "</script><b>unit</b>"
DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def a_flaky_merge(folder: Path) -> AsyncGenerator[Scenario]:
    """1 failed after ten minutes and passed in a retry of five minutes; 2 was cancelled while it waited."""
    stage = ScenarioSetup(repository_config=f'version = 1\nrequired_statuses = ["{HOSTILE}"]\n', poll_interval_ms=DAY)
    async with a_scenario(folder, Config(test_retries=1, concurrency=1), stage) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.cancel(2)
        await scenario.advance_time(10 * MINUTE)
        await scenario.fails(1, check=HOSTILE)
        await scenario.advance_time(5 * MINUTE)
        await scenario.passes(1, check=HOSTILE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        yield scenario


async def record_merge(scenario: Scenario, *, days_ago: int, minutes: int) -> None:
    """Writes the journal entries directly: a scenario over days would take too long."""
    entry = EntryRow(
        queue=scenario.queue_actor.id,
        at=Instant(scenario.clock.now() - days_ago * DAY),
        kind="PullRequestChanged",
        actor="mergeyard",
        token=None,
        source=PullRequestState.TESTS_PASSED,
        to=PullRequestState.MERGED,
        reason=Reason.MERGED_BY_QUEUE,
        ms_in_queue=minutes * MINUTE,
        body=b"{}",
    )
    await scenario.store.commit(AppendEntries((entry,)))


@asynccontextmanager
async def after_days(days: int, folder: Path) -> AsyncGenerator[tuple[Scenario, WebClient]]:
    """The queue was created so many days ago."""
    async with a_scenario(folder) as scenario:
        scenario.clock.move_to(Instant(scenario.clock.now() + days * DAY))
        async with a_signed_in_client(scenario) as visitor:
            yield scenario, visitor


def headlines(page: Page) -> dict[str, str]:
    return {each.one("dt").text: each.one(".value").text for each in page.all(".headline")}


def numbers(page: Page, name: str) -> Any:
    """The data of a chart, as the script reads them."""
    return json.loads(str(page.one(f"[data-chart={name}]").one("script").children[0]))


@asynchronous
async def test_merge_is_counted_with_its_duration_runs_and_ci_minutes(tmp_path: Path):
    async with a_flaky_merge(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=24h")
        assert page.title == "Health of acme/app main · Mergeyard"
        assert headlines(page) == {
            "Merged": "1",
            "Success rate": "100 %",
            "Median time to merge": "15 min",
            "p95 time to merge": "15 min",
            "Runs per merge": "2.00",
            "CI minutes spent": "15",
            "CI minutes saved": "0",
        }
        throughput = page.one("[data-chart=throughput]")
        assert throughput.one("h2").text == "1 merged, 0 failed, 1 removed"
        assert [cell.text for cell in throughput.one("tbody").all("td")] == ["1", "0", "1"]
        merged, failed, cancelled = numbers(page, "throughput")["values"]
        assert (sum(merged), sum(failed), sum(cancelled), len(merged)) == (1, 0, 1, 25)
        assert "Most common reason for not merging: a user removed it (1 of 1)" in page.text
        assert "No restarts" not in [each.text for each in page.all("h2")]  # its card would be empty


@asynchronous
async def test_numbers_lead_to_their_pull_requests(tmp_path: Path):
    async with a_flaky_merge(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        for address in (f"{HERE}?period=24h", f"{HERE}?period=90d", "/health"):
            page = await visitor.get(address)
            (finished,) = [each for each in page.links() if "state=finished" in each]
            (merged,) = [each for each in page.links() if "state=merged" in each]
            assert (await visitor.get(finished)).one("#found").text == "2 pull requests"
            assert headlines(page)["Merged"] == "1"
            assert (await visitor.get(merged)).one("#found").text == "1 pull request"


@asynchronous
async def test_a_number_and_its_list_count_the_same_pull_requests(tmp_path: Path):
    """The page is up to a minute old, and its period ended when it was computed."""
    stage = ScenarioSetup(poll_interval_ms=DAY)
    async with a_scenario(tmp_path, setup=stage) as scenario, a_signed_in_client(scenario) as visitor:
        numbers = tuple(range(1, ROWS_PER_PAGE + 3))
        scenario.open(*numbers)
        for number in numbers[:-1]:
            await scenario.submit(number)
            await scenario.cancel(number)
        await scenario.advance_time(MINUTE)
        await visitor.get(HERE)
        await scenario.advance_time(SECOND)
        await scenario.submit(numbers[-1])
        await scenario.cancel(numbers[-1])
        await scenario.advance_time(MINUTE // 2)
        page = await visitor.get(HERE)
        (link,) = [each for each in page.links() if "state=finished" in each]
        listed = await visitor.get(link)
        assert page.one("[data-chart=throughput]").one("h2").text == "0 merged, 0 failed, 51 removed"
        assert listed.one("#found").text == "51 pull requests"
        assert not listed.one("#live")["hx-get"]
        (following,) = [each["href"] for each in listed.all("a") if each["rel"] == "next"]
        assert (await visitor.get(following)).one("#found").text == "51 pull requests"


@asynchronous
async def test_check_with_contradicting_results_is_shown_as_flaky_with_an_escaped_name(tmp_path: Path):
    async with a_flaky_merge(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(HERE)
        (suspect,) = page.one(".suspects").one("tbody").all("tr")
        assert suspect.one("th").text == HOSTILE
        assert HOSTILE not in page.html
        assert [cell.text for cell in suspect.all("td")][:2] == ["1", "1 run of 2"]
        failed_run, passed_run = suspect.all("a")
        assert failed_run["href"].startswith("/runs/")
        assert failed_run["href"] != passed_run["href"]
        assert "style=" not in page.html
        everywhere = await visitor.get("/health")
        assert everywhere.one("h1").text == "Health of all queues"
        assert everywhere.one(".suspects").one("td[data-label=Queue]").one("a")["href"] == HERE


@pytest.mark.long
@asynchronous
async def test_accuracy_of_estimates_is_shown(tmp_path: Path):
    stage = ScenarioSetup(poll_interval_ms=DAY, forecaster=InProcessForecaster())
    async with a_scenario(tmp_path, setup=stage) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(10 * MINUTE)
        await scenario.passes(1)
        assert (await visitor.get(HERE)).one("[id=estimates]").text == "No estimates to evaluate yet"
        await scenario.submit(2)
        await scenario.advance_time(MINUTE)
        await scenario.passes(2)
        await scenario.advance_time(MINUTE)
        for address in (HERE, "/health"):
            page = await visitor.get(address)
            assert page.one("[id=estimates]").text == "Too few merges to evaluate the estimates"
            counts = "So far 1 of 1 merged within the p90 estimate, and 1 within the p50 estimate."
            assert f"{counts} Counted since this server started" in page.text


@asynchronous
async def test_only_the_chosen_period_is_shown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await record_merge(scenario, days_ago=8, minutes=15)
        week = await visitor.get(HERE)
        assert week.one(".empty").one("h2").text == "No activity in the last 7 days"
        month = await visitor.get(f"{HERE}?period=30d&by=hour")
        assert [choice.text for choice in month.all("a[aria-current=true]")] == ["30 days", "by hour"]
        assert headlines(month)["Merged"] == "1"


@asynchronous
async def test_period_is_compared_with_the_one_before(tmp_path: Path):
    async with after_days(3, tmp_path) as (scenario, visitor):
        await record_merge(scenario, days_ago=1, minutes=15)
        await record_merge(scenario, days_ago=0, minutes=30)
        page = await visitor.get(f"{HERE}?period=24h")
        (median,) = [each for each in page.all(".headline") if each.one("dt").text == "Median time to merge"]
        assert median.one(".change").text == "▲ 100 % worse"
        assert "was 15 min" in median.text


@asynchronous
async def test_period_is_not_compared_with_one_in_which_the_queue_did_not_exist(tmp_path: Path):
    async with after_days(10, tmp_path) as (scenario, visitor):
        await record_merge(scenario, days_ago=8, minutes=15)
        await record_merge(scenario, days_ago=0, minutes=30)
        page = await visitor.get(f"{HERE}?period=7d")
        (median,) = [each for each in page.all(".headline") if each.one("dt").text == "Median time to merge"]
        assert not median.all(".change")
        assert "was 15 min (only 3 of 7 days)" in median.text


@asynchronous
async def test_retries_are_proposed_only_to_a_queue_without_them(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await record_merge(scenario, days_ago=0, minutes=30)
        assert "set testRetries" in (await visitor.get(HERE)).text
        assert "1 queue does not repeat failed runs: set testRetries there" in (await visitor.get("/health")).text
        await scenario.update(test_retries=1)
        for address in (HERE, "/health"):
            page = await visitor.get(address)
            assert "No flaky checks found" in page.text
            assert "testRetries" not in page.text


@asynchronous
async def test_queues_that_the_token_cannot_see_are_not_counted(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=elsewhere) as visitor:
        await record_merge(scenario, days_ago=0, minutes=1)
        assert (await visitor.get(HERE)).status == 404
        everything = await visitor.get("/health")
        assert (everything.status, everything.one(".empty").one("h2").text) == (200, "No queues")


@asynchronous
async def test_unknown_queue_has_no_health_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        assert (await visitor.get("/health/git.local/acme/app:gone")).status == 404
        assert (await visitor.get("/health/nonsense")).status == 404
        assert (await visitor.get(HERE)).one(".empty").one("h2").text == "No activity in the last 7 days"


@asynchronous
async def test_anonymous_visitor_is_redirected_to_the_sign_in_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        response = await stranger.get(f"{HERE}?period=30d")
        assert (response.status, response.location[:14]) == (303, "/sign-in?next=")


@asynchronous
async def test_result_is_cached_for_a_minute(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await record_merge(scenario, days_ago=0, minutes=1)
        assert headlines(await visitor.get(HERE))["Merged"] == "1"
        await record_merge(scenario, days_ago=0, minutes=1)
        assert headlines(await visitor.get(HERE))["Merged"] == "1"
        assert headlines(await visitor.get(f"{HERE}?by=hour"))["Merged"] == "2"
        await scenario.advance_time(MINUTE)
        assert headlines(await visitor.get(HERE))["Merged"] == "2"


def disconnected(app: ASGIApp) -> ASGIApp:
    async def receive_disconnect() -> Message:
        return {"type": "http.disconnect"}

    async def call_disconnected(scope: ASGIScope, _: Receive, send: Send) -> None:
        await app(scope, receive_disconnect, send)

    return call_disconnected


@asynchronous
async def test_nothing_is_read_for_a_disconnected_client(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        _, secret = await scenario.service.tokens.create("ada", {Scope.READ})
        session = await scenario.service.sessions.sign_in(secret.encode())
        assert session is not None
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(disconnected(build_pages(scenario.service))),
            base_url="http://yard.example",
            cookies={user_sessions.SESSION_COOKIE: session},
        ) as client:
            answer = await client.get(HERE)
        assert (answer.status_code, answer.content) == (204, b"")
