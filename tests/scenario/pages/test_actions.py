"""Actions on the pages and their dialogs: submit, cancel, restart, set a priority, pause, drain, resume."""

from pathlib import Path

import pytest

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.service.submissions import SubmitOptions
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, a_scenario
from tests.support.web_client import Field, Page, a_signed_in_client

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
        assert answer.one(".said").text == "#1 added to the queue. The pull request is a draft. Mark it as ready."
        assert answer.headers["hx-retarget"] == "#said"


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


@pytest.mark.long
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
        assert (refused.status, refused.one("h1").text) == (409, "Conflict")
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
        assert (refused.status, refused.one("h1").text) == (403, "Permission denied")
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
            assert "Choose a pull request, or enter its number" in refused.text
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
        offered = [
            {link["data-action"]: link.text for link in page.one("#act").all("a[data-action]")}
            for page in (asked, again)
        ]
        assert offered == [
            {"restart": "Restart tests", "priority": "Set priority", "cancel": "Remove from queue"},
            {"submit": "Resubmit"},
        ]
        assert (await visitor.get(f"/actions/cancel?queue={QUEUE}&number=1")).status == 409


def fields_of(page: Page) -> dict[str, Field]:
    """What the form of a dialog sends, with several values of one name."""
    inputs = [each for each in page.one("#act").one("form").all("input") if each["type"] not in ("checkbox", "radio")]
    return {each["name"]: [other["value"] for other in inputs if other["name"] == each["name"]] for each in inputs}


@asynchronous
@pytest.mark.parametrize(
    ("action", "title", "button"),
    [
        ("restart", "Restart tests of #1?", "Restart tests"),
        ("cancel", "Remove #1 from queue?", "Remove from queue"),
        ("priority", "Set priority of #1", "Set priority"),
        ("submit", "Add #1 to queue", "Add to queue"),
        ("pause", "Pause queue?", "Pause"),
        ("drain", "Drain queue?", "Drain"),
        ("resume", "Resume queue?", "Resume"),
    ],
)
async def test_every_action_has_a_dialog_that_works_without_scripts(
    tmp_path: Path, action: str, title: str, button: str
):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        if action != "submit":
            await scenario.submit(1)
        before = scenario.queue_actor.queue
        dialog = await visitor.get(f"/actions/{action}?queue={QUEUE}&number=1")
        assert (dialog.one("#act-title").text, dialog.one("#act").one("button").text) == (title, button)
        assert dialog.one("#act").one("form")["action"] == f"/actions/{action}"
        assert scenario.queue_actor.queue is before
        sent = await visitor.post(f"/actions/{action}", **fields_of(dialog) | {"priority": "low"})
        assert sent.status == 303


@pytest.mark.long
@asynchronous
async def test_dialog_says_what_an_action_costs_and_the_message_what_it_did(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.advance_time(98 * MINUTE)
        removal = await visitor.get(f"/actions/cancel?queue={QUEUE}&number=1")
        assert removal.one("strong").text == "Stops 2 running test runs: 3 h 16 min of CI time is lost."
        assert "Tested again: #2" in removal.one(".price").text
        restart = await visitor.get(f"/actions/restart?queue={QUEUE}&number=2")
        assert restart.one("strong").text == "Stops 1 running test run: 1 h 38 min of CI time is lost."
        restarted = await visitor.post_htmx("/actions/restart", queue=QUEUE, number=2)
        assert restarted.one(".good").text == "Tests of #2 restarted. 1 test run was stopped."
        removed = await visitor.post_htmx("/actions/cancel", queue=QUEUE, number=1)
        assert removed.one(".good").text.startswith("#1 removed from the queue. ")


@asynchronous
async def test_urgent_priority_changes_nothing_until_its_cost_is_confirmed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1, 2, 3)
        await scenario.update(concurrency=2)
        await scenario.submit(1, 2, 3)
        asked = await visitor.post_htmx("/actions/priority", queue=QUEUE, number=3, priority="urgent")
        assert (asked.status, asked.headers["hx-retarget"]) == (409, "#sheet")
        assert asked.one("#act-title").text == "Set priority of #3 to urgent?"
        assert "Stops 2 running test runs" in asked.one(".price").text
        assert (await scenario.submission(3)).priority == 100
        done = await visitor.post_htmx("/actions/priority", **fields_of(asked))
        assert done.one(".good").text == "#3 is now urgent. 2 test runs were stopped."
        assert (await scenario.submission(3)).priority == 0


