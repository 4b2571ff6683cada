"""Which stacks are tested speculatively, and which speculative runs are given up."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode, Speculation
from mergeyard.domain.ids import RunId
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets, Submission, impacted_targets_from_names
from mergeyard.domain.queue import PassRateModel, Queue
from mergeyard.domain.states import PullRequestState, Reason
from mergeyard.engine.pass_rate_model import (
    MAX_FEATURES,
    MAX_RECENTLY_FAILED,
    MAX_TARGET_FEATURES,
    pass_probability,
    update_pass_rate_model,
)
from mergeyard.engine.speculation import (
    MAX_SUSPECTS,
    MIN_START_PROBABILITY,
    PASSED_BEFORE_PROBABILITY,
    predict_outcomes,
    propose,
    run_probability,
)
from tests.support.builders import QueueWorld, a_parallel_world, a_plain_queue, a_submission, a_world, prs_ahead

BEST_FIRST = Speculation.BEST_FIRST


def stacks(world: QueueWorld, number: int) -> list[tuple[int, ...]]:
    """The pull requests ahead in the runs of its batch, in the order in which the runs started."""
    batch = next(batch for batch in world.queue.active.batches if world.submission_id(number) in batch.submission_ids)
    return [prs_ahead(world.queue.runs[run]) for run in batch.runs]


def a_speculating_world(prs: int, *, concurrency: int = 20, depth: int | None = None) -> QueueWorld:
    return a_world(prs=prs, concurrency=concurrency, depth=depth, speculation=BEST_FIRST)


def test_while_nothing_has_failed_every_pr_is_tested_on_top_of_all_prs_ahead():
    world = a_speculating_world(4)
    assert [stacks(world, number) for number in (1, 2, 3, 4)] == [[()], [(1,)], [(1, 2)], [(1, 2, 3)]]


def test_prs_behind_a_probable_culprit_are_tested_with_and_without_it():
    world = a_speculating_world(3)
    world.fails(2)
    assert sorted(stacks(world, 3)) == [(1,), (1, 2), (2,)]


def test_no_run_starts_on_an_unlikely_stack():
    world = a_speculating_world(30, concurrency=40)
    idle = [batch for batch in world.queue.active.batches if not batch.runs]
    assert idle
    assert all(candidate.probability >= MIN_START_PROBABILITY for candidate in propose(world.queue))
    assert world.state(30) is PullRequestState.PENDING


def test_free_slots_go_to_the_most_likely_stacks_first():
    world = a_speculating_world(3, concurrency=4)
    world.fails(2)
    assert [len(stacks(world, number)) for number in (1, 2, 3)] == [1, 2, 2]


def test_a_passed_pr_is_no_longer_left_out():
    world = a_speculating_world(3)
    world.fails(2)
    world.build()
    world.passes(1)
    assert all(1 in ahead for ahead in stacks(world, 3))


def test_a_pr_whose_commits_another_pr_contains_is_not_left_out():
    world = a_speculating_world(1)
    world.submit(2, stacked_on=1)
    world.submit(3)
    world.build()
    world.fails(2)
    assert (2,) not in stacks(world, 3)
    assert stacks(world, 2) == [(1,)]


def test_no_run_speculates_on_a_batch_that_passed_or_was_cleared():
    world = a_speculating_world(2, depth=1)
    world.passes(2)
    assert propose(world.queue) == []


def test_in_parallel_mode_only_prs_that_share_a_target_are_left_out():
    world = a_parallel_world("x", "x", "y", "x", concurrency=20, speculation=BEST_FIRST)
    world.fails(2)
    assert sorted(stacks(world, 4)) == [(1,), (1, 2), (2,)]
    assert stacks(world, 3) == [()]
    assert world.queue.mode is Mode.PARALLEL


def test_chain_speculation_tests_only_the_chain():
    world = a_world(prs=3, concurrency=20)
    world.fails(2)
    assert stacks(world, 3) == [(1, 2)]


USUAL = 0.9


def merge_probabilities(world: QueueWorld) -> list[float]:
    """How likely each active batch is to merge."""
    known = predict_outcomes(world.queue)
    ids = (batch.id for batch in world.queue.active.batches)
    return [sum(share for leaving, share in known[batch].outcomes.items() if batch not in leaving) for batch in ids]


def test_before_any_run_every_pr_has_the_usual_pass_rate():
    world = a_world(prs=2)
    usual = pass_probability(world.queue, world.submission(1))
    assert merge_probabilities(world) == [pytest.approx(usual), pytest.approx(usual)]
    assert usual == pytest.approx(USUAL, abs=0.01)


def test_the_pass_rate_of_a_batch_is_the_product_of_its_members():
    world = a_world(prs=2, batch=2)
    assert merge_probabilities(world) == [pytest.approx(USUAL**2, abs=0.02)]


def test_a_passed_run_raises_the_pass_rate_of_all_its_members():
    world = a_world(prs=2)
    world.passes(2)
    assert merge_probabilities(world) == [
        pytest.approx(PASSED_BEFORE_PROBABILITY),
        pytest.approx(PASSED_BEFORE_PROBABILITY),
    ]


def test_a_failed_run_lowers_the_pass_rate_of_all_its_members():
    world = a_world(prs=3)
    world.fails(2)
    first, second, third = merge_probabilities(world)
    assert first == second == pytest.approx(0.52, abs=0.02)
    assert third == pytest.approx(USUAL, abs=0.01)


def test_in_a_failed_stack_it_is_unlikely_that_all_pass_or_all_fail():
    world = a_world(prs=2)
    world.fails(2)
    first, second = (batch.id for batch in world.queue.active.batches)
    together = predict_outcomes(world.queue)[first]
    assert together.outcomes[frozenset()] < 0.1
    assert together.outcomes[frozenset({first, second})] < 0.1
    assert together.outcomes[frozenset({first})] == pytest.approx(together.outcomes[frozenset({second})])


def test_a_pr_that_passed_is_not_suspected_for_a_failed_run_with_others():
    world = a_world(prs=3)
    world.passes(1)
    world.fails(3)
    first, second, third = merge_probabilities(world)
    assert first == pytest.approx(PASSED_BEFORE_PROBABILITY)
    assert second == third < 0.6


def test_a_pr_that_failed_alone_is_unlikely_to_pass():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert merge_probabilities(world)[0] < 0.2


def test_in_a_long_failed_stack_only_the_nearest_prs_are_compared():
    world = a_world(prs=MAX_SUSPECTS + 2, concurrency=20)
    world.fails(MAX_SUSPECTS + 2)
    each = merge_probabilities(world)
    assert each[0] == pytest.approx(USUAL, abs=0.01)
    assert each[-1] < each[0]


def test_a_failed_run_that_may_be_repeated_shows_nothing_yet():
    world = a_world(prs=1, base_passed=False, test_retries=1)
    world.fails(1)
    assert merge_probabilities(world) == [pytest.approx(USUAL, abs=0.01)]


def test_every_batch_has_an_outcome_however_many_depend_on_each_other():
    world = a_world(prs=2 * MAX_SUSPECTS + 2, concurrency=20)
    world.fails(MAX_SUSPECTS + 2)
    world.fails(2 * MAX_SUSPECTS + 2)
    assert len(merge_probabilities(world)) == 2 * MAX_SUSPECTS + 2


def test_a_run_is_as_likely_to_be_needed_as_its_assumption_about_the_prs_ahead():
    world = a_world(prs=3, concurrency=9, speculation=Speculation.BEST_FIRST)
    world.fails(2)
    known, third = predict_outcomes(world.queue), world.queue.active.batches[2]
    runs = [world.queue.runs[run] for run in third.runs]
    assert len(runs) == 3
    assert sum(run_probability(world.queue, third, run, known) for run in runs) == pytest.approx(0.95, abs=0.02)


def a_submission_of(number: int = 1, *, author: str = "", targets: ImpactedTargets | None = None) -> Submission:
    submission = a_submission(number)
    return replace(submission, pull_request=replace(submission.pull_request, author=author), impacted_targets=targets)


def merged(submission: Submission) -> Submission:
    return replace(submission, state=PullRequestState.MERGED, reason=Reason.MERGED_BY_QUEUE, verified_by=RunId("run"))


def failed(submission: Submission) -> Submission:
    return replace(submission, state=PullRequestState.FAILED, reason=Reason.TEST_RUN_FAILED)


def trained(*ends: Submission) -> Queue:
    queue = a_plain_queue()
    for end in ends:
        queue = update_pass_rate_model(queue, end)
    return queue


def test_before_any_pr_left_nine_of_ten_are_expected_to_pass():
    assert pass_probability(a_plain_queue(), a_submission_of()) == pytest.approx(0.9, abs=0.01)


def test_a_merge_raises_the_pass_rate_of_all_and_a_failure_lowers_it():
    before = pass_probability(a_plain_queue(), a_submission_of())
    assert (
        pass_probability(trained(merged(a_submission_of(2))), a_submission_of())
        > before
        > pass_probability(trained(failed(a_submission_of(2))), a_submission_of())
    )


def test_the_pass_rate_of_an_author_follows_the_last_prs():
    queue = trained(*[failed(a_submission_of(number, author="bo")) for number in range(2, 12)])
    assert pass_probability(queue, a_submission_of(author="bo")) < pass_probability(
        queue, a_submission_of(author="ann")
    )


def test_the_pass_rate_of_a_target_follows_the_prs_that_impacted_it():
    queue = trained(
        *[failed(a_submission_of(number, targets=impacted_targets_from_names("ui"))) for number in range(2, 12)]
    )
    assert pass_probability(queue, a_submission_of(targets=impacted_targets_from_names("ui"))) < pass_probability(
        queue, a_submission_of(targets=impacted_targets_from_names("docs"))
    )


def test_an_author_who_failed_before_has_a_lower_pass_rate():
    queue = trained(failed(a_submission_of(1)))
    assert pass_probability(queue, a_submission_of(1)) < pass_probability(queue, a_submission_of(2))


@pytest.mark.parametrize(
    "targets", [ALL_TARGETS, impacted_targets_from_names(*map(str, range(MAX_TARGET_FEATURES + 1)))]
)
def test_a_pr_with_many_targets_has_a_slightly_lower_pass_rate(targets: ImpactedTargets):
    queue = a_plain_queue()
    assert pass_probability(queue, a_submission_of(targets=targets)) < pass_probability(
        queue, a_submission_of(targets=impacted_targets_from_names("ui"))
    )


@pytest.mark.parametrize(
    "gone",
    [
        replace(a_submission_of(), state=PullRequestState.CANCELLED, reason=Reason.CANCELLED_BY_USER),
        replace(a_submission_of(), state=PullRequestState.FAILED, reason=Reason.MERGE_CONFLICT),
        replace(a_submission_of(), state=PullRequestState.MERGED, reason=Reason.MERGED_MANUALLY),
    ],
    ids=lambda gone: gone.reason,
)
def test_nothing_is_learned_from_prs_without_a_test_result(gone: Submission):
    assert trained(gone).pass_rate_model == PassRateModel()


def test_the_recorded_history_is_bounded_and_the_oldest_is_dropped():
    ends = [failed(a_submission_of(number, author=f"author{number}")) for number in range(1, MAX_FEATURES + 2)]
    known = trained(*ends).pass_rate_model
    assert len(known.weights) == MAX_FEATURES
    assert "author author1" not in known.weights
    assert f"author author{MAX_FEATURES + 1}" in known.weights
    assert len(known.recently_failed) == MAX_RECENTLY_FAILED
