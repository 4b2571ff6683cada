"""The first page: every queue that the visitor can see."""

from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.states import QueueState
from mergeyard.web.queues import SUMMARY_TTL_MS
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, a_scenario
from tests.support.web_client import a_signed_in_client, an_anonymous_client

ELSEWHERE = Repo("git.local", "acme", "secret")


@asynchronous
async def test_anonymous_visitor_is_redirected_to_the_sign_in_page_and_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, an_anonymous_client(scenario.service) as stranger:
        led = await stranger.get("/")
        assert (led.status, led.location) == (303, "/sign-in?next=%2F")


@asynchronous
async def test_queue_is_shown_with_its_active_batches_and_the_next_merge(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        page = await visitor.get("/")
        queue = page.one("li.queue")
        assert queue.one("h2").text == "acme/app main"
        assert queue.one(".train")["aria-label"] == "Active batches, next to merge first: testing"
        assert [chip.text for chip in queue.all("a.chip")] == ["#2"]
        assert [figure.text for figure in queue.all("dd")] == ["1", "100 %", "0 s", "0 s"]


@asynchronous
async def test_a_paused_queue_says_so(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.update(state=QueueState.PAUSED)
        page = await visitor.get("/")
        assert page.one(".state").text == "Paused"
        assert "nothing under test" in page.text


@asynchronous
async def test_queues_outside_the_repositories_of_the_token_are_not_listed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=(ELSEWHERE,)) as visitor:
        page = await visitor.get("/")
        assert "acme/app" not in page.html
        assert "There is no queue that your token can see" in page.text


@asynchronous
async def test_queue_of_a_removed_host_has_no_link_and_can_be_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.host_name = "other.local"
        await scenario.restart()
        async with (
            a_signed_in_client(scenario, Scope.ADMIN) as visitor,
            a_signed_in_client(scenario, name="reader") as reader,
        ):
            page = await visitor.get("/")
            assert page.one(".state").text == "Git host not configured"
            assert page.one("li.queue").one("h3").text == "acme/app main"
            assert not [link for link in page.links() if "git.local" in link]
            assert not (await reader.get("/")).all("details")
            assert (await reader.post("/actions/delete", queue="git.local/acme/app:main")).status == 403
            assert (await visitor.post("/actions/delete", queue="git.local/acme/app:main")).location == "/"
            assert (await visitor.get("/")).one("h2").text == "No queue yet"
            audit = await visitor.get("/administration/audit?kind=PullRequestChanged")
            assert "Removed" in audit.one("tbody").text


@asynchronous
async def test_queue_of_a_configured_host_can_only_be_deleted_when_it_is_empty(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert (await visitor.post("/actions/delete", queue="git.local/acme/app:main")).status == 409
        assert scenario.queue_actor.queue.submissions


@asynchronous
async def test_administrator_without_queues_is_offered_to_create_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await scenario.service.queues.delete(QueueKey(REPO, "main"), "ada", b"", None)
        page = await visitor.get("/")
        assert "/queues/new" in page.links()
        assert page.one("h2").text == "No queue yet"


@asynchronous
async def test_daily_summary_is_cached(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        assert (await visitor.get("/")).all("dd")[0].text == "0"
        await scenario.submit(1)
        await scenario.passes(1)
        assert (await visitor.get("/")).all("dd")[0].text == "0"
        await scenario.advance_time(SUMMARY_TTL_MS)
        assert (await visitor.get("/")).all("dd")[0].text == "1"
