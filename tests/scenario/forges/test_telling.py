"""What is told of a pull request at the forge: in one comment, edited in place, and as a status on its head."""

from mergeyard.domain.config import Config
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers, LosesReply
from tests.support.meeting_places.place import FINE

OUR_PAGE = "http://yard.example/pulls/git.local/acme/app/1"


@asynchronous
async def test_one_comment_follows_the_pull_request_through_the_queue(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        scenario.place.make_draft(1)
        await scenario.submit(1)
        assert "⏳ Not ready yet" in scenario.comment(1)
        scenario.place.make_ready(1)
        await scenario.a_moment_passes()
        assert "🧪 Being tested · place 1 in the queue for main" in scenario.comment(1)
        await scenario.passes(1)
        assert "🎉 Merged" in scenario.comment(1)
        assert "`merged_by_queue`" in scenario.comment(1)


@asynchronous
async def test_the_failed_check_is_named_with_its_link(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.judges(1)
        assert "❌ Failed" in scenario.comment(1)
        assert "- Failed: [unit](https://ci.example/unit)" in scenario.comment(1)


@asynchronous
async def test_a_second_stay_is_told_of_in_the_same_comment(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.judges(1)
        await scenario.submit(1)
        assert "🧪 Being tested" in scenario.comment(1)
        assert "https://ci.example/unit" not in scenario.comment(1)


@asynchronous
async def test_those_that_are_tested_together_are_named(story: Stories):
    async with story(Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert "- Tested together with #2" in scenario.comment(1)
        assert "- Tested together with #1" in scenario.comment(2)


@asynchronous
async def test_our_status_on_the_head_says_the_same_in_short(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert scenario.shown(1).state == "pending"
        assert scenario.shown(1).url == OUR_PAGE
        assert f"[details]({OUR_PAGE})" in scenario.comment(1)
        await scenario.passes(1)
        assert scenario.shown(1).state == "success"
        assert scenario.shown(1).description.startswith("Merged. ")
        await scenario.fails(2)
        assert scenario.shown(2).state in ("failure", "failed")
        assert scenario.shown(2).description.startswith("Failed. ")


@asynchronous
async def test_a_comment_that_somebody_deleted_is_written_again(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.delete_our_comments(1)
        await scenario.passes(1)
        assert "🎉 Merged" in scenario.comment(1)


@asynchronous
async def test_where_comments_and_status_are_off_nothing_is_told(story: Stories):
    async with story(Config(comments_enabled=False, status_check_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.place.said(1) == []
        assert scenario.place.shown(scenario.place.head(1)) is None
        assert scenario.place.is_merged(1)


@asynchronous
async def test_a_command_is_answered_in_words_where_no_comment_tells_the_state(story: Stories):
    async with story(Config(comments_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        assert len(scenario.answers(1)) == 1


@asynchronous
async def test_a_comment_whose_reply_was_lost_is_not_written_twice(story: Stories):
    async with story() as scenario:
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.comments, method="POST")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.a_minute_passes()
        assert "Being tested" in scenario.comment(1)


@asynchronous
async def test_an_answer_whose_reply_was_lost_is_not_given_twice(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.comments, method="POST")
        await scenario.say(1, "/merge status")
        await scenario.a_minute_passes()
        assert len(scenario.answers(1)) == 1
        assert scenario.signs(1) == [(FINE,)]


@asynchronous
async def test_who_cannot_be_told_of_now_is_told_of_later_and_is_tested_meanwhile(story: Stories):
    async with story() as scenario:
        scenario.place.faults.plan(Answers(503), scenario.place.paths.comments, times=3)
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"
        await scenario.a_minute_passes()
        assert "Being tested" in scenario.comment(1)
