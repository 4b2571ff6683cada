"""The list of pull requests: what it contains, its search, its pages, and whose pull requests a user sees."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.states import QueueState
from mergeyard.web.pull_request_list import ROWS_PER_PAGE, pull_requests_url
from mergeyard.web.rendering import AUTHOR_COOKIE
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_plain_queue, a_pull_request, a_submission
from tests.support.scenario import KEY, MINUTE, REPO, SECOND, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Element, Page, a_signed_in_client

SELDOM = ScenarioSetup(poll_interval_ms=24 * 60 * MINUTE)
HOSTILE = "<img src=x onerror=alert(1)>"


def rows_of(page: Page) -> list[Element]:
    return [row for table in page.all("table") for row in table.one("tbody").all("tr")]


def numbers_of(page: Page) -> list[str]:
    return [row.one("b").text for row in rows_of(page)]


async def fill(scenario: Scenario) -> None:
    """1 merged, 2 was removed, 3 is tested, 4 waits, 5 is a draft."""
    scenario.open(1, 2, 3, 4, 5)
    scenario.set_pull_request(2, author="Grace", title="Oil the switch")
    scenario.set_pull_request(4, author="grace", branch="rails/renewed")
    scenario.set_pull_request(5, draft=True)
    await scenario.submit(1)
    await scenario.advance_time(3 * MINUTE)
    await scenario.passes(1)
    await scenario.submit(2)
    await scenario.advance_time(MINUTE)
    await scenario.cancel(2)
    await scenario.submit(3, 4, 5)


@asynchronous
async def test_pull_requests_in_the_queue_come_first_then_finished_ones(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=1), SELDOM) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        await fill(scenario)
        page = await visitor.get("/pulls")
        assert numbers_of(page) == ["#3", "#4", "#5", "#2", "#1"]
        assert page.one("#found").text == "5 pull requests"
        states = [row.one(".state").text for row in rows_of(page)]
        assert states == ["Testing", "Queued", "Not ready", "Removed", "Merged"]
        testing, waiting, _, removed, merged = (row.text for row in rows_of(page))
        assert "Position 1" in testing
        assert "Position 2" in waiting
        assert not rows_of(page)[2].one(".when").all("br")
        assert "ada removed the pull request from the queue." in removed
        assert f"commit {scenario.origin.tip('main')[:8]}" in merged
        assert "3 min in the queue" in merged


@asynchronous
async def test_pull_request_whose_checks_are_late_does_not_merge_now(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SELDOM) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(10 * SECOND)
        await scenario.passes(1)
        await scenario.submit(2)
        assert "Position 1, ~10 s" in rows_of(await visitor.get("/pulls"))[0].text
        await scenario.advance_time(10 * SECOND)
        assert "Position 1, ~6 s" in rows_of(await visitor.get("/pulls"))[0].text


@asynchronous
async def test_list_fetches_itself_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        mine = (await visitor.get("/pulls?author=@me")).one("#live")
        assert (mine["hx-get"], mine["data-look-every"]) == ("/pulls?author=@me", "5")
        of_queue = (await visitor.get("/pulls?queue=git.local/acme/app:main")).one("#live")
        assert of_queue["data-live"] == "/live/git.local/acme/app:main"
        assert (await visitor.get("/pulls")).one("#live").one("tbody").one("b").text == "#1"


@asynchronous
async def test_failed_pull_requests_name_the_check_that_failed(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=2)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(2)
        await scenario.passes(1)
        assert await scenario.state(2) == "failed: test_run_failed"
        failed, merged = rows_of(await visitor.get("/pulls?state=finished"))
        assert [each.text for each in failed.all(".fact")][:1] == ["✗ unit"]
        assert "✗" not in merged.text
        finished = (await visitor.get("/queues/git.local/acme/app:main")).one("ol.ended").all("li")
        assert "✗ unit" in finished[0].text


@asynchronous
async def test_search_finds_by_number_title_author_and_branch(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=1), SELDOM) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        await fill(scenario)
        for text, found in (
            ("%233", ["#3"]),
            ("4", ["#4"]),
            ("SWITCH", ["#2"]),
            ("grace", ["#4", "#2"]),
            ("renewed", ["#4"]),
            ("nothing", []),
        ):
            assert numbers_of(await visitor.get(f"/pulls?q={text}")) == found, text
        page = await visitor.get("/pulls?q=nothing&state=merged")
        assert "No pull request matches." in page.text
        form = page.all("form.filters")[0]
        assert form.one("[name=q]")["value"] == "nothing"
        assert [option["value"] for option in form.all("option[selected]")] == ["merged", "all"]


@asynchronous
async def test_list_is_limited_to_a_state_and_an_author(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=1), SELDOM) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        await fill(scenario)
        for query, found in (
            ("state=open", ["#3", "#4", "#5"]),
            ("state=waiting", ["#4"]),
            ("state=testing", ["#3"]),
            ("state=not_ready", ["#5"]),
            ("state=finished", ["#2", "#1"]),
            ("state=merged", ["#1"]),
            ("state=no-such-state&since=no-such-period&page=-3", ["#3", "#4", "#5", "#2", "#1"]),
            ("author=Grace", ["#4", "#2"]),
            ("author=Gra", []),
        ):
            assert numbers_of(await visitor.get(f"/pulls?{query}")) == found, query


@pytest.mark.long
@asynchronous
async def test_list_is_limited_to_those_that_changed_in_a_period(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), SELDOM) as scenario:
        await fill(scenario)
        await scenario.advance_time(25 * 60 * MINUTE)
        async with a_signed_in_client(scenario) as visitor:
            assert numbers_of(await visitor.get("/pulls?since=24h&state=merged")) == []
            assert numbers_of(await visitor.get("/pulls?since=7d&state=merged")) == ["#1"]


@asynchronous
async def test_lists_of_the_queue_page_and_of_this_page_agree_while_the_queue_is_paused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        scenario.set_pull_request(2, draft=True)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(1, 2)
        waiting = await visitor.get(pull_requests_url(KEY, "waiting"))
        assert numbers_of(waiting) == ["#1"]
        assert waiting.one("tbody").one(".state").text == "Waiting"
        assert "The queue is paused." in waiting.one("tbody").text
        assert numbers_of(await visitor.get(pull_requests_url(KEY, "not_ready"))) == ["#2"]


@asynchronous
async def test_every_one_of_300_waiting_pull_requests_can_be_reached(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        crowd = a_plain_queue(*(a_submission(number) for number in range(1, 301)))
        scenario.queue_actor.queue = replace(crowd, id=scenario.queue_actor.id)
        page = await visitor.get("/pulls?state=waiting")
        reached = numbers_of(page)
        assert len(reached) == ROWS_PER_PAGE
        for _ in range(300 // ROWS_PER_PAGE - 1):
            page = await visitor.get(page.one("a[rel=next]")["href"])
            reached += numbers_of(page)
        assert reached == [f"#{number}" for number in range(1, 301)]
        assert not page.all("a[rel=next]")
        assert page.one("a[rel=prev]")["href"] == "/pulls?state=waiting&page=5"
        (found,) = rows_of(await visitor.get("/pulls?q=250"))
        assert "Position 250" in found.text
        assert "There is no such page." in (await visitor.get("/pulls?page=99")).text


@asynchronous
async def test_queue_is_named_only_where_there_are_several(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SELDOM) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert "Queue" not in [head.text for head in (await visitor.get("/pulls")).all("th")]
        scenario.origin.branch("release", base="main")
        await scenario.create_queue(key=QueueKey(REPO, "release"))
        assert "Queue" in [head.text for head in (await visitor.get("/pulls")).all("th")]
        assert numbers_of(await visitor.get("/pulls?queue=git.local/acme/app:release")) == []
        page = await visitor.get("/pulls?queue=git.local/acme/app:main")
        assert numbers_of(page) == ["#1"]
        assert "Queue" not in [head.text for head in page.all("th")]


@asynchronous
async def test_user_sees_own_pull_requests_by_the_saved_name_or_the_name_of_the_token(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, name="ADA") as visitor:
        scenario.open(1, 2)
        scenario.set_pull_request(2, author="Grace Höpper")
        await scenario.submit(1, 2)
        assert numbers_of(await visitor.get("/pulls?author=@me")) == ["#1"]
        saved = await visitor.post("/pulls", me="grace höpper", state="open")
        assert (saved.status, saved.location) == (303, "/pulls?state=open&author=@me")
        cookie = saved.headers["set-cookie"]
        assert cookie.startswith(f"{AUTHOR_COOKIE}=")
        assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
        page = await visitor.get("/pulls?author=@me")
        assert numbers_of(page) == ["#2"]
        assert page.one("#me")["value"] == "grace höpper"
        await visitor.post("/pulls", me="")
        assert numbers_of(await visitor.get("/pulls?author=@me")) == ["#1"]


@asynchronous
async def test_pull_requests_outside_the_repositories_of_the_token_are_not_found(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=elsewhere) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert numbers_of(await visitor.get("/pulls")) == []
        assert (await visitor.get("/pulls?queue=git.local/acme/app:main")).status == 404
        assert (await visitor.get("/pulls?queue=nonsense")).status == 404


@asynchronous
async def test_texts_from_outside_and_from_the_address_are_escaped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        hostile = replace(a_pull_request(1), title=HOSTILE, author=HOSTILE, head_branch=HOSTILE)
        scenario.queue_actor.queue = replace(
            a_plain_queue(a_submission(1, pull_request=hostile)), id=scenario.queue_actor.id
        )
        page = await visitor.get("/pulls?q=onerror&author=%22%3E%3Cimg+src%3Dx+onerror%3D1%3E")
        assert not page.all("[onerror]")
        page = await visitor.get("/pulls?q=onerror")
        assert not page.all("[onerror]")
        assert [bdi.text for bdi in page.one(".what").all("bdi")] == [HOSTILE] * 3
