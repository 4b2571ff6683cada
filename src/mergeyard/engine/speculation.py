"""Proposes which stacks to test next: every batch on all batches ahead of it, or with `best_first` the likeliest.

A candidate assumes for every batch ahead whether it merges or leaves. If the assumption is wrong, the run is wasted: it
counts only when the whole assumption has come true.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Speculation
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import entries, run_validity
from mergeyard.engine.pass_rate_model import pass_probability
from mergeyard.engine.run_validity import memoize_on

PASSED_BEFORE_PROBABILITY = 0.98
"""A pull request that was part of a passed run can still fail on other stacks."""
FLAKE_PROBABILITY = 0.02
"""How often a run of good pull requests fails."""
MAX_SUSPECTS = 8
"""A joint distribution covers at most this many batches, those nearest to the failed run. Its size is 2^n."""

BatchIds = frozenset[BatchId]
Outcomes = dict[BatchIds, float]
"""The batches that leave, with the probability that exactly these do."""


class OutcomeDistribution(Struct, frozen=True, eq=False):
    """Batches whose outcomes depend on each other and on no other batch."""

    batches: BatchIds
    outcomes: Outcomes

    def marginal(self, batch_ids: BatchIds) -> "OutcomeDistribution":
        """The distribution over these batches only, summed over the outcomes of the others."""
        if self.batches <= batch_ids:
            return self
        outcomes = Outcomes()
        for leaving, probability in self.outcomes.items():
            outcomes[leaving & batch_ids] = outcomes.get(leaving & batch_ids, 0.0) + probability
        return OutcomeDistribution(self.batches & batch_ids, outcomes)


OutcomeByBatch = Mapping[BatchId, OutcomeDistribution]


@memoize_on("config", "active", "runs", "submissions", "pass_rate_model")
def predict_outcomes(queue: Queue) -> OutcomeByBatch:
    probabilities = _pass_probabilities(queue)
    failed_stacks = [
        _suspects_of(queue, probabilities, run)
        for run in _active_batch_runs(queue)
        if run_validity.has_failed_finally(queue, run)
    ]
    predictions = {batch: _independent_distribution(batch, probability) for batch, probability in probabilities.items()}
    for suspects in _group_suspects(tuple(probabilities), failed_stacks):
        predictions.update(dict.fromkeys(suspects, _joint_distribution(suspects, probabilities, failed_stacks)))
    return predictions


def marginal_distributions(batches: tuple[Batch, ...], predictions: OutcomeByBatch) -> Iterator[OutcomeDistribution]:
    """The outcomes of these batches, as independent distributions."""
    batch_ids = frozenset(batch.id for batch in batches)
    return (
        distribution.marginal(batch_ids) for distribution in dict.fromkeys(predictions[batch.id] for batch in batches)
    )


def run_probability(queue: Queue, batch: Batch, run: Run, predictions: OutcomeByBatch) -> float:
    """The probability that the batches ahead end as this run assumes."""
    ahead = run_validity.batches_ahead(queue, batch)
    excluded = excluded_batch_ids(run, ahead)
    parts = marginal_distributions(ahead, predictions)
    return prod(distribution.outcomes.get(excluded & distribution.batches, 0.0) for distribution in parts)


def excluded_batch_ids(run: Run, batches: tuple[Batch, ...]) -> BatchIds:
    return frozenset(batch.id for batch in batches if not run.excluded_submission_ids.isdisjoint(batch.submission_ids))


def _pass_probabilities(queue: Queue) -> dict[BatchId, float]:
    """The pass probability of each batch by itself, in order."""
    passed = frozenset(
        member.submission_id
        for run in _active_batch_runs(queue)
        if run.status is RunStatus.SUCCEEDED
        for member in run.stack
    )
    return {
        batch.id: prod(_pass_probability_of(queue, submission_id, passed) for submission_id in batch.submission_ids)
        for batch in queue.active.batches
    }


def _pass_probability_of(queue: Queue, submission_id: SubmissionId, passed: frozenset[SubmissionId]) -> float:
    return (
        PASSED_BEFORE_PROBABILITY
        if submission_id in passed
        else pass_probability(queue, queue.submissions[submission_id])
    )


def _active_batch_runs(queue: Queue) -> Iterator[Run]:
    return (run for batch in queue.active.batches for run in queue.runs_of(batch))


def _suspects_of(queue: Queue, probabilities: dict[BatchId, float], run: Run) -> BatchIds:
    """The nearest batches in its stack, without those that passed before unless no others are left."""
    submission_ids = {member.submission_id for member in run.stack}
    included = [batch.id for batch in queue.active.batches if not submission_ids.isdisjoint(batch.submission_ids)]
    uncertain = [batch for batch in included if probabilities[batch] < PASSED_BEFORE_PROBABILITY**2]
    return frozenset((uncertain or included)[-MAX_SUSPECTS:])


def _group_suspects(order: tuple[BatchId, ...], failed_stacks: list[BatchIds]) -> list[tuple[BatchId, ...]]:
    groups = dict[BatchId, BatchIds]()
    for stack in failed_stacks:
        connected = stack.union(*(groups.get(batch, frozenset()) for batch in stack))
        groups.update(dict.fromkeys(connected, connected))
    bound = [sorted(group, key=order.index) for group in dict.fromkeys(groups.values())]
    return [tuple(group[-MAX_SUSPECTS:]) for group in bound]


def _independent_distribution(batch: BatchId, probability: float) -> OutcomeDistribution:
    alone = frozenset({batch})
    return OutcomeDistribution(alone, {frozenset(): probability, alone: 1 - probability})


def _joint_distribution(
    suspects: tuple[BatchId, ...], probabilities: Mapping[BatchId, float], failed_stacks: Iterable[BatchIds]
) -> OutcomeDistribution:
    outcomes: Outcomes = {frozenset(): 1.0}
    for batch in suspects:
        merges = {leaving: weight * probabilities[batch] for leaving, weight in outcomes.items()}
        leaves = {leaving | {batch}: weight * (1 - probabilities[batch]) for leaving, weight in outcomes.items()}
        outcomes = merges | leaves
    for stack in failed_stacks:
        if stack <= frozenset(suspects):
            outcomes = {
                leaving: weight * (FLAKE_PROBABILITY if leaving.isdisjoint(stack) else 1.0)
                for leaving, weight in outcomes.items()
            }
    total = sum(outcomes.values())
    return OutcomeDistribution(frozenset(suspects), {leaving: weight / total for leaving, weight in outcomes.items()})


MIN_START_PROBABILITY = 0.3
"""Lower: more runs are wasted. Higher: batches behind a failure wait longer."""
CANCEL_BELOW_PROBABILITY = 0.02
"""A less likely run gives its slot back. It is far below the start threshold, so that runs do not flap."""


class Candidate(Struct, frozen=True):
    probability: float
    batch: Batch
    excluded_submission_ids: frozenset[SubmissionId]


def propose(queue: Queue) -> list[Candidate]:
    """The stacks to test next, best first. What is proposed decides which runs start, and never what a run means: a run
    counts only if all that it assumed has come true (`run_validity.invalidation_reason`)."""
    if queue.config.speculation is Speculation.BEST_FIRST:
        return _likeliest_candidates(queue)
    return [Candidate(1.0, batch, frozenset()) for batch in run_validity.unlocked_batches(queue) if not batch.runs]


def _likeliest_candidates(queue: Queue) -> list[Candidate]:
    """Stacks without a run that are likely enough, the likeliest first, ties in queue order."""
    predictions = predict_outcomes(queue)
    open_candidates = (
        candidate
        for batch in run_validity.unlocked_batches(queue)
        for candidate in _candidates_of_batch(queue, batch, predictions)
    )
    return sorted(open_candidates, key=lambda candidate: -candidate.probability)


@memoize_on("config", "active", "runs", "submissions", "pass_rate_model", "target_branch", "landing")
def deferred_batches(queue: Queue) -> tuple[Batch, ...]:
    """Active batches for which no stack is likely enough until more is known about the batches ahead."""
    if queue.config.speculation is not Speculation.BEST_FIRST:
        return ()
    candidate_batches = {candidate.batch.id for candidate in _likeliest_candidates(queue)}
    return tuple(batch for batch in queue.active.batches if not batch.runs and batch.id not in candidate_batches)


def cancel_unlikely_runs(queue: Queue, _: Instant) -> Queue:
    """Cancels alternative runs that became unlikely, for example because an excluded batch passed. The deciding run
    stays."""
    with_alternatives = [batch for batch in run_validity.unlocked_batches(queue) if len(batch.runs) > 1]
    if not with_alternatives or queue.config.speculation is not Speculation.BEST_FIRST:
        return queue
    predictions = predict_outcomes(queue)
    for batch in with_alternatives:
        others = (
            run for run in run_validity.active_runs(queue, batch.runs) if run != run_validity.current_run(queue, batch)
        )
        unlikely = {
            run.id for run in others if run_probability(queue, batch, run, predictions) < CANCEL_BELOW_PROBABILITY
        }
        if unlikely:
            rest = tuple(run for run in batch.runs if run not in unlikely)
            queue = entries.replace_batch(queue, replace(batch, runs=rest))
    return queue


def _candidates_of_batch(queue: Queue, batch: Batch, predictions: OutcomeByBatch) -> Iterator[Candidate]:
    if run_validity.has_passed_or_is_cleared(queue, batch):
        return
    ahead = run_validity.batches_ahead(queue, batch)
    tested_exclusions = {excluded_batch_ids(run, ahead) for run in queue.runs_of(batch)}
    for leaving, probability in _likely_outcomes(tuple(marginal_distributions(ahead, predictions)), frozenset(), 1.0):
        excluded = tuple(other for other in ahead if other.id in leaving)
        if leaving not in tested_exclusions and _can_be_excluded(excluded, (*ahead, batch)):
            yield Candidate(
                probability,
                batch,
                frozenset(submission_id for other in excluded for submission_id in other.submission_ids),
            )


def _likely_outcomes(
    parts: tuple[OutcomeDistribution, ...], leaving: BatchIds, probability: float
) -> Iterator[tuple[BatchIds, float]]:
    """The outcomes exclude each other, so only a few can be likely."""
    if probability < MIN_START_PROBABILITY:
        return
    if not parts:
        yield leaving, probability
        return
    *others, last = parts
    for also_leaving, outcome_probability in last.outcomes.items():
        yield from _likely_outcomes(tuple(others), leaving | also_leaving, probability * outcome_probability)


def _can_be_excluded(excluded: tuple[Batch, ...], batches: tuple[Batch, ...]) -> bool:
    """A batch cannot be excluded while a batch that contains its commits is included."""
    contained = frozenset[SubmissionId]().union(*(batch.prerequisites for batch in batches if batch not in excluded))
    return contained.isdisjoint(submission_id for batch in excluded for submission_id in batch.submission_ids)
