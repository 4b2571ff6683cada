"""Submission by API, comment or label, up to the merge."""

import pytest

from mergeyard.domain.config import Config
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import POSITIVE
from tests.support.forge_scenario import LABEL, USUAL_POLL_INTERVAL_S


@asynchronous
async def test_pr_submitted_by_the_api_lands_as_tested_and_is_shown_as_merged(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit_by_api(1)
        assert scenario.queue_text == "main ← 1…"
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert scenario.forge.is_merged(1)
        assert scenario.test_branches() == []


@asynchronous
async def test_comment_submits_with_the_options_it_names(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge --priority high --no-batch")
        submission = await scenario.submission(1)
        assert (submission.priority, submission.no_batch, scenario.queue_text) == (10, True, "main ← 1…")
        assert scenario.reactions(1) == [(POSITIVE,)]
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_label_submits_and_is_removed_at_the_end(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.label(1)
        assert scenario.queue_text == "main ← 1…"
        assert scenario.forge.labels(1) == [LABEL]
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)
        assert scenario.forge.labels(1) == []


@pytest.mark.long
@asynchronous
async def test_failed_pr_loses_the_label_and_is_submitted_again_by_adding_it(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.report_all_runs(1)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert scenario.forge.labels(1) == []
        await scenario.label(1)
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_pr_based_on_another_pr_waits_for_it(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        scenario.forge.make_draft(1)
        await scenario.submit(1, 2)
        assert await scenario.state(2) == "pending: waiting_for_prs_ahead"
        scenario.forge.make_ready(1)
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1… ← 2…"


@asynchronous
async def test_removing_the_label_removes_the_pr(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.unlabel(1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.test_branches() == []


@pytest.mark.long
@asynchronous
async def test_changing_the_configured_label_removes_no_pr(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.update(enqueueing_label="another")
        await scenario.comment(1, "Nice.")
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_removing_the_label_does_not_remove_a_pr_submitted_by_other_means(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit_by_api(1)
        await scenario.label(1)
        await scenario.unlabel(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_disabled_commands_and_labels_do_not_submit(forge_scenario: StartScenario):
    async with forge_scenario(Config(commands_enabled=False, label_commands_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        await scenario.label(1)
        assert scenario.queue_text == "main"
        assert scenario.replies(1) == []


@asynchronous
async def test_commands_from_before_the_queue_was_created_are_ignored(github_scenario: StartScenario):
    """At a forge that uses the test's clock."""
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        assert (await scenario.post("deleteQueue")).status_code == 200
        await scenario.comment(1, "/merge")
        await scenario.advance_one_second()
        await scenario.create_queue()
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main"
        await scenario.comment(1, "/merge")
        assert scenario.queue_text == "main ← 1…"
