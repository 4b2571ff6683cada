"""What if: a form of settings, and what the queue's own past would have been with them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.domain.config import Config
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Page, a_stranger, a_visitor
from tests.support.scenario import MINUTE, Scenario, Stage, a_scenario

HERE = "/whatif/git.local/acme/app:main"
AS_IT_IS = "concurrency=1&batching_min_size=4&batching_max_wait_time_minutes=5&speculation=chain&mode=single"
WIDER = AS_IT_IS.replace("concurrency=1", "concurrency=3")
DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def three_in_turn(folder: Path) -> AsyncGenerator[Scenario]:
    """Three came at once, and each was tested for ten minutes after the one before it."""
    async with a_scenario(folder, Config(concurrency=1), Stage(look_every=DAY)) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        for number in (1, 2, 3):
            await scenario.time_passes(10 * MINUTE)
            await scenario.passes(number)
        yield scenario


def rows(page: Page) -> dict[str, list[str]]:
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in page.one("tbody").all("tr")}


@asynchronous
async def test_the_form_has_the_settings_as_they_are_and_nothing_is_replayed_before_it_is_asked_for(tmp_path: Path):
    async with three_in_turn(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=30d")
        assert page.title == "What if, for main of acme/app · Mergeyard"
        assert page.one("#concurrency")["value"] == "1"
        assert [each["value"] for each in page.one("#period").all("option[selected]")] == ["30d"]
        assert "checked" not in page.one("#batch").attributes
        assert page.one(".empty").one("h2").text == "Nothing is replayed yet"
        slider = page.one("[data-slides=concurrency]")
        assert (slider["min"], slider["max"], slider["name"]) == ("1", "50", "")


@asynchronous
async def test_a_wish_is_answered_with_every_figure_and_how_sure_it_is(tmp_path: Path):
    async with three_in_turn(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?period=24h&{WIDER}")
        assert page.one("#finding").text.startswith("Half merge within 10 min instead of 20 min, for ")
        *before, changed, difference = rows(page)["Half merged within"]
        assert (before, changed.partition(" to ")[0][:6], difference) == (
            ["20 min", "20 min"],
            "10 min",
            "▼ 50 % better",
        )
        assert rows(page)["Runs"] == ["3", "3", "3", "none"]
        assert page.one("#sure").text == "What this would do is hardly known"
        assert "Replayed as it was, half merged within 20 min; it really was 20 min." in page.text
        assert "Only 3 pull requests merged in this time" in page.text
        assert "Runs at once: 1 → 3." in page.text
        assert page.one("#concurrency")["value"] == "3"


@asynchronous
async def test_with_the_settings_as_they_are_it_tells_how_well_it_replays(tmp_path: Path):
    async with three_in_turn(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?{AS_IT_IS}")
        assert page.one("#finding").text == "As it was, half merge within 20 min"
        assert rows(page)["Runs"] == ["3", "3"]


@asynchronous
async def test_a_switch_that_is_not_sent_is_off(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1, batch=True)) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?{AS_IT_IS}")
        assert "Batching: on → off." in page.text
        assert "Batching" not in (await visitor.get(f"{HERE}?{AS_IT_IS}&batch=on")).one("#live").text


@asynchronous
async def test_a_number_that_does_not_fit_is_explained_and_nothing_is_replayed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(f"{HERE}?{AS_IT_IS.replace('concurrency=1', 'concurrency=many')}")
        assert page.status == 422
        assert page.one(".said").text == "Runs at once: Give a whole number from 1 to 1,000."
        assert page.one("#concurrency")["aria-invalid"] == "true"
        assert page.all("tbody") == []


@asynchronous
async def test_whoever_asks_the_same_within_a_minute_is_told_the_same(tmp_path: Path):
    async with three_in_turn(tmp_path) as scenario, a_visitor(scenario) as visitor:
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "3"
        scenario.open(4)
        await scenario.submit(4)
        await scenario.passes(4)
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "3"
        await scenario.time_passes(MINUTE)
        assert rows(await visitor.get(f"{HERE}?{WIDER}"))["Merged"][0] == "4"


@asynchronous
async def test_the_health_of_a_queue_leads_here_with_its_period(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        assert f"{HERE}?period=30d" in (await visitor.get("/health/git.local/acme/app:main?period=30d")).links()
        assert not any("whatif" in link for link in (await visitor.get("/health")).links())
        assert "/health/git.local/acme/app:main?period=24h" in (await visitor.get(f"{HERE}?period=24h")).links()


@asynchronous
async def test_only_who_may_see_the_queue_may_ask(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN, repos=elsewhere) as visitor:
        assert (await visitor.get(f"{HERE}?{WIDER}")).status == 404
        async with a_stranger(scenario.service) as stranger:
            assert (await stranger.get(HERE)).location[:14] == "/sign-in?next="
