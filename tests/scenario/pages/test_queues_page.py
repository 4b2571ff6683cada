"""The first page: every queue that the visitor may see."""

from pathlib import Path

from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import QueueState
from mergeyard.domain.tokens import Scope
from mergeyard.web.queues import SUMMED_UP_EVERY
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_stranger, a_visitor
from tests.support.scenario import REPO, a_scenario

ELSEWHERE = Repo("git.local", "acme", "secret")


@asynchronous
async def test_whoever_is_not_signed_in_is_led_to_the_door_and_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_stranger(scenario.service) as stranger:
        led = await stranger.get("/")
        assert (led.status, led.location) == (303, "/sign-in?next=%2F")


@asynchronous
async def test_a_queue_is_shown_with_its_train_and_what_merges_next(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        page = await visitor.get("/")
        queue = page.one("li.queue")
        assert queue.one("h2").text == "acme/app main"
        assert queue.one(".train")["aria-label"] == "The line, from its front: testing"
        assert [chip.text for chip in queue.all("a.chip")] == ["#2"]
        assert [figure.text for figure in queue.all("dd")] == ["1", "100 %", "0 s", "0 s"]


@asynchronous
async def test_a_paused_queue_says_so(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        await scenario.update(state=QueueState.PAUSED)
        page = await visitor.get("/")
        assert page.one(".state").text == "paused"
        assert "nothing under test" in page.text


@asynchronous
async def test_queues_outside_of_the_tokens_repositories_are_not_there(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, repos=(ELSEWHERE,)) as visitor:
        page = await visitor.get("/")
        assert "acme/app" not in page.html
        assert "None that your token may see" in page.text


@asynchronous
async def test_a_queue_whose_host_is_configured_no_more_leads_nowhere_and_can_be_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.host_name = "other.local"
        await scenario.starts_again()
        async with a_visitor(scenario, Scope.ADMIN) as visitor, a_visitor(scenario, name="reader") as reader:
            page = await visitor.get("/")
            assert page.one(".state").text == "host not configured"
            assert page.one("li.queue").one("h3").text == "acme/app main"
            assert not [link for link in page.links() if "git.local" in link]
            assert not (await reader.get("/")).all("details")
            assert (await reader.post("/actions/delete", queue="git.local/acme/app:main")).status == 403
            assert (await visitor.post("/actions/delete", queue="git.local/acme/app:main")).location == "/"
            assert (await visitor.get("/")).one("h2").text == "No queue yet"
            audit = await visitor.get("/administration/audit?kind=PrChanged")
            assert "cancelled" in audit.one("tbody").text


@asynchronous
async def test_a_queue_of_a_host_that_is_configured_is_deleted_only_when_it_is_empty(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert (await visitor.post("/actions/delete", queue="git.local/acme/app:main")).status == 409
        assert scenario.keeper.queue.submissions


@asynchronous
async def test_without_a_queue_an_administrator_is_led_to_making_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        await scenario.service.queues.delete(QueueKey(REPO, "main"), "ada", b"", None)
        page = await visitor.get("/")
        assert "/queues/new" in page.links()
        assert page.one("h2").text == "No queue yet"


@asynchronous
async def test_a_day_is_summed_up_now_and_then_however_often_somebody_looks(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1)
        assert (await visitor.get("/")).all("dd")[0].text == "0"
        await scenario.submit(1)
        await scenario.passes(1)
        assert (await visitor.get("/")).all("dd")[0].text == "0"
        await scenario.time_passes(SUMMED_UP_EVERY)
        assert (await visitor.get("/")).all("dd")[0].text == "1"
