"""The service is started again in the middle of a conversation, and obeys each command once."""

from mergeyard.domain.repositories import QueueKey
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL
from tests.support.forges.faults import Answers, LosesReply
from tests.support.meeting_places.place import FINE


@asynchronous
async def test_what_was_obeyed_before_is_not_obeyed_again(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.say(1, "/merge status")
        run = scenario.run_of(1).id
        await scenario.starts_again()
        await scenario.a_minute_passes()
        assert scenario.run_of(1).id == run
        assert len(scenario.answers(1)) == 1
        assert scenario.signs(1) == [(FINE,), (FINE,)]


@asynchronous
async def test_a_command_given_while_nobody_was_there_is_obeyed(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1, 2)
        await scenario.say(1, "/merge")
        await scenario.rest()
        await scenario.service.stop()
        scenario.place.say(1, "ada", f"{scenario.place.word} cancel")
        scenario.place.label(2, "merge-queue")
        await scenario.starts()
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.picture == "main ← 2…"


@asynchronous
async def test_a_command_whose_answer_could_not_be_given_is_not_obeyed_again(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        first = scenario.run_of(1).id
        scenario.place.faults.plan(Answers(503), scenario.place.paths.reactions)
        await scenario.say(1, "/merge restart")
        second = scenario.run_of(1).id
        await scenario.starts_again()
        await scenario.a_minute_passes()
        assert scenario.run_of(1).id == second
        assert second != first


@asynchronous
async def test_who_was_cancelled_after_an_answer_was_lost_does_not_come_back(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.rest()
        scenario.place.faults.plan(LosesReply(), scenario.place.paths.reactions)
        await scenario.say(1, "/merge")
        await scenario.cancel(1)
        await scenario.starts_again()
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_a_run_whose_checks_ended_while_nobody_was_there_lands(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tested = scenario.run_of(1).tip
        await scenario.service.stop()
        await scenario.hear(tested)
        await scenario.starts()
        await scenario.a_moment_passes()
        assert scenario.origin.tip("main") == tested
        assert scenario.place.is_merged(1)
        assert "🎉 Merged" in scenario.comment(1)


@asynchronous
async def test_what_could_not_be_told_before_the_end_is_told_after_it(story: Stories):
    async with story() as scenario:
        scenario.origin.branch("loaded-first", upon="main")
        await scenario.create_queue(key=QueueKey(scenario.keeper.key.repo, "loaded-first"))
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(Answers(503), "/(issues/comments|notes)/[0-9]+$", times=3)
        await scenario.passes(1)
        await scenario.starts_again()
        await scenario.a_minute_passes()
        assert "🎉 Merged" in scenario.comment(1)
