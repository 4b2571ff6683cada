"""Who forced, hurried or unbatched a queued pull request is recorded with it, and told to those that it overtook."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.config import URGENT, Config
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import REASON_MESSAGES, Reason
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import AuditLogReader, decode_journal_entry
from mergeyard.service.submissions import SubmitOptions
from mergeyard.service.views import render_entry
from mergeyard.web.admin.audit_log import to_audit_row
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario
from tests.support.web_client import a_signed_in_client


async def submit_as(scenario: Scenario, actor: str, number: int, **options: Any) -> None:
    command = replace(scenario.build_command(number), actor=actor)
    await scenario.service.submissions.submit(command, SubmitOptions(**options, force_needs_head=False))
    await scenario.wait_until_idle()


async def timeline(scenario: Scenario, number: int) -> list[tuple[str, str, str]]:
    """Reason, actor and message of each entry, oldest first."""
    submission = await scenario.submission(number)
    entries = await scenario.service.submission_queries.read_timeline(KEY, submission.id)
    return [(entry.reason, entry.actor, render_entry(entry)) for entry in reversed(entries)]


@asynchronous
async def test_another_person_who_forces_hurries_or_unbatches_a_queued_pr_is_in_its_timeline(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=3)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await submit_as(scenario, "linus", 1, forced=True, no_batch=True)
        command = replace(scenario.build_command(1), actor="grace#4f1c")
        await scenario.service.submissions.set_priority(command, URGENT)
        await scenario.wait_until_idle()
        entries = await timeline(scenario, 1)
        assert ("forced", "linus", REASON_MESSAGES[Reason.FORCED].replace("A user", "linus")) in entries
        assert ("unbatched", "linus") in [entry[:2] for entry in entries]
        hurried = "grace changed the priority of the pull request. From medium to urgent."
        assert ("priority_changed", "grace#4f1c", hurried) in entries
        submission = await scenario.submission(1)
        assert (submission.forced_by, submission.priority_set_by) == ("linus", "grace#4f1c")


@asynchronous
async def test_the_page_names_who_submitted_forced_hurried_and_unbatched_a_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await submit_as(scenario, "linus", 1, forced=True, no_batch=True)
        await submit_as(scenario, "grace#4f1c", 1, priority=URGENT)
        page = await visitor.get("/pulls/git.local/acme/app/1")
        facts = page.one("[aria-labelledby=submission]").one("dl")
        names = [each.text for each in facts.all("dt")]
        values = dict(zip(names, [each.text for each in facts.all("dd")], strict=True))
        assert values["Priority"] == "urgent set by grace"
        assert values["Forced"] == "by linus: conflicts and rules of the Git host ignored"
        assert values["Batching"] == "off: tested alone"
        assert "by ada" in values["Submitted"]
        updates = [each.text for each in page.one("ol.timeline").all("li") if " changed " in each.text]
        assert any("grace changed the priority" in each for each in updates)


@asynchronous
async def test_the_options_of_a_first_submission_are_in_its_first_entry(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await submit_as(scenario, "grace", 1, forced=True, no_batch=True, priority=URGENT)
        reason, actor, message = (await timeline(scenario, 1))[0]
        assert (reason, actor) == ("submitted", "grace")
        assert message.endswith("Priority urgent. Forced. Tested alone.")


@asynchronous
async def test_a_change_without_effect_is_not_recorded(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1, forced=True, priority=10)
        before = await timeline(scenario, 1)
        await submit_as(scenario, "grace", 1, forced=True, priority=10)
        assert await timeline(scenario, 1) == before


@asynchronous
async def test_those_that_an_urgent_pr_overtook_see_which_it_was_and_who_hurried_it(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=3)) as scenario:
        scenario.open(1)
        scenario.open(2)
        await scenario.submit(1, 2)
        await submit_as(scenario, "grace", 2, priority=URGENT)
        (message,) = [
            message for reason, _, message in await timeline(scenario, 1) if reason == "skip_the_line_interrupted"
        ]
        expected = "#2, which grace made urgent, went ahead. This one is tested again on top of it."
        assert message == expected
        assert [reason for reason, *_ in await timeline(scenario, 2)].count("made_urgent") == 1
        page = await scenario.service.pull_request_details.read(KEY, PullRequestNumber(1))
        assert page.view.submission.reason in ("test_run_started", "skip_the_line_interrupted")


@asynchronous
async def test_the_audit_log_and_its_export_name_the_person_and_the_overtaken(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=3)) as scenario:
        scenario.open(1)
        scenario.open(2)
        await scenario.submit(1, 2)
        await submit_as(scenario, "grace", 2, priority=URGENT)
        stored = await scenario.store.audit_entries(AuditQuery(take=99))
        kinds = {type(decode_journal_entry(entry.body)).__name__ for entry in stored}
        assert "PullRequestUpdated" in kinds
        token, _ = await scenario.service.tokens.create("boss")
        audited, _ = await AuditLogReader(scenario.store).read_page(token, AuditQuery(take=99))
        rows = list(map(to_audit_row, audited))
        (update,) = [row for row in rows if row.kind == "PullRequestUpdated"]
        assert (update.actor, update.pull_request, update.reason) == ("grace", 2, "priority_changed")
        assert (update.source, update.to, update.details) == ("testing", "testing", "From medium to urgent.")
        overtaken = [row for row in rows if row.reason == "skip_the_line_interrupted"]
        assert [(row.pull_request, row.caused_by) for row in overtaken] == [(1, "2")]


@asynchronous
async def test_the_event_feed_has_the_update_with_its_actor_and_the_overtaken_with_the_cause(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=3)) as scenario:
        scenario.open(1)
        scenario.open(2)
        await scenario.submit(1, 2)
        await submit_as(scenario, "grace#4f1c", 2, priority=URGENT)
        events = [item.payload.event for item in await scenario.service.event_feed.read_after(KEY, 0, 99, 0)]
        (update,) = [event for event in events if event.type == "pull_request.updated"]
        assert (update.actor, update.pr_number, update.reason, update.state) == (
            *("grace", 2),
            *("priority_changed", "testing"),
        )
        overtaken = [event for event in events if event.reason == "skip_the_line_interrupted"]
        assert [(event.pr_number, event.caused_by, event.actor) for event in overtaken] == [(1, (2,), None)]
