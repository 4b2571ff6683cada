"""The page of a queue: the graph, the lists, their cost, and the permissions."""

from pathlib import Path
from time import process_time
from typing import cast

from msgspec.structs import replace

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import Repo
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.service.repositories import WARNINGS_REFRESH_AFTER_MS
from mergeyard.web.queues import MAX_ROWS
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_plain_queue, a_submission
from tests.support.forge_drivers.driver import BOT
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import a_forge_scenario
from tests.support.forges.github.world import BranchProtection
from tests.support.scenario import MINUTE, SECOND, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client

HERE = "/queues/git.local/acme/app:main"
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'"


def batches(page: Page) -> list[str]:
    return [batch["aria-label"] for batch in page.all("article.wagon")]


def animated_ids(page: Page) -> list[str]:
    return [element["data-moves"] for element in page.all("[data-moves]")]


@asynchronous
async def test_empty_queue_shows_the_target_branch_and_what_to_do(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(HERE)
        assert page.status == 200
        assert page.one("h1").text == "acme/app main"
        assert page.one(".station").one("h3").text == "main"
        assert "Nothing is under test." in page.text
        assert "No pull request has left this queue yet. Submit one" in page.text


@asynchronous
async def test_active_batches_are_drawn_in_order(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        page = await visitor.get(HERE)
        assert batches(page) == ["Batch 1, testing", "Batch 2, passed"]
        assert [car.one("a").text for car in page.all("li.car")] == ["#1 Change 1", "#2 Change 2"]
        assert [pips["aria-label"] for pips in page.all(".pips")] == ["0 of 1 check done", "1 of 1 check done"]
        assert animated_ids(page) == ["batch-1", "pr-1", "batch-2", "pr-2"]


@asynchronous
async def test_run_with_a_known_duration_shows_its_progress(tmp_path: Path):
    seldom = ScenarioSetup(poll_interval_ms=60 * MINUTE)
    async with a_scenario(tmp_path, setup=seldom) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(8 * MINUTE)
        await scenario.passes(1)
        await scenario.submit(2)
        await scenario.advance_time(4 * MINUTE)
        page = await visitor.get(HERE)
        bar = page.one("svg.bar")
        assert (bar.one(".done")["width"], bar.one(".due")["x"]) == ("40", "80")
        assert page.one(".took").text == "4 min of ~8 min"


@asynchronous
async def test_lanes_are_drawn_in_parallel_with_their_shared_targets(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        for number, targets in (
            (1, impacted_targets_from_names("a")),
            (2, impacted_targets_from_names("b")),
            (3, impacted_targets_from_names("a", "b")),
        ):
            await scenario.upload_impacted_targets(number, targets)
            await scenario.submit(number)
        page = await visitor.get(HERE)
        assert [lane["aria-label"] for lane in page.all("ol.lane")] == ["Lane 1", "Lane 2"]
        assert [overlap.text for overlap in page.all(".stacked-on")] == ["on top of #1 a", "on top of #2 b"]
        assert page.all(".gap")[-1].all("path")


@asynchronous
async def test_bisection_of_a_failed_batch_is_shown(tmp_path: Path):
    batches = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, batches) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        await scenario.passes()
        bisection = (await visitor.get(HERE)).one("section.siding")
        assert bisection.one("h3").text == "Bisection"
        assert [cell["colspan"] for cell in bisection.all("td.known")] == ["2", "1"]


@asynchronous
async def test_waiting_prs_are_listed_in_order_with_the_reason(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3, 4)
        scenario.set_pull_request(4, draft=True)
        await scenario.submit(1, 2, 3, 4)
        await scenario.submit(3, priority=10)
        page = await visitor.get(HERE)
        rows = [row for row in page.all("li") if row.all(".why")]
        assert [row.one(".what").one("b").text for row in rows] == ["#3", "#2", "#4"]
        assert [row.one(".nth").text for row in rows] == ["2", "3", ""]
        assert rows[2].one(".why").text == "The pull request is a draft: mark it as ready."


@asynchronous
async def test_concluded_prs_are_listed_latest_first_with_their_outcome(tmp_path: Path):
    seldom = ScenarioSetup(poll_interval_ms=60 * MINUTE)
    async with a_scenario(tmp_path, setup=seldom) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        await scenario.submit(2)
        await scenario.cancel(2)
        rows = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert [row.one(".state").text for row in rows] == ["Removed", "Merged"]
        assert [row["data-moves"] for row in rows] == ["pr-2", "pr-1"]
        assert scenario.origin.tip("main")[:8] in rows[1].text


@asynchronous
async def test_concluded_prs_are_ordered_by_their_end_and_not_by_their_submission(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull_request(number, draft=True)
        await scenario.submit(1)
        for _ in range(MAX_ROWS):
            await scenario.submit(2)
            await scenario.cancel(2)
        await scenario.cancel(1)
        first, *others = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert (first["data-moves"], len(others)) == ("pr-1", MAX_ROWS - 1)


@asynchronous
async def test_resubmitted_pr_has_one_animated_element(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        for _ in range(2):
            await scenario.submit(1)
            await scenario.cancel(1)
        await scenario.submit(1)
        assert animated_ids(await visitor.get(HERE)).count("pr-1") == 1


@asynchronous
async def test_a_paused_queue_says_what_that_means_and_who_did_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.update(state=QueueState.PAUSED, concurrency=6)
        await scenario.advance_time(7 * SECOND)
        await scenario.update(concurrency=7)
        signal = (await visitor.get(HERE)).one(".signal")
        assert signal.text.startswith("Paused 7 s ago by ada. Nothing is admitted, started or merged.")


@asynchronous
async def test_texts_from_outside_are_escaped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull_request(number, title=HOSTILE, author=HOSTILE, draft=number == 2)
        await scenario.submit(1, 2)
        page = await visitor.get(HERE)
        assert page.html.count("&lt;img src=x onerror=alert(1)&gt;") >= 4
        assert not page.all("[onerror]")
        assert all(HOSTILE.strip() in bdi.text for bdi in page.one("li.car").all("bdi"))


@asynchronous
async def test_reader_sees_no_buttons(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario) as reader,
        a_signed_in_client(scenario, Scope.ADMIN) as admin,
    ):
        scenario.open(1)
        await scenario.submit(1)
        read, governed = await reader.get(HERE), await admin.get(HERE)
        assert not [form for form in read.all("form") if form["action"] != "/sign-out"]
        assert not read.all("a.more")
        actions = {form["action"] for form in governed.all("form")}
        assert actions >= {"/actions/submit", "/actions/pause", "/actions/drain", "/actions/resume"}


@asynchronous
async def test_queue_outside_the_repositories_of_the_token_does_not_exist(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=elsewhere) as visitor:
        hidden, missing = await visitor.get(HERE), await visitor.get("/queues/git.local/acme/none:main")
        assert (hidden.status, missing.status) == (404, 404)
        assert hidden.one("h1").text == missing.one("h1").text == "Queue not found"


@asynchronous
async def test_cost_of_the_page_does_not_grow_with_the_number_of_waiting_prs(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        crowd = a_plain_queue(*(a_submission(number) for number in range(1, 10_001)))
        scenario.queue_actor.queue = replace(crowd, id=scenario.queue_actor.id)
        await visitor.get(HERE)
        begun = process_time()
        page = await visitor.get(HERE)
        assert process_time() - begun < 0.1
        assert "and 9,980 more" in page.text
        assert len(page.all("a.more")) == 0


@asynchronous
async def test_bypass_of_required_reviews_is_shown_as_a_danger_warning_without_waiting_for_the_host(tmp_path: Path):
    reviews = BranchProtection(approvals=1, bypass={BOT: "always"})
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario, a_signed_in_client(scenario) as visitor:
        repository = cast(GithubDriver, scenario.forge).acme
        repository.rulesets["main"] = reviews
        assert not (await visitor.get(HERE)).all(".alarm")
        await scenario.wait_until_idle()
        warning = (await visitor.get(HERE)).one(".alarm")
        assert f"the account {BOT} can bypass the ruleset reviews and checks" in warning.text
        asked = scenario.api_call_count()
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        assert scenario.api_call_count() == asked
        repository.rulesets["main"] = replace(reviews, bypass={})
        await scenario.advance_time(WARNINGS_REFRESH_AFTER_MS)
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        assert not (await visitor.get(HERE)).all(".alarm")


@asynchronous
async def test_warning_is_kept_while_the_host_does_not_answer(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario, a_signed_in_client(scenario) as visitor:
        cast(GithubDriver, scenario.forge).acme.rulesets["main"] = BranchProtection(approvals=1, bypass={BOT: "exempt"})
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        scenario.fail_all_requests()
        await scenario.advance_time(WARNINGS_REFRESH_AFTER_MS)
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        assert (await visitor.get(HERE)).one(".alarm")
