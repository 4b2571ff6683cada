"""What people say to the queue in comments, and what it answers."""

from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.meeting_places.place import FINE, NOT_FINE, STRANGER


@asynchronous
async def test_cancel_takes_the_pull_request_out(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.say(1, "/merge cancel")
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.signs(1) == [(FINE,)] * 2
        assert "Taken out of the queue" in scenario.comment(1)


@asynchronous
async def test_restart_tests_it_anew_in_the_same_place(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.say(1, "/merge")
        await scenario.say(2, "/merge")
        before = scenario.run_of(1).id
        await scenario.say(1, "/merge restart")
        assert scenario.run_of(1).id != before
        assert scenario.picture == "main ← 1… ← 2…"
        assert scenario.signs(1) == [(FINE,)] * 2


@asynchronous
async def test_status_is_answered_in_words_to_the_one_who_asked(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.say(1, "/merge status")
        (answer,) = scenario.answers(1)
        assert "@ada 🧪 Being tested." in answer


@asynchronous
async def test_a_command_that_cannot_be_carried_out_is_answered_with_the_reason(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge restart")
        (answer,) = scenario.answers(1)
        assert "was never submitted" in answer
        assert scenario.signs(1) == [(NOT_FINE,)]


@asynchronous
async def test_a_command_that_nobody_knows_is_answered_with_those_that_there_are(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge tomorrow")
        (answer,) = scenario.answers(1)
        assert "`tomorrow`" in answer
        assert "`!merge cancel`" in answer
        assert scenario.picture == "main"


@asynchronous
async def test_a_stranger_is_refused_and_nothing_is_done(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(2)
        run = scenario.run_of(2).id
        await scenario.say(1, "/merge", person=STRANGER)
        await scenario.say(2, "/merge cancel", "/merge restart", "/merge status", person=STRANGER)
        assert scenario.signs(1) == [(NOT_FINE,)]
        assert scenario.signs(2) == [(NOT_FINE,)] * 3
        assert len(scenario.answers(2)) == 3
        assert all(f"@{STRANGER} Only people who may write" in answer for answer in scenario.answers(2))
        assert scenario.picture == "main ← 2…"
        assert scenario.run_of(2).id == run


@asynchronous
async def test_talk_that_asks_us_for_nothing_is_not_answered(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "Shall we /merge this?", "> /merge", "LGTM\n/merge", "/merged already", person=STRANGER)
        assert scenario.picture == "main"
        assert scenario.answers(1) == []


@asynchronous
async def test_commands_are_obeyed_in_the_order_in_which_they_were_said(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge --priority low", "/merge cancel", "/merge --priority urgent")
        assert (await scenario.stay(1)).priority == 0
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"
        assert scenario.signs(1) == [(FINE,)] * 3


@asynchronous
async def test_our_own_words_are_no_commands(story: Stories):
    """A check may be called whatever somebody likes, and stands in our comment."""
    async with story() as scenario:
        await scenario.update(required_statuses=("/merge cancel",))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1, check="/merge cancel")
        await scenario.passes(check="/merge cancel")
        assert "/merge cancel" in scenario.comment(1)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


# Forks.


@asynchronous
async def test_of_a_fork_only_the_head_is_tested_that_a_writer_submitted(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, "/merge")
        assert scenario.picture == "main ← 1…"
        scenario.push(1, {"evil": "yes"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.picture == "main"


@asynchronous
async def test_a_push_to_a_fork_takes_it_out_even_before_it_is_ready(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        scenario.place.make_draft(1)
        await scenario.say(1, "/merge")
        assert await scenario.state(1) == "not_ready: draft"
        scenario.push(1, {"evil": "yes"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_a_fork_is_merged_and_shown_so(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, "/merge")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.place.is_merged(1)
        assert "Merged" in scenario.comment(1)


@asynchronous
async def test_a_fork_is_not_submitted_by_a_label_because_nobody_knows_which_head_was_meant(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.label(1)
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert f"!merge {scenario.place.head(1)}" in answer
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_fork_that_was_pushed_to_while_a_writer_spoke_is_not_tested(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.say(1, "/merge")
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert f"!merge {scenario.place.head(1)}" in answer
        assert scenario.signs(1) == [(NOT_FINE,)]
