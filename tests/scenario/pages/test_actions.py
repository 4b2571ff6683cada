"""Actions on the pages: submit, cancel, restart, change a priority, pause, drain, resume."""

from pathlib import Path

import pytest

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.states import QueueState
from tests.support.asynchronous import asynchronous
from tests.support.scenario import a_scenario
from tests.support.web_client import a_signed_in_client

QUEUE = "git.local/acme/app:main"
HERE = f"/queues/{QUEUE}"


@asynchronous
async def test_pr_is_submitted_and_the_visitor_is_redirected_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        answer = await visitor.post("/actions/submit", queue=QUEUE, number="#1", no_batch="on")
        await scenario.wait_until_idle()
        assert (answer.status, answer.location) == (303, HERE)
        assert scenario.queue_text == "main ← 1…"
        assert (await scenario.submission(1)).no_batch


@asynchronous
async def test_response_in_place_says_what_was_done_and_what_the_pr_waits_for(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        answer = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=1)
        assert (
            answer.one(".said").text == "Pull request #1 was submitted. The pull request is a draft: mark it as ready."
        )


@asynchronous
async def test_action_redirects_back_to_its_page_but_never_to_another_site(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        inside = await visitor.post("/actions/drain", queue=QUEUE, there="/pulls/git.local/acme/app/1")
        outside = await visitor.post("/actions/drain", queue=QUEUE, there="https://evil.example/")
        assert (inside.location, outside.location) == ("/pulls/git.local/acme/app/1", "/")


@asynchronous
async def test_pr_is_removed_from_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await visitor.post("/actions/cancel", queue=QUEUE, number=1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_tests_are_restarted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        before = scenario.run_of(1).id
        await visitor.post("/actions/restart", queue=QUEUE, number=1)
        await scenario.wait_until_idle()
        assert scenario.run_of(1).id != before


@asynchronous
async def test_changing_a_priority_does_not_submit_a_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await visitor.post("/actions/priority", queue=QUEUE, number=1, priority="low")
        assert (await scenario.submission(1)).priority == 200
        refused = await visitor.post("/actions/priority", queue=QUEUE, number=2, priority="low")
        assert (refused.status, refused.one("h1").text) == (409, "Pull request is not in the queue")
        nothing = await visitor.post_htmx("/actions/priority", queue=QUEUE, number=1, priority="")
        assert "A priority is one of" in nothing.text


@asynchronous
async def test_priority_is_changed_in_one_decision(tmp_path: Path):
    """It does not read the pull request from the host first: its metadata is missing there."""
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.run("update-ref", "-d", "refs/pull/1/meta")
        changed = await visitor.post("/actions/priority", queue=QUEUE, number=1, priority="low")
        assert (changed.status, (await scenario.submission(1)).priority) == (303, 200)


@asynchronous
@pytest.mark.parametrize("options", [{"priority": "urgent"}, {"priority": "0"}, {"force": "on"}], ids=str)
async def test_urgent_and_forced_submissions_need_their_own_scope(tmp_path: Path, options: dict[str, str]):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        refused = await visitor.post("/actions/submit", queue=QUEUE, number=1, **options)
        assert (refused.status, refused.one("h1").text) == (403, "Token lacks the scope")
        assert "“priority”" in refused.text
        assert not scenario.queue_actor.queue.submissions


@asynchronous
async def test_a_queue_is_paused_drained_and_resumed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        seen = list[QueueState]()
        for action in ("pause", "drain", "resume"):
            await visitor.post(f"/actions/{action}", queue=QUEUE)
            seen.append(scenario.queue_actor.queue.state)
        assert seen == [QueueState.PAUSED, QueueState.DRAINING, QueueState.RUNNING]


@asynchronous
async def test_action_without_the_scope_is_refused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as submitter:
        scenario.open(1)
        async with a_signed_in_client(scenario) as reader:
            assert (await reader.post("/actions/submit", queue=QUEUE, number=1)).status == 403
            assert (await reader.get(f"/actions?queue={QUEUE}&number=1")).status == 403
        assert (await submitter.post("/actions/pause", queue=QUEUE)).status == 403
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        assert not scenario.queue_actor.queue.submissions


@asynchronous
async def test_form_of_another_site_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        refused = await visitor.post("/actions/pause", queue=QUEUE, csrf="guessed")
        assert refused.status == 400
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_action_on_a_queue_that_the_visitor_cannot_see_is_refused(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN, repos=elsewhere) as visitor:
        assert (await visitor.post("/actions/pause", queue=QUEUE)).status == 404
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_unknown_action_or_invalid_number_is_refused_with_an_explanation(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        assert (await visitor.post("/actions/explode", queue=QUEUE)).status == 404
        for number in ("", "zero", "0", "٣", "99999999999"):
            refused = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=number)
            assert "Give the number of a pull request" in refused.text
        refused = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=1, priority="256")
        assert "A priority is one of" in refused.text


@asynchronous
async def test_what_can_be_done_with_a_pull_request_depends_on_its_state(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        asked = await visitor.get(f"/actions?queue={QUEUE}&number=1")
        await scenario.cancel(1)
        again = await visitor.get(f"/actions?queue={QUEUE}&number=1")
        offered = [{form["action"] for form in page.one("#act").all("form")} for page in (asked, again)]
        assert offered == [{"/actions/restart", "/actions/priority", "/actions/cancel"}, {"/actions/submit"}]
        assert "urgent" not in asked.one("#act").text
