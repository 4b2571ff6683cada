"""The first page: every queue that the visitor can see."""

from pathlib import Path

import pytest

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.states import QueueState
from mergeyard.web.queues import SUMMARY_TTL_MS
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, REPO, SECOND, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client, an_anonymous_client

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
        assert page.one(".problem").text == "Paused"
        assert "Nothing is being tested" in page.text


@asynchronous
async def test_draining_queue_has_the_color_of_its_state_unless_it_has_another_problem(tmp_path: Path):
    async with a_scenario(tmp_path / "1") as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.update(state=QueueState.DRAINING)
        page = await visitor.get("/")
        assert {"only-state", "DRAINING"} <= set(page.one("li.queue")["class"].split())
        assert page.one(".problem")["class"] == "problem DRAINING"
    unconfigured = ScenarioSetup(repository_config="version = 1\n")
    async with a_scenario(tmp_path / "2", setup=unconfigured) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.update(state=QueueState.DRAINING)
        page = await visitor.get("/")
        assert "only-state" not in page.one("li.queue")["class"]
        assert [each["class"] for each in page.all(".problem")] == ["problem DRAINING", "problem"]


BRANCHES = ("alpha", "beta", "gamma")


async def create_queues(scenario: Scenario, *branches: str) -> None:
    for branch in branches:
        scenario.origin.branch(branch, base="main")
        await scenario.create_queue(key=QueueKey(REPO, branch))
    await scenario.wait_until_idle()


def names_of(page: Page) -> list[str]:
    return [
        name.text.removeprefix("acme/app ")
        for name in page.one("#live").descendants()
        if name.tag == "h2" or name["scope"] == "row"
    ]


@asynchronous
async def test_queues_with_a_problem_come_first_with_the_cause(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await create_queues(scenario, *BRANCHES)
        assert names_of(await visitor.get("/")) == ["alpha", "beta", "gamma", "main"]
        gamma = QueueKey(REPO, "gamma")
        await scenario.service.queues.update(gamma, {"required_statuses": ()}, None, "ada", lambda _: b"", None)
        await scenario.update(state=QueueState.DRAINING)
        page = await visitor.get("/")
        assert names_of(page) == ["gamma", "main", "alpha", "beta"]
        assert [problem.text for problem in page.all(".problem")] == ["No required checks", "Draining"]


@pytest.mark.long
@asynchronous
async def test_queue_in_which_nothing_merged_for_an_hour_has_a_problem(tmp_path: Path):
    seldom = ScenarioSetup(poll_interval_ms=24 * 60 * MINUTE)
    async with a_scenario(tmp_path, setup=seldom) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        await scenario.submit(2)
        await scenario.advance_time(59 * MINUTE)
        assert not (await visitor.get("/")).all(".problem")
        await scenario.advance_time(2 * MINUTE)
        assert (await visitor.get("/")).one(".problem").text == "Nothing merged for 1 h 1 min"
        await scenario.cancel(2)
        assert not (await visitor.get("/")).all(".problem")


@asynchronous
async def test_failing_and_missing_target_branches_are_problems(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        await scenario.fails()
        assert (await visitor.get("/")).one(".problem").text == "main fails its required checks"
        scenario.origin.delete_ref("refs/heads/main")
        await scenario.advance_time(2 * SECOND)
        assert (await visitor.get("/")).one(".problem").text == "Branch main not found"


@asynchronous
async def test_queues_are_filtered_by_name(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await create_queues(scenario, *BRANCHES)
        page = await visitor.get("/?q=AMM")
        assert names_of(page) == ["gamma"]
        assert page.one("#live")["hx-get"] == "/?q=AMM"
        assert "No queue matches. Show all 4 queues" in (await visitor.get("/?q=delta")).text


@asynchronous
async def test_ten_queues_are_a_table(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await create_queues(scenario, *(f"release-{number}" for number in range(8)))
        assert not (await visitor.get("/")).all("table")
        await create_queues(scenario, "release-8")
        page = await visitor.get("/")
        assert len(page.one("table").all("[scope=row]")) == 10
        assert not page.all("li.queue")


@asynchronous
async def test_queues_outside_the_repositories_of_the_token_are_not_listed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=(ELSEWHERE,)) as visitor:
        page = await visitor.get("/")
        assert "acme/app" not in page.html
        assert page.one("#live").one("h2").text == "No queues that you can access"
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
            (delete,) = [link for link in page.links() if "git.local" in link]
            assert "The queue is removed with its 1 pull request." in (await visitor.get(delete)).one("#act").text
            assert (await reader.get(delete)).status == 403
            assert not [link for link in (await reader.get("/")).links() if "git.local" in link]
            assert (await reader.post("/actions/delete", queue="git.local/acme/app:main")).status == 403
            assert (await visitor.post("/actions/delete", queue="git.local/acme/app:main")).location == "/"
            assert (await visitor.get("/")).one("#live").one("h2").text == "No queues yet"
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
        assert page.one("#live").one("h2").text == "No queues yet"


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
