"""Gitea does not see by itself what was merged by a push: it is told so until it knows."""

from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import ForgeScenario
from tests.support.forges.faults import ALWAYS, Answers, LosesReply

MARK = "/pulls/1/merge$"


@asynchronous
async def test_what_could_not_be_shown_as_merged_at_once_is_shown_so_later(gitea_story: Stories):
    async with gitea_story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for trouble in (Answers(503), Answers(502), LosesReply()):
            scenario.place.faults.plan(trouble, MARK)
        await lands_unseen(scenario, 1)
        await scenario.a_minute_passes()
        assert scenario.place.is_merged(1)


@asynchronous
async def test_what_could_not_be_shown_as_merged_before_the_end_of_a_server_is_shown_so_after_it(gitea_story: Stories):
    async with gitea_story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(Answers(503), MARK, times=ALWAYS)
        await lands_unseen(scenario, 1)
        await scenario.service.stop()
        scenario.place.faults.clear()
        await scenario.starts()
        assert scenario.place.is_merged(1)


@asynchronous
async def test_one_that_cannot_be_shown_as_merged_keeps_no_other_from_it(gitea_story: Stories):
    async with gitea_story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.place.faults.plan(Answers(503), scenario.place.paths.merge, times=ALWAYS)
        await lands_unseen(scenario, 1)
        await lands_unseen(scenario, 2)
        scenario.place.faults.clear()
        scenario.place.faults.plan(Answers(503), MARK, times=ALWAYS)
        await scenario.a_minute_passes()
        assert scenario.place.is_merged(2)
        assert not scenario.place.is_merged(1)


@asynchronous
async def test_what_gitea_will_not_show_as_merged_is_not_asked_for_again(gitea_story: Stories):
    async with gitea_story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(Answers(405), MARK, times=ALWAYS)
        await lands_unseen(scenario, 1)
        asked = marks(scenario)
        await scenario.a_minute_passes()
        assert marks(scenario) == asked


async def lands_unseen(scenario: ForgeScenario, number: int) -> None:
    await scenario.passes(number)
    assert await scenario.state(number) == "merged: merged_by_queue"
    assert not scenario.place.is_merged(number)


def marks(scenario: ForgeScenario) -> int:
    """How often Gitea was asked to show the first one as merged."""
    return sum(call.endswith("/pulls/1/merge") for call in scenario.place.faults.calls)
