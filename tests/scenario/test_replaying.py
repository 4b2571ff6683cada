"""Replaying: a queue's own past is read out of the store, and replayed in a process of its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import PrNumber, Sha, Ticket
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.targets import named
from mergeyard.service.errors import Code, Refused
from mergeyard.service.replaying.reading import LEAD, MOST, read_history
from mergeyard.service.replaying.replays import MOST_ASKED, Replay, Replays
from mergeyard.sim.racing.trace import draw
from mergeyard.sim.racing.workload import Workload
from mergeyard.sim.replaying.history import End, History, Order
from mergeyard.sim.replaying.whatif import Answer, Question, answer
from tests.support.asynchronous import asynchronous
from tests.support.replaying import Recording, plant, recorded
from tests.support.scenario import KEY, MINUTE, Scenario, Stage, a_scenario

DAY = 24 * 60 * MINUTE
UNHURRIED = Stage(look_every=DAY)


async def replayed(scenario: Scenario, **wishes: Any) -> Replay:
    return await scenario.service.replays.replay(KEY, later(scenario.clock.now(), -DAY), wishes)


async def history(scenario: Scenario, days: int = 1, *, in_lanes: bool = False) -> History:
    now = later(scenario.clock.now(), 1)
    return await read_history(scenario.store, scenario.keeper, later(now, -days * DAY), now, in_lanes=in_lanes)


async def passes_after(scenario: Scenario, minutes: int, *numbers: int) -> None:
    await scenario.time_passes(minutes * MINUTE)
    await scenario.passes(*numbers)


@asynchronous
async def test_what_really_happened_is_replayed_as_it_was_and_with_a_change(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        for number in (1, 2, 3):
            await passes_after(scenario, 10, number)
        found = await replayed(scenario, concurrency=3)
        assert found.answer.replayed == found.answer.really
        assert (found.answer.really.merged, found.answer.really.median) == (3, 20 * MINUTE)
        assert found.answer.changed is not None
        assert (found.answer.changed.middle.median, found.answer.changed.middle.slow) == (10 * MINUTE, 10 * MINUTE)
        assert (found.counted, found.most, found.now.concurrency) == (3, None, 1)


@asynchronous
async def test_who_failed_was_taken_out_or_is_still_there_is_told_apart(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=4), UNHURRIED) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1, 2, 3, 4)
        await scenario.cancel(3)
        await passes_after(scenario, 10, 1)
        await scenario.fails(2)
        read = await history(scenario)
        assert [(each.number, each.end, each.counted) for each in read.arrivals] == [
            (1, End.MERGED, True),
            (2, End.FAILED, True),
            (3, End.LEFT, True),
            (4, End.STAYED, False),
        ]


@asynchronous
async def test_pauses_and_changes_of_settings_are_part_of_the_past(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        begun = scenario.clock.now()
        await scenario.time_passes(10 * MINUTE)
        await scenario.update(concurrency=3, batch=True)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.time_passes(10 * MINUTE)
        await scenario.update(state=QueueState.RUNNING)
        read = await history(scenario)
        configs = [(setting.at - begun, setting.config.concurrency, setting.config.batch) for setting in read.settings]
        assert configs == [(20 * MINUTE + 1 - DAY - LEAD, 1, False), (10 * MINUTE, 3, True)]
        assert read.orders[1:] == (
            Order(later(begun, 10 * MINUTE), QueueState.PAUSED),
            Order(later(begun, 20 * MINUTE), QueueState.RUNNING),
        )
        assert read.unread == 0


@asynchronous
async def test_a_queue_that_was_there_before_under_the_same_name_is_another_one(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        await scenario.update(concurrency=2)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        await scenario.create_queue(Config(concurrency=9))
        read = await history(scenario)
        assert [setting.config.concurrency for setting in read.settings] == [9]
        assert [order.state for order in read.orders] == [QueueState.RUNNING]


@asynchronous
async def test_impacted_targets_are_read_where_lanes_are_asked_for(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=2), UNHURRIED) as scenario:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("bridge"))
        await scenario.submit(1, 2)
        await passes_after(scenario, 10, 1)
        await scenario.passes(2)
        assert [each.targets for each in (await history(scenario)).arrivals] == [None, None]
        assert [each.targets for each in (await history(scenario, in_lanes=True)).arrivals] == [named("bridge"), None]
        found = await replayed(scenario, mode=Mode.PARALLEL)
        assert "1 of 2 pull requests have no impacted targets" in " ".join(each.words for each in found.answer.guesses)


def a_stay(ticket: int, at: Instant) -> Submission:
    return Submission(
        ticket=Ticket(ticket),
        pull=PullRequest(number=PrNumber(ticket), head=Sha("1" * 40), base="main"),
        priority=100,
        submitted_at=at,
        admitted_at=at,
        state_changed_at=later(at, MINUTE),
        state=PrState.MERGED,
        reason=Reason.MERGED_BY_QUEUE,
    )


@asynchronous
async def test_of_too_many_the_latest_are_counted_and_those_before_fill_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        now = scenario.clock.now()
        stays = tuple(a_stay(ticket, later(now, (ticket - 600) * MINUTE)) for ticket in range(1, 600))
        await plant(scenario.store, scenario.keeper.id, scenario.keeper.version, Recording(Config(), stays, ()))
        read = await history(scenario)
        assert read.cut
        assert [each.number for each in read.arrivals if each.counted] == list(range(600 - MOST, 600))
        assert [each.number for each in read.arrivals if not each.counted] == list(range(1, 600 - MOST))
        assert read.since == stays[599 - MOST].submitted_at


@asynchronous
async def test_a_day_of_a_busy_queue_is_replayed_without_an_error_of_its_own(tmp_path: Path):
    past = recorded(draw(Workload(rate=6, hours=8, workers=100, parts=1), 3), Config())
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        await plant(scenario.store, scenario.keeper.id, scenario.keeper.version, past.ending_at(scenario.clock.now()))
        found = await replayed(scenario, concurrency=20)
        assert found.answer.really.merged > 20
        assert found.answer.replayed == found.answer.really


@asynchronous
async def test_a_queue_is_replayed_once_at_a_time(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        began, may_end, under_way = asyncio.Event(), asyncio.Event(), list[int]()

        async def slowly(question: Question) -> Answer:
            under_way.append(len(under_way) + 1)
            began.set()
            await may_end.wait()
            return answer(question)

        replays = Replays(scenario.service.yard, slowly)
        both = [asyncio.create_task(replays.replay(KEY, Instant(0), {})) for _ in range(2)]
        await began.wait()
        await asyncio.to_thread(lambda: None)
        assert under_way == [1]
        may_end.set()
        await asyncio.gather(*both)
        assert under_way == [1, 2]


@asynchronous
async def test_whoever_asks_when_too_many_wait_is_told_to_come_back(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        never = asyncio.Event()

        async def never_ending(question: Question) -> Answer:
            await never.wait()
            return answer(question)

        replays = Replays(scenario.service.yard, never_ending)
        waiting = [asyncio.create_task(replays.replay(KEY, Instant(0), {})) for _ in range(MOST_ASKED)]
        await scenario.keeper.tell()
        with pytest.raises(Refused, match="ask again in a minute") as refused:
            await replays.replay(KEY, Instant(0), {})
        assert (refused.value.code, refused.value.retry_after) == (Code.RATE_LIMITED, 60)
        never.set()
        await asyncio.gather(*waiting)
        await replays.replay(KEY, Instant(0), {})


@asynchronous
async def test_a_queue_that_is_not_there_has_no_past(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        with pytest.raises(Refused, match="There is no queue"):
            await replayed(scenario)
