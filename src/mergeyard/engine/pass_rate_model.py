"""The model of how likely a pull request passes: an online logistic regression, updated when a submission ends."""

from collections.abc import Iterator
from math import exp

from msgspec.structs import replace

from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import PassRateModel, Queue
from mergeyard.domain.states import PullRequestState, Reason

BIAS, FAILED_BEFORE, MANY_TARGETS = "bias", "failed_before", "many_targets"
PRIOR = {BIAS: 2.2, FAILED_BEFORE: -1.0, MANY_TARGETS: -0.3}
"""Nine of ten pass; three of four that failed before; slightly fewer with many impacted targets."""


LEARNING_RATE = 0.1
"""A few dozen submissions of the same kind outweigh the prior."""
MAX_FEATURES = 500
MAX_RECENTLY_FAILED = 200
MAX_TARGET_FEATURES = 8
TEST_FAILURE_REASONS = frozenset({Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION})


def pass_probability(queue: Queue, submission: Submission) -> float:
    """The probability that it passes, before the results of its runs are considered."""
    model = queue.pass_rate_model
    return 1 / (1 + exp(-sum(_weight(model, feature) for feature in _features(model, submission))))


def update_pass_rate_model(queue: Queue, submission: Submission) -> Queue:
    """Only a pass or a test failure counts: submissions that were cancelled or merged by hand say
    nothing about tests."""
    passed = submission.state is PullRequestState.MERGED and submission.verified_by is not None
    if not passed and submission.reason not in TEST_FAILURE_REASONS:
        return queue
    model, error = queue.pass_rate_model, (1.0 if passed else 0.0) - pass_probability(queue, submission)
    updated = {feature: _weight(model, feature) + LEARNING_RATE * error for feature in _features(model, submission)}
    others = {feature: weight for feature, weight in model.weights.items() if feature not in updated}
    weights = dict([*others.items(), *updated.items()][-MAX_FEATURES:])
    failed = model.recently_failed if passed else (*model.recently_failed, submission.number)[-MAX_RECENTLY_FAILED:]
    return replace(queue, pass_rate_model=PassRateModel(weights, failed))


def _weight(model: PassRateModel, feature: str) -> float:
    return model.weights.get(feature, PRIOR.get(feature, 0.0))


def _features(model: PassRateModel, submission: Submission) -> Iterator[str]:
    yield BIAS
    if submission.pull_request.author:
        yield f"author {submission.pull_request.author}"
    if submission.number in model.recently_failed:
        yield FAILED_BEFORE
    impacted_targets = submission.impacted_targets
    if impacted_targets is None:
        return
    if impacted_targets.everything or len(impacted_targets.names) > MAX_TARGET_FEATURES:
        yield MANY_TARGETS
    else:
        yield from (f"target {name}" for name in sorted(impacted_targets.names))
