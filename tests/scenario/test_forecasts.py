"""Forecasts: views show the forecast, or else the simple estimate; merged pull requests are compared with it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant, MergeEstimate, later
from mergeyard.engine.estimates import build_eta_model
from mergeyard.ports.external import ForecastUnavailable
from mergeyard.ports.store import SubmissionsQuery
from mergeyard.service.forecasts import (
    FORECAST_INTERVAL_MS,
    MAX_FORECAST_AGE_MS,
    MIN_REST_MS,
    REST_AFTER_ERROR_MS,
    EstimateAccuracy,
)
from tests.support.asynchronous import asynchronous
from tests.support.forecasts import InProcessForecaster
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, ScenarioSetup, a_scenario

pytestmark = pytest.mark.long

DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def a_queue_with_history(folder: Path, forecaster: InProcessForecaster | None) -> AsyncGenerator[Scenario]:
    """One run passed after ten minutes."""
    stage = ScenarioSetup(poll_interval_ms=DAY, forecaster=forecaster)
    async with a_scenario(folder, Config(concurrency=1), stage) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1)
        await scenario.advance_time(10 * MINUTE)
        await scenario.passes(1)
        await scenario.advance_time(MIN_REST_MS)
        yield scenario


async def submit_and_forecast(scenario: Scenario, *numbers: int) -> None:
    await scenario.submit(*numbers)
    await scenario.advance_time(MIN_REST_MS)


async def estimates(scenario: Scenario, number: int) -> tuple[Instant | None, Instant | None]:
    view = await scenario.view(number)
    return view.estimated_merge_at, view.estimated_merge_at_p90


def simple_estimate(scenario: Scenario, number: int, position: int) -> tuple[Instant, Instant]:
    queue = scenario.queue_actor.queue
    eta_model = build_eta_model(queue, scenario.clock.now())
    assert eta_model is not None
    expected = eta_model.estimate(
        queue.submissions[queue.submission_by_number[scenario.build_command(number).number]], position
    )
    assert expected is not None
    return expected.median, expected.p90


def forecast(scenario: Scenario, number: int) -> tuple[Instant, Instant]:
    submission_id = scenario.queue_actor.queue.submission_by_number[scenario.build_command(number).number]
    estimate = scenario.queue_actor.forecast[submission_id]
    assert estimate is not None
    return estimate.median, estimate.p90


@asynchronous
async def test_the_forecast_is_shown_in_every_view(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await submit_and_forecast(scenario, 2, 3)
        assert await estimates(scenario, 3) == forecast(scenario, 3)
        listed, _ = await scenario.service.submission_queries.read_page(KEY, SubmissionsQuery(take=1))
        assert (listed[0].estimated_merge_at, listed[0].estimated_merge_at_p90) == forecast(scenario, 3)
        seen = (await scenario.service.queues.read(KEY)).submissions[-1]
        assert (seen.estimated_merge_at, seen.estimated_merge_at_p90) == forecast(scenario, 3)
        details = await scenario.service.pull_request_details.read(KEY, scenario.build_command(3).number)
        assert (details.view.estimated_merge_at, details.view.estimated_merge_at_p90) == forecast(scenario, 3)


@asynchronous
async def test_pr_that_is_not_in_the_last_forecast_gets_a_simple_estimate_after_those_ahead(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await scenario.submit(2)
        assert await estimates(scenario, 2) == simple_estimate(scenario, 2, 1)
        await scenario.advance_time(MIN_REST_MS)
        await scenario.submit(3)
        assert await estimates(scenario, 2) == forecast(scenario, 2)
        ahead, simple = forecast(scenario, 2), simple_estimate(scenario, 3, 2)
        assert await estimates(scenario, 3) == (max(ahead[0], simple[0]), max(ahead[1], simple[1]))


@asynchronous
async def test_without_a_forecaster_every_pr_gets_a_simple_estimate(tmp_path: Path):
    async with a_queue_with_history(tmp_path, None) as scenario:
        await scenario.submit(2)
        await scenario.advance_time(MINUTE)
        assert await estimates(scenario, 2) == simple_estimate(scenario, 2, 1)


@asynchronous
async def test_pr_that_is_not_expected_to_merge_has_no_estimate(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await scenario.submit(2)
        submission_id = scenario.queue_actor.queue.submission_by_number[scenario.build_command(2).number]
        scenario.queue_actor.forecast = {submission_id: None}
        assert await estimates(scenario, 2) == (None, None)


@asynchronous
async def test_an_estimate_is_never_in_the_past(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await submit_and_forecast(scenario, 2)
        middle, _ = forecast(scenario, 2)
        scenario.clock.move_to(later(middle, 1))
        assert await estimates(scenario, 2) == simple_estimate(scenario, 2, 1)
        assert simple_estimate(scenario, 2, 1)[0] > scenario.clock.now()


@asynchronous
async def test_paused_queue_has_no_estimates(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await submit_and_forecast(scenario, 2)
        await scenario.update(state=QueueState.PAUSED)
        assert await estimates(scenario, 2) == (None, None)
        await scenario.advance_time(MIN_REST_MS)
        assert not scenario.queue_actor.forecast


@asynchronous
async def test_no_forecast_is_computed_for_an_empty_or_paused_queue(tmp_path: Path):
    forecaster = InProcessForecaster()
    async with a_queue_with_history(tmp_path, forecaster) as scenario:
        assert forecaster.requests == []
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(2)
        await scenario.advance_time(MINUTE)
        assert forecaster.requests == []


@asynchronous
async def test_forecasts_are_limited_in_frequency_and_use_the_latest_state(tmp_path: Path):
    forecaster = InProcessForecaster()
    async with a_queue_with_history(tmp_path, forecaster) as scenario:
        await scenario.submit(2)
        await scenario.advance_time(FORECAST_INTERVAL_MS)
        await scenario.submit(3)
        await scenario.submit(4)
        await scenario.advance_time(FORECAST_INTERVAL_MS)
        assert [len(queue.submissions) for queue in forecaster.requests] == [1]
        await scenario.advance_time(MIN_REST_MS)
        assert [len(queue.submissions) for queue in forecaster.requests] == [1, 3]


@asynchronous
async def test_an_old_forecast_is_recomputed_even_without_changes(tmp_path: Path):
    forecaster = InProcessForecaster()
    async with a_queue_with_history(tmp_path, forecaster) as scenario:
        await submit_and_forecast(scenario, 2)
        before = forecast(scenario, 2)
        await scenario.advance_time(MAX_FORECAST_AGE_MS + FORECAST_INTERVAL_MS)
        assert len(forecaster.requests) == 2
        await scenario.advance_time(15 * MINUTE)
        assert forecast(scenario, 2) > before


@asynchronous
async def test_after_a_forecaster_error_simple_estimates_are_shown_and_it_is_retried_later(tmp_path: Path):
    forecaster = InProcessForecaster()
    async with a_queue_with_history(tmp_path, forecaster) as scenario:
        await submit_and_forecast(scenario, 2)
        forecaster.error = ForecastUnavailable("it broke off")
        await submit_and_forecast(scenario, 3)
        assert await estimates(scenario, 2) == simple_estimate(scenario, 2, 1)
        asked, forecaster.error = len(forecaster.requests), None
        await scenario.submit(4)
        await scenario.advance_time(MINUTE)
        assert len(forecaster.requests) == asked
        await scenario.advance_time(REST_AFTER_ERROR_MS)
        assert await estimates(scenario, 2) == forecast(scenario, 2)


@asynchronous
async def test_the_first_forecast_is_compared_with_the_time_of_the_merge(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await submit_and_forecast(scenario, 2)
        middle, late = forecast(scenario, 2)
        assert middle < late
        await scenario.advance_time(later(middle, SECOND) - scenario.clock.now())
        await scenario.passes(2)
        await scenario.advance_time(MIN_REST_MS)
        calibration = scenario.service.calibration
        assert calibration.accuracy_of([scenario.queue_actor]) == EstimateAccuracy(merged=1, by_median=0, by_p90=1)
        await submit_and_forecast(scenario, 3)
        await scenario.passes(3)
        await scenario.advance_time(MIN_REST_MS)
        assert calibration.accuracy_of([scenario.queue_actor]) == EstimateAccuracy(merged=2, by_median=1, by_p90=2)
        assert calibration.accuracy_of([]) == EstimateAccuracy()


@asynchronous
async def test_pr_that_merged_during_the_forecast_is_not_counted(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        calibration, merged = scenario.service.calibration, (await scenario.submission(1)).id
        calibration.record_forecast(
            scenario.queue_actor, {merged: MergeEstimate(scenario.clock.now(), scenario.clock.now())}
        )
        await calibration.count_ended(scenario.queue_actor)
        assert calibration.accuracy_of([scenario.queue_actor]) == EstimateAccuracy()


@asynchronous
async def test_pr_that_did_not_merge_is_not_counted(tmp_path: Path):
    async with a_queue_with_history(tmp_path, InProcessForecaster()) as scenario:
        await submit_and_forecast(scenario, 2, 3)
        await scenario.cancel(3)
        await scenario.fails(2)
        await scenario.advance_time(MIN_REST_MS)
        assert scenario.service.calibration.accuracy_of([scenario.queue_actor]) == EstimateAccuracy()


@asynchronous
async def test_the_forecaster_is_closed_with_the_service(tmp_path: Path):
    forecaster = InProcessForecaster()
    async with a_queue_with_history(tmp_path, forecaster):
        assert not forecaster.closed
    assert forecaster.closed