@asynchronous
async def test_urgent_submission_asks_too_and_says_when_nothing_is_stopped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        asked = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=1, priority="urgent", no_batch="on")
        assert asked.one("#act-title").text == "Add #1 to queue as urgent?"
        assert asked.one(".price").text == "No running test run is stopped."
        assert not scenario.queue_actor.queue.submissions
        await visitor.post_htmx("/actions/submit", **fields_of(asked))
        submission = await scenario.submission(1)
        assert (submission.priority, submission.no_batch) == (0, True)


@asynchronous
async def test_submitting_a_queued_pr_says_where_it_is_and_what_changed(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        again = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=2)
        assert again.one(".good").text == "#2 is already queued (position 2). Nothing changed."
        changed = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=2, priority="high")
        assert changed.one(".good").text == "#2 is already queued (position 2). Its priority is now high."
        same = await visitor.post_htmx("/actions/priority", queue=QUEUE, number=2, priority="high")
        assert same.one(".good").text == "#2 has the priority high already. Nothing changed."


@asynchronous
async def test_resubmission_of_the_same_commits_asks_first(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        assert (await scenario.state(1)).startswith("failed")
        question = "No new commits since #1 failed (unit). Resubmit anyway?"
        asked = await visitor.post_htmx("/actions/submit", queue=QUEUE, number=1)
        dialog = await visitor.get(f"/actions/submit?queue={QUEUE}&number=1")
        assert question in asked.one("#act").text
        assert question in dialog.one("#act").text
        assert dialog.one("#act").one("button").text == "Resubmit"
        assert not scenario.queue_actor.queue.submissions
        done = await visitor.post_htmx("/actions/submit", **fields_of(dialog))
        assert done.one(".good").text.startswith("#1 resubmitted. ")


@asynchronous
async def test_resubmission_of_new_commits_does_not_ask(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        assert (await scenario.state(1)).startswith("failed")
        scenario.push(1, {"fix": "1\n"})
        dialog = await visitor.get(f"/actions/submit?queue={QUEUE}&number=1")
        assert "No new commits" not in dialog.text
        assert (await visitor.post_htmx("/actions/submit", queue=QUEUE, number=1)).status == 200


@asynchronous
async def test_picker_lists_open_pull_requests_own_ones_first(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT, name="bob") as visitor:
        scenario.open(1, 2, 3)
        scenario.set_pull_request(1, author="Bob", title="Lay the rails")
        scenario.set_pull_request(2, draft=True)
        await scenario.submit(3)
        dialog = await visitor.get(f"/actions/submit?queue={QUEUE}")
        choices = [label.text for label in dialog.one(".picker").all("label")]
        assert choices == ["#1 Lay the rails Bob", "#3 Change 3 Ada in queue: testing", "#2 Change 2 Ada draft"]
        lazy = await visitor.get(f"/actions/submit?queue={QUEUE}", **{"hx-request": "true"})
        assert not lazy.all(".picker")
        fetched = await visitor.get(lazy.one("#open-pull-requests")["hx-get"])
        assert [label.text for label in fetched.one(".picker").all("label")] == choices
        chosen = await visitor.post_htmx("/actions/submit", queue=QUEUE, number="rails", picked="1")
        assert chosen.one(".good").text.startswith("#1 added to the queue.")


@asynchronous
async def test_pause_and_drain_carry_a_reason(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await visitor.post("/actions/pause", queue=QUEUE, reason="Release 2.0")
        assert scenario.queue_actor.queue.state_reason == "Release 2.0"
        refused = await visitor.post_htmx("/actions/drain", queue=QUEUE, reason="x" * 501)
        assert "at most 500 characters" in refused.text
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        done = await visitor.post_htmx("/actions/resume", queue=QUEUE)
        assert (done.one(".good").text, scenario.queue_actor.queue.state_reason) == ("Queue resumed.", "")


@asynchronous
async def test_jump_box_leads_to_the_only_pull_request_with_the_number_or_to_the_list(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.cancel(1)
        jumps = {text: (await visitor.get(f"/jump?q={text}")).location for text in ("1", "%231", "2", "a%26b", "")}
        found = "/pulls/git.local/acme/app/1?branch=main"
        assert jumps == {"1": found, "%231": found, "2": "/pulls?q=2", "a%26b": "/pulls?q=a%26b", "": "/pulls?q="}
        scenario.origin.branch("stable", base="main")
        stable = QueueKey(Repo("git.local", "acme", "app"), "stable")
        await scenario.create_queue(key=stable)
        scenario.set_pull_request(1, base="stable")
        await scenario.service.submissions.submit(scenario.build_command(1, stable), SubmitOptions())
        assert (await visitor.get("/jump?q=1")).location == "/pulls?q=1"
        async with a_signed_in_client(scenario, repos=(Repo("git.local", "acme", "other"),)) as other:
            assert (await other.get("/jump?q=1")).location == "/pulls?q=1"


@asynchronous
async def test_error_of_an_action_appears_in_its_dialog_and_others_on_the_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        shown_at = {"act-said": None, "said": "#said", "sheet": "#said"}
        for target, place in shown_at.items():
            headers = {"hx-request": "true", "hx-target": target}
            refused = await visitor.send("/actions/submit", headers, queue=QUEUE, number=404)
            assert (refused.status, refused.headers.get("hx-retarget")) == (404, place)
            assert "404" in refused.one(".said").text


@asynchronous
async def test_errors_on_pages_name_no_operation_of_the_api(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        missing = await visitor.get("/queues/git.local/acme/app:nothing")
        assert (missing.status, missing.one("h1").text) == (404, "Not found")
        assert "There is no queue for main" not in missing.text
        assert "There is no queue for nothing of git.local/acme/app: check the names, or create it." in missing.text
        assert "/sign-in?next=/queues/git.local/acme/app%3Anothing" in missing.links()
        opened = await visitor.get(f"/actions/submit?queue={QUEUE}", **{"hx-request": "true", "hx-target": "sheet"})
        assert (opened.status, opened.headers["hx-retarget"]) == (403, "#said")


def dialog_of(action: str, number: int | None = None) -> str:
    return f"/actions/{action}?queue={QUEUE}" + ("" if number is None else f"&number={number}")


@asynchronous
async def test_dialogs_say_only_what_happens_to_this_pull_request(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=1)) as scenario,
        a_signed_in_client(scenario, Scope.SUBMIT) as visitor,
    ):
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        running, waiting = [(await visitor.get(dialog_of("cancel", number))).one("#act").text for number in (1, 2)]
        assert "The tests of #1 stop" in running
        assert "The tests of" not in waiting
        assert "No running test run is stopped." in waiting
        refused = await visitor.get(dialog_of("restart", 2))
        assert refused.status == 400
        assert "#2 is not being tested, so there is nothing to restart." in refused.text
        posted = await visitor.post("/actions/restart", queue=QUEUE, number=2)
        assert posted.status == 400
        await scenario.update(state=QueueState.PAUSED)
        stopped = await visitor.post_htmx("/actions/restart", queue=QUEUE, number=1)
        assert stopped.one(".said").text.startswith("Tests of #1 stopped. They start again when the queue is running.")


@asynchronous
async def test_dialog_of_a_bisected_pull_request_says_that_the_bisection_ends(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(batch=True, batching_min_size=2)) as scenario,
        a_signed_in_client(scenario, Scope.SUBMIT) as visitor,
    ):
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        await scenario.passes()
        assert scenario.queue_actor.queue.bisections
        asked = await visitor.get(dialog_of("restart", 1))
        assert "The bisection of its batch ends" in asked.one("#act").text


@asynchronous
async def test_resuming_a_draining_queue_promises_nothing_about_failed_runs(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for state, expected in ((QueueState.PAUSED, "are repeated"), (QueueState.DRAINING, "are admitted again")):
            await scenario.update(state=state)
            assert expected in (await visitor.get(dialog_of("resume"))).one("#act").text


@asynchronous
async def test_without_an_answer_of_the_host_no_dialog_claims_that_there_are_no_new_commits(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        await scenario.passes()
        assert "No new commits since #1 failed" in (await visitor.get(dialog_of("submit", 1))).text
        away = scenario.origin.path.rename(scenario.folder / "away.git")
        offline = await visitor.get(dialog_of("submit", 1))
        away.rename(scenario.origin.path)
        assert "No new commits" not in offline.text
        assert offline.all("[name=confirmed]") == []


@asynchronous
async def test_price_of_a_new_urgent_pull_request_is_an_upper_bound_in_parallel_mode(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario,
        a_signed_in_client(scenario, Scope.SUBMIT, Scope.PRIORITY) as visitor,
    ):
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("x"))
        await scenario.submit(1)
        asked = await visitor.post("/actions/submit", queue=QUEUE, number=2, priority="urgent")
        assert "Can stop up to 1 running test run, depending on its impacted targets" in asked.one("#act").text
