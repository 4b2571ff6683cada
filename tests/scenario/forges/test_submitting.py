"""A pull request is submitted by the API, by a comment or by a label, and ends up merged for all to see."""

from mergeyard.domain.config import Config
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import LABEL, USUAL
from tests.support.meeting_places.place import FINE


@asynchronous
async def test_what_was_submitted_by_the_api_lands_as_tested_and_is_shown_as_merged(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit_by_api(1)
        assert scenario.picture == "main ← 1…"
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") == tested
        assert scenario.place.is_merged(1)
        assert scenario.test_branches() == []


@asynchronous
async def test_a_comment_submits_with_the_wishes_that_it_names(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge --priority high --no-batch")
        stay = await scenario.stay(1)
        assert (stay.priority, stay.no_batch, scenario.picture) == (10, True, "main ← 1…")
        assert scenario.signs(1) == [(FINE,)]
        await scenario.passes(1)
        assert scenario.place.is_merged(1)


@asynchronous
async def test_the_label_submits_and_is_taken_away_at_the_end(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.label(1)
        assert scenario.picture == "main ← 1…"
        assert scenario.place.labels(1) == [LABEL]
        await scenario.passes(1)
        assert scenario.place.is_merged(1)
        assert scenario.place.labels(1) == []


@asynchronous
async def test_whoever_fails_loses_the_label_and_is_submitted_again_by_putting_it_there_again(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.judges(1)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert scenario.place.labels(1) == []
        await scenario.label(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_one_that_stands_upon_another_waits_for_it(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        scenario.open(2, upon="feature1")
        scenario.place.make_draft(1)
        await scenario.submit(1, 2)
        assert await scenario.state(2) == "pending: waiting_for_prs_ahead"
        scenario.place.make_ready(1)
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1… ← 2…"


@asynchronous
async def test_taking_the_label_away_takes_the_pull_request_out(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.unlabel(1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.test_branches() == []


@asynchronous
async def test_another_label_takes_nobody_out_who_was_submitted_with_the_one_before(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.label(1)
        await scenario.update(enqueueing_label="another")
        await scenario.say(1, "Nice.")
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_taking_the_label_away_takes_nobody_out_who_was_submitted_otherwise(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit_by_api(1)
        await scenario.label(1)
        await scenario.unlabel(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_where_commands_and_labels_are_off_nobody_is_submitted_by_them(story: Stories):
    async with story(Config(commands_enabled=False, label_commands_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.label(1)
        assert scenario.picture == "main"
        assert scenario.answers(1) == []


@asynchronous
async def test_what_was_said_before_there_was_a_queue_was_not_said_to_us(github_story: Stories):
    """At a forge that goes by our clock."""
    async with github_story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        assert (await scenario.ask("deleteQueue")).status_code == 200
        await scenario.say(1, "/merge")
        await scenario.a_moment_passes()
        await scenario.create_queue()
        await scenario.a_minute_passes()
        assert scenario.picture == "main"
        await scenario.say(1, "/merge")
        assert scenario.picture == "main ← 1…"
