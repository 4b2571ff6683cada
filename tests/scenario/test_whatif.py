"""What-if replay: a queue's history is read from the store and replayed in a separate process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from benchmarks.policy_race.workload import Workload, generate_trace
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import PullRequestNumber, Sha, SubmissionId
from mergeyard.domain.pull_requests import PullRequest, Submission, impacted_targets_from_names
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant, later
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.whatif import (
    MAX_COUNTED_PULL_REQUESTS,
    MAX_PENDING_REPLAYS,
    WARMUP_MS,
    Replay,
    Replays,
    read_history,
)
from mergeyard.simulation.history import EndState, History, StateChange
from mergeyard.simulation.whatif import respond
from tests.support.asynchronous import asynchronous
from tests.support.replay_histories import Recording, record_race, store_recording
from tests.support.scenario import KEY, MINUTE, Scenario, ScenarioSetup, a_scenario

pytestmark = pytest.mark.long

DAY = 24 * 60 * MINUTE
UNHURRIED = ScenarioSetup(poll_interval_ms=DAY)


async def replay(scenario: Scenario, **changes: Any) -> Replay:
    return await scenario.service.replays.replay(KEY, later(scenario.clock.now(), -DAY), changes)


async def history(scenario: Scenario, days: int = 1, *, in_lanes: bool = False) -> History:
    now = later(scenario.clock.now(), 1)
    return await read_history(scenario.store, scenario.queue_actor, later(now, -days * DAY), now, with_lanes=in_lanes)


async def passes_after(scenario: Scenario, minutes: int, *numbers: int) -> None:
    await scenario.advance_time(minutes * MINUTE)
    await scenario.passes(*numbers)


@asynchronous
async def test_recorded_history_is_replayed_unchanged_and_with_a_changed_setting(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        for number in (1, 2, 3):
            await passes_after(scenario, 10, number)
        found = await replay(scenario, concurrency=3)
        assert found.answer.baseline == found.answer.actual
        assert (found.answer.actual.merged, found.answer.actual.median_ms) == (3, 20 * MINUTE)
        assert found.answer.proposed is not None
        assert (found.answer.proposed.median.median_ms, found.answer.proposed.median.p95_ms) == (
            10 * MINUTE,
            10 * MINUTE,
        )
        assert (found.pull_request_count, found.limit, found.current_config.concurrency) == (3, None, 1)


@asynchronous
async def test_failed_cancelled_and_queued_prs_are_distinguished(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=4), UNHURRIED) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1, 2, 3, 4)
        await scenario.cancel(3)
        await passes_after(scenario, 10, 1)
        await scenario.fails(2)
        read = await history(scenario)
        assert [(each.number, each.end_state, each.is_counted) for each in read.arrivals] == [
            (1, EndState.MERGED, True),
            (2, EndState.FAILED, True),
            (3, EndState.REMOVED, True),
            (4, EndState.STILL_QUEUED, False),
        ]


@asynchronous
async def test_pauses_and_setting_changes_are_part_of_the_history(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        begun = scenario.clock.now()
        await scenario.advance_time(10 * MINUTE)
        await scenario.update(concurrency=3, batch=True)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.advance_time(10 * MINUTE)
        await scenario.update(state=QueueState.RUNNING)
        read = await history(scenario)
        configs = [
            (setting.at - begun, setting.config.concurrency, setting.config.batch) for setting in read.config_changes
        ]
        assert configs == [(20 * MINUTE + 1 - DAY - WARMUP_MS, 1, False), (10 * MINUTE, 3, True)]
        assert read.state_changes[1:] == (
            StateChange(later(begun, 10 * MINUTE), QueueState.PAUSED),
            StateChange(later(begun, 20 * MINUTE), QueueState.RUNNING),
        )
        assert read.unreadable_changes == 0


@asynchronous
async def test_history_of_a_deleted_queue_with_the_same_name_is_not_used(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1), UNHURRIED) as scenario:
        await scenario.update(concurrency=2)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        await scenario.create_queue(Config(concurrency=9))
        read = await history(scenario)
        assert [setting.config.concurrency for setting in read.config_changes] == [9]
        assert [order.state for order in read.state_changes] == [QueueState.RUNNING]


@asynchronous
async def test_impacted_targets_are_read_if_the_replay_uses_lanes(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=2), UNHURRIED) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("bridge"))
        await scenario.submit(1, 2)
        await passes_after(scenario, 10, 1)
        await scenario.passes(2)
        assert [each.impacted_targets for each in (await history(scenario)).arrivals] == [None, None]
        assert [each.impacted_targets for each in (await history(scenario, in_lanes=True)).arrivals] == [
            impacted_targets_from_names("bridge"),
            None,
        ]
        found = await replay(scenario, mode=Mode.PARALLEL)
        assert "1 of 2 pull requests have no impacted targets" in " ".join(
            each.message for each in found.answer.assumptions
        )


def a_submission(submission_id: int, at: Instant) -> Submission:
    return Submission(
        id=SubmissionId(submission_id),
        pull_request=PullRequest(number=PullRequestNumber(submission_id), head=Sha("1" * 40), base_branch="main"),
        priority=100,
        submitted_at=at,
        admitted_at=at,
        state_changed_at=later(at, MINUTE),
        state=PullRequestState.MERGED,
        reason=Reason.MERGED_BY_QUEUE,
    )


@asynchronous
async def test_beyond_the_limit_the_latest_prs_are_counted_and_earlier_ones_fill_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        now = scenario.clock.now()
        submissions = tuple(
            a_submission(submission_id, later(now, (submission_id - 600) * MINUTE)) for submission_id in range(1, 600)
        )
        await store_recording(
            scenario.store, scenario.queue_actor.id, scenario.queue_actor.version, Recording(Config(), submissions, ())
        )
        read = await history(scenario)
        assert read.is_truncated
        assert [each.number for each in read.arrivals if each.is_counted] == list(
            range(600 - MAX_COUNTED_PULL_REQUESTS, 600)
        )
        assert [each.number for each in read.arrivals if not each.is_counted] == list(
            range(1, 600 - MAX_COUNTED_PULL_REQUESTS)
        )
        assert read.since == submissions[599 - MAX_COUNTED_PULL_REQUESTS].submitted_at


@asynchronous
async def test_a_day_of_a_busy_queue_is_replayed_without_errors(tmp_path: Path):
    past = record_race(generate_trace(Workload(rate=6, hours=8, workers=100, parts=1), 3), Config())
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        await store_recording(
            scenario.store, scenario.queue_actor.id, scenario.queue_actor.version, past.ending_at(scenario.clock.now())
        )
        found = await replay(scenario, concurrency=20)
        assert found.answer.actual.merged > 20
        assert found.answer.baseline == found.answer.actual


@asynchronous
async def test_only_one_replay_of_a_queue_runs_at_a_time(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        began, may_end, under_way = asyncio.Event(), asyncio.Event(), list[int]()

        async def slowly(request: bytes) -> bytes:
            under_way.append(len(under_way) + 1)
            began.set()
            await may_end.wait()
            return respond(request)

        replays = Replays(scenario.service.registry, slowly)
        both = [asyncio.create_task(replays.replay(KEY, Instant(0), {})) for _ in range(2)]
        await began.wait()
        await asyncio.to_thread(lambda: None)
        assert under_way == [1]
        may_end.set()
        await asyncio.gather(*both)
        assert under_way == [1, 2]


@asynchronous
async def test_replay_beyond_the_limit_of_pending_replays_is_refused_with_retry_after(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        never = asyncio.Event()

        async def never_ending(request: bytes) -> bytes:
            await never.wait()
            return respond(request)

        replays = Replays(scenario.service.registry, never_ending)
        waiting = [asyncio.create_task(replays.replay(KEY, Instant(0), {})) for _ in range(MAX_PENDING_REPLAYS)]
        await scenario.queue_actor.submit()
        with pytest.raises(RequestRefused, match="try again in a minute") as refused:
            await replays.replay(KEY, Instant(0), {})
        assert (refused.value.code, refused.value.retry_after) == (Code.RATE_LIMITED, 60)
        never.set()
        await asyncio.gather(*waiting)
        await replays.replay(KEY, Instant(0), {})


@asynchronous
async def test_unknown_queue_cannot_be_replayed(tmp_path: Path):
    async with a_scenario(tmp_path, None, UNHURRIED) as scenario:
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        with pytest.raises(RequestRefused, match="There is no queue"):
            await replay(scenario)
