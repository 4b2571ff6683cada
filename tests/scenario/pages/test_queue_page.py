"""The page of a queue: the track, the lists, what it costs, and what it lets nobody do."""

from pathlib import Path
from time import process_time
from typing import cast

from msgspec.structs import replace

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import QueueState
from mergeyard.domain.targets import named
from mergeyard.domain.tokens import Scope
from mergeyard.service.examining import WARNINGS_REFRESH_AFTER
from mergeyard.web.queue import MOST_ROWS
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Page, a_visitor
from tests.support.builders import a_plain_queue, a_submission
from tests.support.forge_scenario import a_forge_scenario
from tests.support.forges.github.facts import Guard
from tests.support.meeting_places.github import GithubPlace
from tests.support.meeting_places.place import US
from tests.support.scenario import MINUTE, SECOND, Stage, a_scenario

HERE = "/queues/git.local/acme/app:main"
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'"


def wagons(page: Page) -> list[str]:
    return [wagon["aria-label"] for wagon in page.all("article.wagon")]


def moving(page: Page) -> list[str]:
    return [element["data-moves"] for element in page.all("[data-moves]")]


@asynchronous
async def test_an_empty_queue_shows_its_station_and_what_to_do(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        page = await visitor.get(HERE)
        assert page.status == 200
        assert page.one("h1").text == "acme/app main"
        assert page.one(".station").one("h3").text == "main"
        assert "Nothing is under test." in page.text
        assert "Submit a pull request to see it move" in page.text


@asynchronous
async def test_the_line_is_drawn_wagon_behind_wagon(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        page = await visitor.get(HERE)
        assert wagons(page) == ["Batch 1, testing", "Batch 2, passed"]
        assert [car.one("a").text for car in page.all("li.car")] == ["#1 Change 1", "#2 Change 2"]
        assert [pips["aria-label"] for pips in page.all(".pips")] == ["0 of 1 check done", "1 of 1 check done"]
        assert moving(page) == ["batch-1", "pr-1", "batch-2", "pr-2"]


@asynchronous
async def test_a_run_that_usually_takes_some_time_shows_how_far_it_is(tmp_path: Path):
    seldom = Stage(look_every=60 * MINUTE)
    async with a_scenario(tmp_path, stage=seldom) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.time_passes(8 * MINUTE)
        await scenario.passes(1)
        await scenario.submit(2)
        await scenario.time_passes(4 * MINUTE)
        page = await visitor.get(HERE)
        bar = page.one("svg.bar")
        assert (bar.one(".done")["width"], bar.one(".due")["x"]) == ("40", "80")
        assert page.one(".took").text == "4 min of ~8 min"


@asynchronous
async def test_lanes_stand_side_by_side_and_say_what_they_share(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2, 3)
        for number, targets in ((1, named("a")), (2, named("b")), (3, named("a", "b"))):
            await scenario.set_targets(number, targets)
            await scenario.submit(number)
        page = await visitor.get(HERE)
        assert [lane["aria-label"] for lane in page.all("ol.lane")] == ["Lane 1", "Lane 2"]
        assert [upon.text for upon in page.all(".upon")] == ["upon #1 a", "upon #2 b"]
        assert page.all(".gap")[-1].all("path")


@asynchronous
async def test_a_red_batch_is_searched_on_a_siding(tmp_path: Path):
    batches = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, batches) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        await scenario.passes()
        siding = (await visitor.get(HERE)).one("section.siding")
        assert siding.one("h3").text == "Who broke it?"
        assert [cell["colspan"] for cell in siding.all("td.known")] == ["2", "1"]


@asynchronous
async def test_those_who_wait_are_listed_in_order_with_the_reason(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2, 3, 4)
        scenario.set_pull(4, draft=True)
        await scenario.submit(1, 2, 3, 4)
        await scenario.submit(3, priority=10)
        page = await visitor.get(HERE)
        rows = [row for row in page.all("li") if row.all(".why")]
        assert [row.one(".what").one("b").text for row in rows] == ["#3", "#2", "#4"]
        assert [row.one(".nth").text for row in rows] == ["2", "3", ""]
        assert rows[2].one(".why").text == "It is a draft: mark it as ready."


@asynchronous
async def test_those_who_left_are_shown_latest_first_with_what_became_of_them(tmp_path: Path):
    seldom = Stage(look_every=60 * MINUTE)
    async with a_scenario(tmp_path, stage=seldom) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.time_passes(MINUTE)
        await scenario.submit(2)
        await scenario.cancel(2)
        rows = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert [row.one(".state").text for row in rows] == ["cancelled", "merged"]
        assert [row["data-moves"] for row in rows] == ["pr-2", "pr-1"]
        assert scenario.origin.tip("main")[:8] in rows[1].text


@asynchronous
async def test_one_that_stayed_longer_than_all_others_is_shown_first_once_it_ended(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull(number, draft=True)
        await scenario.submit(1)
        for _ in range(MOST_ROWS):
            await scenario.submit(2)
            await scenario.cancel(2)
        await scenario.cancel(1)
        first, *others = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert (first["data-moves"], len(others)) == ("pr-1", MOST_ROWS - 1)


@asynchronous
async def test_a_pull_request_that_is_back_again_has_one_place_from_which_it_moves(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1)
        for _ in range(2):
            await scenario.submit(1)
            await scenario.cancel(1)
        await scenario.submit(1)
        assert moving(await visitor.get(HERE)).count("pr-1") == 1


@asynchronous
async def test_a_paused_queue_says_what_that_means_and_who_did_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        await scenario.update(state=QueueState.PAUSED, concurrency=6)
        await scenario.time_passes(7 * SECOND)
        await scenario.update(concurrency=7)
        signal = (await visitor.get(HERE)).one(".signal")
        assert signal.text.startswith("Paused 7 s ago by ada. Nothing enters, starts or merges.")


@asynchronous
async def test_what_comes_from_outside_is_text(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull(number, title=HOSTILE, author=HOSTILE, draft=number == 2)
        await scenario.submit(1, 2)
        page = await visitor.get(HERE)
        assert page.html.count("&lt;img src=x onerror=alert(1)&gt;") >= 4
        assert not page.all("[onerror]")
        assert all(HOSTILE.strip() in bdi.text for bdi in page.one("li.car").all("bdi"))


@asynchronous
async def test_whoever_may_only_read_sees_no_buttons(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_visitor(scenario) as reader,
        a_visitor(scenario, Scope.ADMIN) as admin,
    ):
        scenario.open(1)
        await scenario.submit(1)
        read, governed = await reader.get(HERE), await admin.get(HERE)
        assert not [form for form in read.all("form") if form["action"] != "/sign-out"]
        assert not read.all("a.more")
        actions = {form["action"] for form in governed.all("form")}
        assert actions >= {"/actions/submit", "/actions/pause", "/actions/drain", "/actions/resume"}


@asynchronous
async def test_a_queue_outside_of_the_tokens_repositories_does_not_exist(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, repos=elsewhere) as visitor:
        hidden, missing = await visitor.get(HERE), await visitor.get("/queues/git.local/acme/none:main")
        assert (hidden.status, missing.status) == (404, 404)
        assert hidden.one("h1").text == missing.one("h1").text == "Nothing is here"


@asynchronous
async def test_ten_thousand_that_wait_cost_no_more_than_those_that_are_shown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        crowd = a_plain_queue(*(a_submission(number) for number in range(1, 10_001)))
        scenario.keeper.queue = replace(crowd, id=scenario.keeper.id)
        await visitor.get(HERE)
        begun = process_time()
        page = await visitor.get(HERE)
        assert process_time() - begun < 0.1
        assert "and 9,980 more" in page.text
        assert len(page.all("a.more")) == 0


@asynchronous
async def test_a_bypass_of_required_reviews_is_warned_of_in_red_without_waiting_for_the_host(tmp_path: Path):
    reviews = Guard(approvals=1, bypass={US: "always"})
    async with a_forge_scenario(tmp_path, GithubPlace) as scenario, a_visitor(scenario) as visitor:
        repository = cast(GithubPlace, scenario.place).acme
        repository.rulesets["main"] = reviews
        assert not (await visitor.get(HERE)).all(".alarm")
        await scenario.rest()
        warning = (await visitor.get(HERE)).one(".alarm")
        assert f"the account {US} can bypass the ruleset reviews and checks" in warning.text
        asked = scenario.asked()
        await visitor.get(HERE)
        await scenario.rest()
        assert scenario.asked() == asked
        repository.rulesets["main"] = replace(reviews, bypass={})
        await scenario.time_passes(WARNINGS_REFRESH_AFTER)
        await visitor.get(HERE)
        await scenario.rest()
        assert not (await visitor.get(HERE)).all(".alarm")


@asynchronous
async def test_a_warning_stays_while_the_host_does_not_answer(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubPlace) as scenario, a_visitor(scenario) as visitor:
        cast(GithubPlace, scenario.place).acme.rulesets["main"] = Guard(approvals=1, bypass={US: "exempt"})
        await visitor.get(HERE)
        await scenario.rest()
        scenario.break_down()
        await scenario.time_passes(WARNINGS_REFRESH_AFTER)
        await visitor.get(HERE)
        await scenario.rest()
        assert (await visitor.get(HERE)).one(".alarm")
