"""The page of a pull request: its state, the reason, what is missing, and its timeline."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from mergeyard.adapters.signing import SshKey
from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, MergeMethod, Mode
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import ALL_TARGETS, Status, StatusState, impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.ports.git import Identity
from mergeyard.ports.writes import AppendEntries, EntryRow
from mergeyard.service.persistence import encode
from mergeyard.service.submissions import SubmitOptions
from mergeyard.web.pull_request_page import MAX_TIMELINE_ENTRIES
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, REPO, SECOND, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client, an_anonymous_client

PULL_1 = "/pulls/git.local/acme/app/1"
STABLE = QueueKey(REPO, "stable")
RARE_POLLING = ScenarioSetup(poll_interval_ms=60 * MINUTE)
HOSTILE = "<script>alert(1)</script>\u202e<img src=x onerror=alert(2)>\"'"


def state(page: Page) -> str:
    return page.one("h2#now").text


def actions(page: Page) -> list[str]:
    return [link["data-action"] for link in page.one("#live").all("a[data-action]")]


def labels_of_runs(page: Page) -> list[str]:
    """What is at the right of each run: whether it decided, and its state."""
    return [each.one(".between").one("span.row").text for each in page.one("ol.runs").all("li.card")]


@asynchronous
async def test_page_of_a_tested_pr_shows_what_it_waits_for_and_its_timeline(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        page = await visitor.get("/pulls/git.local/acme/app/2")
        assert (page.status, page.title) == (200, "● #2 · position 2 · Change 2 · Mergeyard")
        assert state(page) == "Passed"
        assert page.one(".why").text == "The tests passed. Waiting for #1 ahead."
        assert page.one(".where").text == "Position 2 · ~6 s · 1 ahead"
        assert (await visitor.get(PULL_1)).one(".where").text == "Position 1 · ~6 s"
        assert "/pulls/git.local/acme/app/1?branch=main" in page.links()
        assert "Position 2 of 2" in page.text
        assert "by ada" in page.text
        journey = [(each.text, each["class"]) for each in page.one("ol.journey").all("li")]
        assert ("Passed", "here") in journey
        assert [each.one(".state").text for each in page.one("ol.timeline").all("li")] == [
            "Passed",
            "Testing",
            "Queued",
            "Submitted",
        ]
        (run,) = page.one("ol.runs").all("li.card")
        assert "Tests #2 on top of #1." in run.text
        assert "passed unit" in run.text
        assert page.one("#live")["hx-get"] == "/pulls/git.local/acme/app/2?branch=main"
        assert page.one("#live")["data-live"] == "/live/git.local/acme/app:main"


@asynchronous
async def test_user_named_mergeyard_is_not_shown_as_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.service.submissions.cancel(replace(scenario.build_command(1), actor="mergeyard#0123"))
        timeline = (await visitor.get(PULL_1)).one("ol.timeline").all("li")
        assert [each.all("bdi")[-1].text for each in timeline] == ["mergeyard", "the queue", "the queue", "ada"]


@asynchronous
async def test_page_of_a_failed_pr_shows_the_failed_checks_first_and_what_to_do(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        said = Status(
            context="unit",
            state=StatusState.FAILURE,
            at=scenario.clock.now(),
            url="https://ci.example/7",
            description="3 failed",
        )
        await scenario.service.statuses.report(REPO, tip, said)
        await scenario.wait_until_idle()
        await scenario.report_all_runs(1)
        page = await visitor.get(PULL_1)
        assert state(page) == "Failed"
        blame = page.one("section.blame")
        assert "failed unit" in blame.text
        assert "3 failed" in blame.text
        (link,) = [each for each in blame.all("a") if each["href"] == "https://ci.example/7"]
        assert link["rel"] == "noopener noreferrer"
        assert "Next: push a fix and resubmit." in blame.text
        assert actions(page) == ["submit"]
        assert page.title.startswith("✗ #1 · ")
        assert labels_of_runs(page) == ["Decided Failed"]


@asynchronous
async def test_failure_without_a_failed_test_names_no_check(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        scenario.origin.commit("main", {"file": "ours\n"})
        scenario.push(2, {"file": "theirs\n"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(2, forced=True)
        assert (await scenario.submission(2)).reason == "merge_conflict"
        page = await visitor.get("/pulls/git.local/acme/app/2")
        assert "conflict" in page.one(".why").text
        assert page.all("section.blame") == []


@asynchronous
async def test_page_of_a_pr_that_is_not_ready_has_a_checklist_with_advice(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        await scenario.update(state=QueueState.PAUSED)
        page = await visitor.get(PULL_1)
        marks = [(each["class"], each.text) for each in page.one("ul.checklist").all("li")]
        assert ("met", "met: Targets main") in marks
        assert ("missing", "missing: Draft Mark it as ready for review.") in marks
        assert any(text.startswith("missing: Queue is paused") for _, text in marks)
        assert page.one("p.expected").text == "No estimate: it is not queued yet"


@asynchronous
async def test_merge_estimate_is_shown_after_the_first_passed_run(tmp_path: Path):
    async with a_scenario(tmp_path, setup=RARE_POLLING) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(10 * MINUTE)
        await scenario.passes(1)
        await scenario.submit(2)
        page = await visitor.get("/pulls/git.local/acme/app/2")
        assert "Expected to merge in ~10 min (90 % likely by " in page.one("p.expected").text
        assert page.one(".where").text == "Position 1 · ~10 min"
        assert "typically 10 min" in page.text
        merged = await visitor.get(PULL_1)
        assert state(merged) == "Merged"
        assert f"Merged as {scenario.origin.tip('main')[:8]}" in merged.text
        assert merged.title.startswith("✓ #1 · Change 1")
        assert actions(merged) == []


@asynchronous
async def test_page_of_a_merged_pr_has_the_command_that_verifies_it(tmp_path: Path):
    signer = SshKey(Ed25519PrivateKey.generate())
    setup = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.org", signer))
    async with a_scenario(tmp_path, setup=setup) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert "mergeyard verify" not in (await visitor.get(PULL_1)).text
        await scenario.passes(1)
        merged = await visitor.get(PULL_1)
        command = f"mergeyard verify {scenario.origin.tip('main')} --key KEY.pub"
        assert command in [button["data-copy"] for button in merged.all("button.copy")]


@asynchronous
async def test_page_of_a_merged_pr_without_a_signing_key_names_no_provenance(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert "provenance" not in (await visitor.get(PULL_1)).text


@asynchronous
async def test_impacted_targets_are_shown_with_the_prs_that_share_them(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3, 4)
        await scenario.upload_impacted_targets(
            1, impacted_targets_from_names("app", *(f"t{number:03}" for number in range(60)))
        )
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("app"))
        await scenario.upload_impacted_targets(3, impacted_targets_from_names("docs"))
        await scenario.upload_impacted_targets(4, ALL_TARGETS)
        await scenario.submit(1, 2, 3, 4)
        page = await visitor.get(PULL_1)
        assert len(page.one("ul.targets").all("li")) == 50
        assert "and 11 more" in page.text
        assert [each.one("a").text for each in page.one("ul.neighbors").all("li")] == ["#2", "#4"]
        alone = await visitor.get("/pulls/git.local/acme/app/3")
        assert [each.one("a").text for each in alone.one("ul.neighbors").all("li")] == ["#4"]
        assert "Impacts all targets" in (await visitor.get("/pulls/git.local/acme/app/4")).text


@asynchronous
async def test_impacted_targets_are_hidden_where_they_have_no_effect(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("app"))
        await scenario.submit(1)
        assert (await visitor.get(PULL_1)).all("[aria-labelledby=targets]") == []


@asynchronous
async def test_offered_actions_depend_on_state_and_scopes(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        async with a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
            page = await visitor.get(PULL_1)
            assert actions(page) == ["restart", "priority", "cancel"]
            assert page.all("[hx-confirm]") == []
            await scenario.cancel(1)
            page = await visitor.get(PULL_1)
            assert (state(page), actions(page)) == ("Removed", ["submit"])
        async with a_signed_in_client(scenario) as onlooker:
            page = await onlooker.get(PULL_1)
            assert actions(page) == []
            assert "Read-only access" in page.text


@asynchronous
async def test_every_submission_can_be_read_and_the_latest_is_shown_first(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        await scenario.submit(1)
        page = await visitor.get(PULL_1)
        assert state(page) == "Testing"
        (latest, first) = [each["href"] for each in page.one("ol.submission-history").all("a")]
        assert latest == "/pulls/git.local/acme/app/1?branch=main"
        old = await visitor.get(first)
        assert state(old) == "Removed"
        assert "This is an earlier submission." in old.text
        assert actions(old) == []
        assert old.one("#live")["hx-get"] == first
        assert state(await visitor.get(f"{latest}&submission=999")) == "Testing"


@asynchronous
async def test_queue_is_found_without_the_branch_in_the_address(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.origin.branch("stable", base="main")
        await scenario.create_queue(key=STABLE)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        assert "acme/app main" in (await visitor.get(PULL_1)).one("nav.crumbs").text
        scenario.set_pull_request(1, base="stable")
        await scenario.advance_time(SECOND)
        await scenario.service.submissions.submit(scenario.build_command(1, STABLE), SubmitOptions())
        await scenario.wait_until_idle()
        assert "acme/app stable" in (await visitor.get(PULL_1)).one("nav.crumbs").text
        await scenario.service.submissions.cancel(scenario.build_command(1, STABLE))
        assert "acme/app stable" in (await visitor.get(PULL_1)).one("nav.crumbs").text
        assert "acme/app main" in (await visitor.get(f"{PULL_1}?branch=main")).one("nav.crumbs").text


@asynchronous
async def test_pr_that_was_never_submitted_can_be_submitted_from_its_page(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        page = await visitor.get(PULL_1)
        assert (page.status, page.one("h1").text) == (404, "#1 is not in a queue")
        (link,) = page.all("a[data-action=submit]")
        assert link.text == "Add to queue main"
        assert (await visitor.get(link["href"])).status == 200
        scenario.origin.branch("stable", base="main")
        await scenario.create_queue(key=STABLE)
        assert len((await visitor.get(PULL_1)).all("a[data-action=submit]")) == 2
        (link,) = (await visitor.get(f"{PULL_1}?branch=stable")).all("a[data-action=submit]")
        assert link.text == "Add to queue stable"


@asynchronous
async def test_check_that_did_not_report_in_time_is_not_called_failed(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(testing_timeout_minutes=1)) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(MINUTE + SECOND)
        await scenario.passes()
        page = await visitor.get(PULL_1)
        assert state(page) == "Failed"
        assert page.one("#blame").text == "Checks that did not report in time"


@asynchronous
async def test_removed_pr_is_not_promised_a_test_run(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        scenario.set_pull_request(1, draft=True)
        await scenario.submit(1)
        assert (await visitor.get(PULL_1)).one(".empty").text == "No test runs yet"
        await scenario.cancel(1)
        assert (await visitor.get(PULL_1)).one(".empty").text == "No test runs"


@asynchronous
async def test_pr_that_the_visitor_cannot_see_does_not_exist(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        async with a_signed_in_client(scenario, repos=(Repo("git.local", "acme", "other"),)) as other:
            hidden = await other.get(PULL_1)
            unknown = await other.get("/pulls/git.local/acme/nothing/1")
            assert hidden.status == unknown.status == 404
            assert "Change 1" not in hidden.html
            assert (await other.get(f"{PULL_1}?branch=main")).status == 404
        async with a_signed_in_client(scenario) as visitor:
            for odd in ("0", "-1", "1.5", "x", "9" * 5000, "2147483648", "%00", "\N{ARABIC-INDIC DIGIT ONE}"):
                assert (await visitor.get(f"/pulls/git.local/acme/app/{odd}")).status == 404
            assert (await visitor.get(f"{PULL_1}?branch=nothing")).status == 404
            partial = await visitor.get(f"{PULL_1}?branch=nothing", **{"hx-request": "true"})
            assert (partial.status, partial.headers["hx-retarget"]) == (404, "#said")
            assert (await visitor.get("/pulls/1")).status == 404
        async with an_anonymous_client(scenario.service) as stranger:
            assert (await stranger.get(PULL_1)).location == "/sign-in?next=%2Fpulls%2Fgit.local%2Facme%2Fapp%2F1"


@asynchronous
async def test_texts_from_outside_are_escaped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        scenario.set_pull_request(1, title=HOSTILE, author=HOSTILE, branch=HOSTILE)
        await scenario.submit(1)
        await _report_status(scenario, url="javascript:alert(3)", description=HOSTILE)
        page = await visitor.get(PULL_1)
        assert page.one("h1").one("bdi").text == HOSTILE
        assert not page.all("img[onerror]")
        assert all(script["src"].startswith("/static/") for script in page.all("script"))
        assert not [link for link in page.links() if link.startswith("javascript")]
        assert "style=" not in page.html


async def _report_status(scenario: Scenario, *, url: str, description: str) -> None:
    said = Status(context="unit", state=StatusState.PENDING, at=scenario.clock.now(), url=url, description=description)
    await scenario.service.statuses.report(REPO, scenario.run_of(1).tip, said)
    await scenario.wait_until_idle()


@asynchronous
async def test_long_timeline_is_paginated(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        submission_id = (await scenario.submission(1)).id
        (entry, *_) = await scenario.service.submission_queries.read_timeline(KEY, submission_id)
        again = EntryRow(
            queue=scenario.queue_actor.id,
            at=entry.at,
            kind="PullRequestChanged",
            actor="x",
            token=None,
            submission_id=submission_id,
            body=encode(entry),
        )
        await scenario.store.commit(AppendEntries((again,) * 2 * MAX_TIMELINE_ENTRIES))
        latest = await visitor.get(PULL_1)
        assert len(latest.one("ol.timeline").all("li")) == MAX_TIMELINE_ENTRIES
        (further,) = [link for link in latest.all("a") if link.text == f"{MAX_TIMELINE_ENTRIES + 3} earlier entries"]
        earlier = await visitor.get(further["href"])
        assert "Show latest" in earlier.text
        (further,) = [link for link in earlier.all("a") if link.text == "3 earlier entries"]
        first = await visitor.get(further["href"])
        assert len(first.one("ol.timeline").all("li")) == 3
        assert "earlier entries" not in first.text


@asynchronous
async def test_innocent_member_of_a_failed_batch_is_never_told_to_fix_anything(tmp_path: Path):
    config = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        page = await visitor.get(PULL_1)
        assert state(page) == "Failing, cause not confirmed"
        assert "No action is needed yet." in page.one(".why").text
        assert page.one("p.expected").text.startswith("No estimate: ")
        await scenario.passes()
        page = await visitor.get(PULL_1)
        assert (
            "Bisecting the failed batch: this pull request is a possible culprit. No action is needed yet."
            in page.one(".why").text
        )
        (bisection,) = scenario.queue_actor.queue.bisections
        assert f"/queues/git.local/acme/app:main#bisection-{bisection.id}" in page.links()
        await scenario.passes(1)
        merged = await visitor.get(PULL_1)
        assert state(merged) == "Merged"
        assert labels_of_runs(merged) == ["Decided Passed", "Failed"]
        for shown in (page, merged):
            live = shown.one("#live").text.lower()
            assert "fix them" not in live
            assert "push a fix" not in live


@asynchronous
async def test_suspect_of_a_bisection_is_told_when_it_is_tested_again(tmp_path: Path):
    config = Config(batch=True, batching_min_size=3)
    async with a_scenario(tmp_path, config) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.fails(1, 2, 3)
        await scenario.passes()
        await scenario.passes(1, 2)
        page = await visitor.get("/pulls/git.local/acme/app/3")
        why = page.one(".why").text
        assert "this pull request is the likely culprit. The queue tests it again before it decides." in why
        assert "No action is needed yet." in why
        assert page.one("p.expected").text.startswith("No estimate: ")


@asynchronous
async def test_pr_merged_by_a_later_run_names_the_run_that_decided(tmp_path: Path):
    config = Config(can_optimistically_merge=True, pending_failure_depth=1)
    async with a_scenario(tmp_path, config) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        later = scenario.run_of(2)
        await scenario.fails(1)
        await scenario.passes(2)
        page = await visitor.get(PULL_1)
        assert state(page) == "Merged"
        assert f"(tested in run {later.id[:8]})" in page.text
        assert sorted(labels_of_runs(page)) == ["Decided Passed", "Failed"]
        assert "Tests #2 on top of #1." in page.one("ol.runs").text
        assert "not reported" not in page.text


@asynchronous
async def test_pr_of_a_queue_without_required_checks_waits_and_says_what_an_administrator_has_to_do(tmp_path: Path):
    stage = ScenarioSetup(repository_config="version = 1\n")
    async with a_scenario(tmp_path, setup=stage) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        page = await visitor.get(PULL_1)
        assert state(page) == "Not ready"
        assert "The queue has no required checks" in page.one(".why").text
        assert "An administrator has to configure at least one" in page.one("ul.checklist").text
        assert "/settings/git.local/acme/app:main" in [each["href"] for each in page.one("section.now").all("a")]
        assert "fix" not in page.one(".why").text


@asynchronous
async def test_reason_of_a_pause_is_shown_to_every_author(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.service.queues.update(
            KEY, {}, QueueState.PAUSED, "ada", lambda _: b"", None, state_reason="<i>release</i> day"
        )
        await scenario.submit(1)
        page = await visitor.get(PULL_1)
        assert page.one(".why").text == (
            "The pull request is ready, and is queued when the queue runs again. "
            "The queue is paused. Nothing starts or merges until an administrator resumes it. "
            "Reason: <i>release</i> day"
        )
        assert "Reason: <i>release</i> day" in page.one("ul.checklist").text


@asynchronous
async def test_resubmitted_pr_names_the_failure_before(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        await scenario.passes()
        first = await scenario.submission(1)
        assert first.state == "failed"
        await scenario.submit(1)
        page = await visitor.get(PULL_1)
        assert "Resubmitted: the previous submission failed" in page.text
        assert "(required check failed), with the same commit" in page.text
        (link,) = [each["href"] for each in page.all("a") if each.text == "previous submission failed"]
        before = await visitor.get(link)
        assert state(before) == "Failed"
        assert "push a fix" not in before.one("#live").text
        await scenario.fails(1)
        scenario.push(1, {"fix": "1"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        repaired = await visitor.get(PULL_1)
        assert "Resubmitted: the previous submission failed" in repaired.text
        assert "with the same commit" not in repaired.text


@asynchronous
async def test_ready_pull_request_of_a_paused_queue_is_headed_as_waiting(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(1)
        assert state(await visitor.get(PULL_1)) == "Waiting"
        menu = await visitor.get("/actions?queue=git.local/acme/app:main&number=1")
        assert menu.one("#act").one(".state").text == "Waiting"


@asynchronous
async def test_page_in_the_wrong_queue_names_the_right_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.origin.branch("release", base="main", files={})
        await scenario.create_queue(Config(required_statuses=("unit",)), QueueKey(KEY.repo, "release"))
        scenario.open(1)
        await scenario.submit(1)
        page = await visitor.get("/pulls/git.local/acme/app/1?branch=release")
        assert (page.status, page.one("h1").text) == (404, "#1 was not submitted to this queue")
        assert "/pulls/git.local/acme/app/1?branch=main" in page.links()


@asynchronous
async def test_missing_target_branch_is_not_called_a_missing_check(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        scenario.origin.delete_ref("main")
        await scenario.advance_time(2 * SECOND)
        text = (await visitor.get(PULL_1)).text
        assert "Target branch does not exist" in text
        assert "no required checks" not in text


@asynchronous
async def test_a_waiting_pr_says_how_it_merges_and_leads_to_its_commit_message(tmp_path: Path):
    config = Config(merge_method=MergeMethod.SQUASH, squash_template="{title}\n\n{commits}")
    async with a_scenario(tmp_path, config) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        scenario.set_pull_request(1, title=HOSTILE)
        before = await visitor.get(PULL_1)
        (link,) = [each for each in before.links() if each.startswith("/actions/message")]
        assert link in (await visitor.get("/actions/submit?queue=git.local/acme/app:main&number=1")).links()
        shown = await visitor.get(link)
        assert (shown.status, shown.title) == (200, "Commit message of #1 · Mergeyard")
        message = "<script>alert(1)</script> <img src=x onerror=alert(2)>\"' - A change Mergeyard-Pull-Request: 1"
        assert shown.one("pre").text.startswith(message)
        await scenario.submit(1)
        page = await visitor.get(PULL_1)
        how = "The queue pushes the tested commit and moves the head branch feature1 to it."
        assert f"Merge {how} Show the commit message" in page.one("#live").text
        shown = await visitor.get(next(each for each in page.links() if each.startswith("/actions/message")))
        assert how in shown.one("#act").text
        assert f"Mergeyard-Run: {scenario.run_of(1).id}" in shown.one("pre").text
        await scenario.passes(1)
        assert "Show the commit message" not in (await visitor.get(PULL_1)).text
