"""What people do from the pages: submit, cancel, restart, change a priority, pause, drain, resume."""

from pathlib import Path

import pytest

from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import QueueState
from mergeyard.domain.tokens import Scope
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_visitor
from tests.support.scenario import a_scenario

QUEUE = "git.local/acme/app:main"
HERE = f"/queues/{QUEUE}"


@asynchronous
async def test_a_pull_request_is_submitted_and_the_visitor_is_led_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        answer = await visitor.post("/actions/submit", queue=QUEUE, number="#1", no_batch="on")
        await scenario.rest()
        assert (answer.status, answer.location) == (303, HERE)
        assert scenario.picture == "main ← 1…"
        assert (await scenario.stay(1)).no_batch


@asynchronous
async def test_on_the_page_itself_it_is_said_what_was_done_and_what_it_waits_for(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        scenario.set_pull(1, draft=True)
        answer = await visitor.post_in_place("/actions/submit", queue=QUEUE, number=1)
        assert answer.one(".said").text == "Pull request #1 was submitted. It is a draft: mark it as ready."


@asynchronous
async def test_an_action_leads_to_where_it_was_asked_from_but_never_elsewhere(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        inside = await visitor.post("/actions/drain", queue=QUEUE, there="/pulls/git.local/acme/app/1")
        outside = await visitor.post("/actions/drain", queue=QUEUE, there="https://evil.example/")
        assert (inside.location, outside.location) == ("/pulls/git.local/acme/app/1", "/")


@asynchronous
async def test_a_pull_request_is_taken_out(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await visitor.post("/actions/cancel", queue=QUEUE, number=1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_tests_are_restarted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1).id
        await visitor.post("/actions/restart", queue=QUEUE, number=1)
        await scenario.rest()
        assert scenario.run_of(1).id != before


@asynchronous
async def test_a_priority_is_changed_but_nobody_is_submitted_by_that(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await visitor.post("/actions/priority", queue=QUEUE, number=1, priority="low")
        assert (await scenario.stay(1)).priority == 200
        refused = await visitor.post("/actions/priority", queue=QUEUE, number=2, priority="low")
        assert (refused.status, refused.one("h1").text) == (409, "Not now")
        nothing = await visitor.post_in_place("/actions/priority", queue=QUEUE, number=1, priority="")
        assert "A priority is one of" in nothing.text


@asynchronous
async def test_a_priority_is_changed_in_one_turn_so_that_nobody_leaves_in_between(tmp_path: Path):
    """Asking the host first would take a while, and it cannot be asked here."""
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.run("update-ref", "-d", "refs/pull/1/meta")
        changed = await visitor.post("/actions/priority", queue=QUEUE, number=1, priority="low")
        assert (changed.status, (await scenario.stay(1)).priority) == (303, 200)


@asynchronous
@pytest.mark.parametrize("wish", [{"priority": "urgent"}, {"priority": "0"}, {"force": "on"}], ids=str)
async def test_the_urgent_and_the_forced_need_a_scope_of_their_own(tmp_path: Path, wish: dict[str, str]):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        refused = await visitor.post("/actions/submit", queue=QUEUE, number=1, **wish)
        assert (refused.status, refused.one("h1").text) == (403, "You may not do this")
        assert "“priority”" in refused.text
        assert not scenario.keeper.queue.submissions


@asynchronous
async def test_a_queue_is_paused_drained_and_resumed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        seen = list[QueueState]()
        for action in ("pause", "drain", "resume"):
            await visitor.post(f"/actions/{action}", queue=QUEUE)
            seen.append(scenario.keeper.queue.state)
        assert seen == [QueueState.PAUSED, QueueState.DRAINING, QueueState.RUNNING]


@asynchronous
async def test_whoever_lacks_the_scope_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as submitter:
        scenario.open(1)
        async with a_visitor(scenario) as reader:
            assert (await reader.post("/actions/submit", queue=QUEUE, number=1)).status == 403
            assert (await reader.get(f"/actions?queue={QUEUE}&number=1")).status == 403
        assert (await submitter.post("/actions/pause", queue=QUEUE)).status == 403
        assert scenario.keeper.queue.state is QueueState.RUNNING
        assert not scenario.keeper.queue.submissions


@asynchronous
async def test_a_form_from_elsewhere_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        refused = await visitor.post("/actions/pause", queue=QUEUE, csrf="guessed")
        assert refused.status == 400
        assert scenario.keeper.queue.state is QueueState.RUNNING


@asynchronous
async def test_a_queue_that_the_visitor_may_not_see_cannot_be_acted_upon(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN, repos=elsewhere) as visitor:
        assert (await visitor.post("/actions/pause", queue=QUEUE)).status == 404
        assert scenario.keeper.queue.state is QueueState.RUNNING


@asynchronous
async def test_an_action_or_a_number_that_makes_no_sense_is_refused_in_words(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        assert (await visitor.post("/actions/explode", queue=QUEUE)).status == 404
        for number in ("", "zero", "0", "٣", "99999999999"):
            refused = await visitor.post_in_place("/actions/submit", queue=QUEUE, number=number)
            assert "Give the number of a pull request" in refused.text
        refused = await visitor.post_in_place("/actions/submit", queue=QUEUE, number=1, priority="256")
        assert "A priority is one of" in refused.text


@asynchronous
async def test_what_can_be_done_with_a_pull_request_depends_on_its_state(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        asked = await visitor.get(f"/actions?queue={QUEUE}&number=1")
        await scenario.cancel(1)
        again = await visitor.get(f"/actions?queue={QUEUE}&number=1")
        offered = [{form["action"] for form in page.one("#act").all("form")} for page in (asked, again)]
        assert offered == [{"/actions/restart", "/actions/priority", "/actions/cancel"}, {"/actions/submit"}]
        assert "urgent" not in asked.one("#act").text
