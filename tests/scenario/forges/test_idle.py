"""A forge is asked less and less often about a repository in which nothing happens, until something happens."""

import pytest

from mergeyard.service.poller import MAX_IDLE_INTERVAL_MS
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.scenario import MINUTE, SECOND

USUAL_POLL_INTERVAL = USUAL_POLL_INTERVAL_S * SECOND


async def count_polls(scenario: ForgeScenario, milliseconds: int) -> int:
    before = scenario.poll_count()
    await scenario.advance_time(milliseconds)
    return scenario.poll_count() - before


async def fall_asleep(scenario: ForgeScenario) -> None:
    """Until the poller asks as seldom as it ever does, and has just asked."""
    scenario.forge.deliveries.drop_all = True
    await scenario.advance_time(20 * MINUTE)
    while not await count_polls(scenario, SECOND):
        pass


@pytest.mark.long
@asynchronous
async def test_a_quiet_forge_is_asked_less_and_less_often(github_scenario: StartScenario):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.forge.deliveries.drop_all = True
        polls = [await count_polls(scenario, 5 * MINUTE) for _ in range(4)]
        assert 2 <= polls[0] <= 4
        assert max(polls[1:]) == 1
        assert sum(polls[1:]) == 2
        await fall_asleep(scenario)
        assert await count_polls(scenario, MAX_IDLE_INTERVAL_MS - 2 * SECOND) == 0
        assert await count_polls(scenario, 3 * SECOND) == 1


@pytest.mark.long
@asynchronous
async def test_a_submission_wakes_the_poller_at_once(github_scenario: StartScenario):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await fall_asleep(scenario)
        await scenario.advance_time(MINUTE)
        await scenario.submit(1)
        assert await count_polls(scenario, SECOND) == 1
        assert await count_polls(scenario, 2 * USUAL_POLL_INTERVAL) == 2


@pytest.mark.long
@asynchronous
async def test_a_webhook_wakes_the_poller_at_once(github_scenario: StartScenario):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        await fall_asleep(scenario)
        await scenario.advance_time(MINUTE)
        scenario.forge.deliveries.drop_all = False
        scenario.open(1)
        await scenario.wait_until_idle()
        assert await count_polls(scenario, SECOND) == 1
        assert await count_polls(scenario, MINUTE) == 1


@asynchronous
async def test_many_webhooks_do_not_make_the_poller_ask_more_often_than_usual(github_scenario: StartScenario):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        await scenario.advance_time(SECOND)
        polls = 0
        for number in range(1, 9):
            scenario.open(number)
            await scenario.wait_until_idle()
            polls += await count_polls(scenario, USUAL_POLL_INTERVAL // 4)
        assert 1 <= polls <= 2
