"""The what-if page: a form of settings, and the replay of the queue's history with them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import Repo
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client, an_anonymous_client

pytestmark = pytest.mark.long

HERE = "/whatif/git.local/acme/app:main"
AS_IT_IS = "concurrency=1&batching_min_size=4&batching_max_wait_time_minutes=5&speculation=chain&mode=single"
WIDER = AS_IT_IS.replace("concurrency=1", "concurrency=3")
DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def a_queue_with_three_merges(folder: Path) -> AsyncGenerator[Scenario]:
    """Three were submitted together and tested one after the other, ten minutes each."""
    async with a_scenario(folder, Config(concurrency=1), ScenarioSetup(poll_interval_ms=DAY)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        for number in (1, 2, 3):
            await scenario.advance_time(10 * MINUTE)
            await scenario.passes(number)
        yield scenario


def rows(page: Page) -> dict[str, list[str]]:
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in page.one("tbody").all("tr")}


@asynchronous
async def test_form_shows_the_current_settings_and_nothing_is_replayed_yet(tmp_path: Path):
    async with a_queue_with_three_merges(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=30d")
        assert page.title == "What if, for main of acme/app · Mergeyard"
        assert page.one("#concurrency")["value"] == "1"
        assert [each["value"] for each in page.one("#period").all("option[selected]")] == ["30d"]
        assert "checked" not in page.one("#batch").attributes
        assert page.one(".empty").one("h2").text == "Change a setting to see its effect"
        slider = page.one("[data-slides=concurrency]")
        assert (slider["min"], slider["max"], slider["name"]) == ("1", "50", "")


@asynchronous
async def test_replay_shows_every_metric_with_its_uncertainty(tmp_path: Path):
    async with a_queue_with_three_merges(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=24h&{WIDER}")
        assert page.one("#finding").text.startswith("Replayed median 10 min instead of 20 min, CI minutes ")
        *before, changed, difference = rows(page)["Median time to merge"]
        assert (before, changed.partition(" to ")[0][:6], difference) == (
            ["20 min", "20 min"],
            "10 min",
            "−10 min (−50 %)",  # noqa: RUF001
        )
        assert not page.all(".better")
        assert page.html.index('id="sure"') < page.html.index('id="finding"')
        assert rows(page)["Runs"] == ["3", "3", "3", "no change"]
        assert page.one("#sure").text == "Confidence: low"
        assert "the replay has a median of 20 min. The actual median was 20 min." in page.text
        assert "Only 3 pull requests merged in this period" in page.text
        assert "Concurrency: 1 → 3." in page.text
        assert page.one("#concurrency")["value"] == "3"


@asynchronous
async def test_replay_with_the_current_settings_shows_its_accuracy(tmp_path: Path):
    async with a_queue_with_three_merges(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(f"{HERE}?{AS_IT_IS}")
        assert page.one("#finding").text == "Replayed median 20 min without a change"
        assert rows(page)["Runs"] == ["3", "3"]


@asynchronous
async def test_what_a_link_does_not_name_is_as_it_is_now(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=1, batch=True)) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        page = await visitor.get(f"{HERE}?batching_min_size=8")
        assert (page.status, page.one("#batching_min_size")["value"]) == (200, "8")
        assert "Batch size: 4 → 8." in page.text
        assert "checked" in page.one("#batch").attributes
        assert "Batching" not in page.one("#live").text
        assert "Batching: on → off." in (await visitor.get(f"{HERE}?batch=off")).text
        assert "Batching" not in (await visitor.get(f"{HERE}?batch=off&batch=on")).one("#live").text


@asynchronous
async def test_administrator_applies_the_settings_on_the_settings_page(tmp_path: Path):
    apply = "/settings/git.local/acme/app:main?concurrency=3"
    async with (
        a_queue_with_three_merges(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
        a_signed_in_client(scenario, name="reader") as reader,
    ):
        assert apply in (await visitor.get(f"{HERE}?{WIDER}")).links()
        assert apply not in (await reader.get(f"{HERE}?{WIDER}")).links()
        assert not [
            link for link in (await visitor.get(f"{HERE}?{AS_IT_IS}")).links() if "?" in link and "settings" in link
        ]
        assert (await visitor.get(apply)).one("#concurrency")["value"] == "3"
        assert scenario.queue_actor.queue.config.concurrency == 1


@asynchronous
async def test_invalid_number_is_explained_and_nothing_is_replayed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(f"{HERE}?{AS_IT_IS.replace('concurrency=1', 'concurrency=many')}")
        assert page.status == 422
        assert page.one("#live").one(".said").text == "Concurrency: Enter a number from 1 to 1000."
        assert page.one("#concurrency")["aria-invalid"] == "true"
        assert page.all("tbody") == []


@asynchronous
async def test_replay_is_cached_for_a_minute(tmp_path: Path):
    async with a_queue_with_three_merges(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "3"
        scenario.open(4)
        await scenario.submit(4)
        await scenario.passes(4)
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "3"
        await scenario.advance_time(MINUTE)
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "4"


@asynchronous
async def test_health_page_links_to_the_whatif_page_with_its_period(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        assert f"{HERE}?period=30d" in (await visitor.get("/health/git.local/acme/app:main?period=30d")).links()
        assert not any("whatif" in link for link in (await visitor.get("/health")).links())
        assert "/health/git.local/acme/app:main?period=24h" in (await visitor.get(f"{HERE}?period=24h")).links()


@asynchronous
async def test_replay_needs_read_access_to_the_queue(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN, repos=elsewhere) as visitor:
        assert (await visitor.get(f"{HERE}?{WIDER}")).status == 404
        async with an_anonymous_client(scenario.service) as stranger:
            assert (await stranger.get(HERE)).location[:14] == "/sign-in?next="
