"""Forecasts: which queues and submissions are selected, sampled outcomes, and merge times."""

from collections import Counter
from math import log
from random import Random

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from mergeyard.domain.config import DirectMergeMode, LandingMethod
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.pull_requests import Hold, impacted_targets_from_names
from mergeyard.domain.queue import PassRateModel, Queue
from mergeyard.domain.states import Mergeability, QueueState, Reason
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, LongerThan, MergeEstimate, later
from mergeyard.engine import estimates, views
from mergeyard.engine.pass_rate_model import BIAS, pass_probability
from mergeyard.simulation.forecast import (
    MAX_FORECAST_SUBMISSIONS,
    MAX_FORECAST_TARGET_NAMES,
    MIN_SIMULATIONS,
    QueueSimulation,
    SampledOutcomes,
    forecast_merges,
    select_for_forecast,
)
from tests.support.builders import QueueWorld, a_parallel_world, a_world
from tests.support.forecasts import with_certain_outcomes
from tests.support.world.world import START_TIME


def test_only_admitted_submissions_are_selected():
    world = a_world(prs=2)
    world.open_pull_request(3)
    world.change(3, draft=True)
    world.submit(3)
    selected = select_for_forecast(with_certain_outcomes(world.queue))
    assert selected is not None
    assert list(selected.submission_by_number) == [PullRequestNumber(1), PullRequestNumber(2)]
    assert len(selected.not_ready) == 0
    assert selected.active == world.queue.active


def test_submissions_in_a_bisection_are_selected():
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    selected = select_for_forecast(with_certain_outcomes(world.queue))
    assert selected is not None
    assert list(selected.submission_by_number) == [PullRequestNumber(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    "queue",
    [
        with_certain_outcomes(a_world().queue),
        replace(with_certain_outcomes(a_world(prs=1).queue), durations=()),
        replace(with_certain_outcomes(a_world(prs=1).queue), requested_state=QueueState.PAUSED),
        with_certain_outcomes(a_world(prs=MAX_FORECAST_SUBMISSIONS + 1, concurrency=1).queue),
        with_certain_outcomes(a_parallel_world().queue),
    ],
    ids=["empty", "no passed run yet", "paused", "too many", "empty lanes"],
)
def test_some_queues_have_no_forecast(queue: Queue):
    assert select_for_forecast(queue) is None


def test_a_queue_with_too_many_target_names_has_no_forecast():
    world = a_parallel_world("x")
    world.submit(2, impacted_targets=impacted_targets_from_names(*map(str, range(MAX_FORECAST_TARGET_NAMES))))
    assert select_for_forecast(with_certain_outcomes(world.queue)) is None


def test_a_selected_queue_survives_encoding_and_decoding():
    world = a_world(prs=6, batch=2, concurrency=2)
    world.fails(1, 2)
    world.build()
    world.passes(3, 4)
    selected = select_for_forecast(with_certain_outcomes(world.queue))
    encoded = msgpack.encode((selected, START_TIME))
    assert msgpack.decode(encoded, type=tuple[Queue, Instant]) == (selected, START_TIME)


DRAWS = 400


def failure_rates(queue: Queue) -> dict[int, float]:
    """How often each pull request fails in the sampled outcomes."""
    drawn = [SampledOutcomes(queue, START_TIME, Random(seed)).bad for seed in range(DRAWS)]
    counted = Counter(submission_id for bad in drawn for submission_id in bad)
    return {int(submission.number): counted[submission.id] / DRAWS for submission in queue.submissions.values()}


def with_durations(queue: Queue, *minutes: int) -> Queue:
    return replace(queue, durations=tuple(each * MINUTE for each in minutes))


def test_untested_pull_requests_fail_as_often_as_the_model_predicts():
    world = a_world(prs=3, concurrency=1)
    rate = 1 - pass_probability(world.queue, world.submission(1))
    assert failure_rates(with_durations(world.queue, 10)) == pytest.approx(dict.fromkeys((1, 2, 3), rate), abs=0.05)


def test_in_a_bisected_batch_at_least_one_fails():
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    queue = with_durations(world.queue, 10)
    drawn = [SampledOutcomes(queue, START_TIME, Random(seed)).bad for seed in range(DRAWS)]
    assert all(drawn)
    assert frozenset[SubmissionId]().union(*drawn) == set(queue.submissions)


def test_a_pull_request_that_passed_does_not_fail():
    world = a_world(prs=1)
    world.passes(1)
    assert failure_rates(with_durations(world.queue, 10)) == {1: 0}


def test_a_repeated_run_has_the_same_duration():
    world = a_world(prs=2)
    sampled = SampledOutcomes(with_durations(world.queue, *range(1, 33)), START_TIME, Random(1))
    one, other = world.run_of(1), world.run_of(2)
    assert sampled.duration_ms(one) == sampled.duration_ms(one)
    assert sampled.duration_ms(one) != sampled.duration_ms(other)


def test_a_run_in_progress_takes_longer_than_it_already_ran():
    world = a_world(prs=1)
    queue, now = with_durations(world.queue, *(10, 20, 30) * 10), later(START_TIME, 20 * MINUTE)
    remaining = [SampledOutcomes(queue, now, Random(seed)).remaining_ms(world.run_of(1), now) for seed in range(DRAWS)]
    assert all(each > 0 for each in remaining)
    assert sum(remaining) / DRAWS == pytest.approx(8 * MINUTE, rel=0.3)


def test_runs_in_progress_that_exceed_all_durations_count_as_observations():
    world = a_world(prs=5, concurrency=4)
    queue, now = with_durations(world.queue, 10), later(START_TIME, HOUR)
    base_run = replace(world.run_of(1), stack=world.run_of(1).stack[:0], tested_count=0)
    durations_ms = [SampledOutcomes(queue, now, Random(seed)).duration_ms(base_run) for seed in range(DRAWS)]
    assert sum(duration_ms > HOUR for duration_ms in durations_ms) / DRAWS == pytest.approx(4 / 5, abs=0.1)


def test_a_cancelled_run_counts_as_a_lower_bound_of_a_duration():
    world = a_world(prs=1)
    queue = with_durations(world.queue, *(10, 20, 30) * 10)
    stopped = replace(queue, durations=(*queue.durations, *(LongerThan(25 * MINUTE),) * 30))
    slow = [
        SampledOutcomes(stopped, START_TIME, Random(seed)).duration_ms(world.run_of(1)) > 25 * MINUTE
        for seed in range(DRAWS)
    ]
    assert sum(slow) / DRAWS == pytest.approx(2 / 3, abs=0.1)


def test_time_of_an_outage_does_not_count():
    world = a_world(prs=1)
    run, now = replace(world.run_of(1), outage_ms=15 * MINUTE), later(START_TIME, 20 * MINUTE)
    queue = replace(with_certain_outcomes(world.queue), runs={run.id: run})
    assert SampledOutcomes(queue, now, Random(1)).remaining_ms(run, now) == pytest.approx(5 * MINUTE, rel=0.05)


def test_with_fewer_known_runs_durations_spread_more():
    world = a_world(prs=1)

    def spread(count: int) -> float:
        queue = with_durations(world.queue, *[10] * count)
        drawn = sorted(
            SampledOutcomes(queue, START_TIME, Random(seed)).duration_ms(world.run_of(1)) for seed in range(DRAWS)
        )
        return drawn[DRAWS * 9 // 10] / drawn[DRAWS // 10]

    assert spread(1) > spread(4) > spread(32) > 1


MergeMinutes = dict[int, int | None]


def expected(queue: Queue, now: Instant = START_TIME, *, seed: int = 0) -> dict[int, MergeEstimate | None]:
    forecast = forecast_merges(queue, now, map(Random, range(seed, seed + MIN_SIMULATIONS)))
    return {int(queue.submissions[submission_id].number): each for submission_id, each in forecast.items()}


def minutes(queue: Queue, now: Instant = START_TIME) -> MergeMinutes:
    """Minutes from the start to the median merge time of each pull request."""
    found = expected(queue, now)
    return {number: each and round((each.median - START_TIME) / MINUTE) for number, each in found.items()}


def test_without_failures_pull_requests_merge_slot_by_slot():
    queue = with_certain_outcomes(a_world(prs=5, concurrency=2).queue)
    assert minutes(queue) == {1: 10, 2: 10, 3: 20, 4: 20, 5: 30}


def test_without_failures_the_forecast_equals_the_estimate():
    world = a_world(prs=7, concurrency=3)
    queue = with_certain_outcomes(world.queue)
    eta_model = estimates.build_eta_model(queue, START_TIME)
    assert eta_model is not None
    for number, found in expected(queue).items():
        position = views.position(queue, world.submission(number), START_TIME)
        assert position is not None
        guessed = eta_model.estimate(world.submission(number), position)
        assert found is not None
        assert guessed is not None
        assert found.median == pytest.approx(guessed.median, abs=MINUTE)


def test_a_pull_request_that_certainly_fails_has_no_estimate():
    assert minutes(with_certain_outcomes(a_world(prs=3, concurrency=3).queue, 2))[2] is None


@pytest.mark.parametrize(("chance", "has_estimate"), [(0.25, False), (0.75, True)])
def test_a_pull_request_that_probably_fails_has_no_estimate(chance: float, has_estimate: bool):
    model = PassRateModel({BIAS: log(chance / (1 - chance))})
    queue = replace(with_certain_outcomes(a_world(prs=1).queue), pass_rate_model=model)
    merged = [
        QueueSimulation(queue, START_TIME, SampledOutcomes(queue, START_TIME, Random(seed))).merge_times()
        for seed in range(MIN_SIMULATIONS)
    ]
    assert 0 < sum(map(len, merged)) < MIN_SIMULATIONS
    assert (expected(queue)[1] is not None) is has_estimate


def test_pr_behind_a_failing_pr_is_retested_without_it():
    assert minutes(with_certain_outcomes(a_world(prs=3, concurrency=3).queue, 2)) == {1: 10, 2: None, 3: 20}


def test_pr_in_another_lane_than_a_failing_pr_is_not_retested():
    queue = with_certain_outcomes(a_parallel_world("x", "x", "y", concurrency=3).queue, 1)
    assert minutes(queue) == {1: None, 2: 20, 3: 10}


def test_a_failed_batch_is_bisected_before_its_other_members_merge():
    """One round finds the culprit: those before it land as tested, and the one behind it is tested again."""
    queue = with_certain_outcomes(a_world(prs=4, batch=4, concurrency=1, bisection_concurrency=3).queue, 3)
    assert minutes(queue) == {1: 20, 2: 20, 3: None, 4: 30}


def test_the_elapsed_time_of_a_run_counts():
    queue = with_certain_outcomes(a_world(prs=1).queue)
    assert minutes(queue, later(START_TIME, 4 * MINUTE)) == {1: 10}


def test_a_run_that_exceeds_all_others_is_expected_to_take_longer():
    queue = with_certain_outcomes(a_world(prs=1).queue)
    for hours in (1, 2):
        (found,) = expected(queue, later(START_TIME, hours * HOUR)).values()
        assert found is not None
        assert later(START_TIME, round(1.05 * hours * HOUR)) < found.median < later(START_TIME, 2 * hours * HOUR)
        assert found.median < found.p90


def test_a_run_past_its_timeout_has_no_estimate():
    queue = with_certain_outcomes(a_world(prs=1, testing_timeout_minutes=60).queue)
    assert minutes(queue, later(START_TIME, HOUR)) == {1: None}


def test_a_passed_pull_request_merges_immediately():
    world = a_world(prs=2)
    world.passes(1)
    assert minutes(with_certain_outcomes(world.queue)) == {1: 0, 2: 10}


def test_pr_that_failed_on_top_of_a_passed_pr_has_no_estimate():
    world = a_world(prs=2)
    world.passes(1)
    world.fails(2)
    queue = replace(world.queue, durations=(10 * MINUTE,) * 9)
    assert minutes(queue)[2] is None


def test_pr_that_failed_on_top_of_an_untested_pr_has_an_estimate():
    world = a_world(prs=2)
    world.fails(2)
    queue = replace(world.queue, durations=(10 * MINUTE,) * 9)
    assert minutes(queue)[2] is not None


def test_a_bisection_in_progress_continues():
    """The first two are cleared and merge. Then the third is cleared, and is tested on top of them."""
    world = a_world(prs=4, batch=4, bisection_concurrency=1)
    world.fails(1, 2, 3, 4)
    world.build()
    assert minutes(with_certain_outcomes(world.queue, 4)) == {1: 10, 2: 10, 3: 30, 4: None}


def test_p90_is_not_before_the_median():
    queue = replace(a_world(prs=6, concurrency=2).queue, durations=(5 * MINUTE, 10 * MINUTE, 40 * MINUTE))
    found = [each for each in expected(queue).values() if each is not None]
    assert all(each.median <= each.p90 for each in found)
    assert any(each.median < each.p90 for each in found)


def test_forecasts_depend_only_on_the_queue_and_the_seed():
    queue = replace(a_world(prs=4).queue, durations=(5 * MINUTE, 10 * MINUTE, 20 * MINUTE))
    assert expected(queue) == expected(queue)
    assert expected(queue) != expected(queue, seed=100)


def test_too_few_simulations_give_no_forecast():
    assert forecast_merges(with_certain_outcomes(a_world(prs=1).queue), START_TIME, [Random(1)]) == {}


def test_a_held_pull_request_has_no_estimate():
    world = a_world(prs=2, concurrency=1)
    held = replace(world.submission(2), hold=Hold(Reason.CONFLICTS_WITH_PR_AHEAD, (world.submission_id(1),)))
    queue = replace(
        world.queue,
        submissions=world.queue.submissions.put(held.id, held),
        waiting={},
        held=world.queue.held.put(held.id, None),
    )
    assert minutes(with_certain_outcomes(queue)) == {1: 10, 2: None}


def test_an_admitted_pull_request_counts_as_mergeable_while_its_mergeability_is_unknown():
    world = a_world(prs=1)
    submission = world.submission(1)
    unknown = replace(submission, pull_request=replace(submission.pull_request, mergeability=Mergeability.UNKNOWN))
    queue = replace(world.queue, submissions=world.queue.submissions.put(submission.id, unknown))
    assert minutes(with_certain_outcomes(queue)) == {1: 10}


@pytest.mark.parametrize("landing", LandingMethod)
def test_a_landing_in_progress_counts_as_successful(landing: LandingMethod):
    world = a_world(prs=2, landing=landing)
    world.passes(1)
    world.save_landing_intent()
    assert minutes(with_certain_outcomes(world.queue)) == {1: 0, 2: 10}


def test_with_direct_merges_enabled_every_pull_request_is_still_expected_to_need_a_run():
    world = QueueWorld(replace(a_world().queue.config, direct_merge_mode=DirectMergeMode.ALWAYS))
    world.submit(1)
    assert minutes(with_certain_outcomes(world.queue)) == {1: 10}
