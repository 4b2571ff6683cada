"""Chooses what lands next: the furthest batch that passed, with everything it is stacked on, in one update."""

from msgspec.structs import replace

from mergeyard.domain.config import DirectMergeMode
from mergeyard.domain.pull_requests import DirectMergeCheck, Submission
from mergeyard.domain.queue import Batch, Landing, LandingPhase, Queue
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import entries, lanes, priority, run_lifecycle, run_validity


def choose_direct_merge_candidate(queue: Queue, now: Instant) -> Queue:
    """Chooses the submission to check, or one whose check passed. Waiting submissions start only when there is none."""
    if queue.direct_merge_candidate is not None and run_validity.is_locked_by_landing(
        queue, queue.direct_merge_candidate
    ):
        return queue
    candidate = _find_direct_merge_candidate(queue, now)
    submission_id = None if candidate is None else candidate.id
    return (
        queue
        if submission_id == queue.direct_merge_candidate
        else replace(discard_direct_merge_check(queue), direct_merge_candidate=submission_id)
    )


def discard_direct_merge_check(queue: Queue) -> Queue:
    """A passed check can be outdated when the submission is chosen again, so it is discarded. A failed one is kept: the
    submission takes the normal path."""
    previous = None if queue.direct_merge_candidate is None else queue.submissions.get(queue.direct_merge_candidate)
    if (
        previous is None
        or previous.direct_merge_check is None
        or not _passes_direct_merge_check(queue, previous.direct_merge_check)
    ):
        return queue
    return entries.update_submission(queue, replace(previous, direct_merge_check=None))


def _find_direct_merge_candidate(queue: Queue, now: Instant) -> Submission | None:
    if queue.config.direct_merge_mode is DirectMergeMode.OFF or queue.state is not QueueState.RUNNING:
        return None
    first = next(priority.waiting_in_order(queue, now), None)
    if first is None or not _is_lane_empty(queue, first) or lanes.contained_submission_ids(queue, (first.id,)):
        return None
    return first if needs_direct_merge_check(queue, first) or can_merge_directly(queue, first) else None


def needs_direct_merge_check(queue: Queue, submission: Submission) -> bool:
    return submission.direct_merge_check is None or submission.direct_merge_check.tip != queue.target_branch.tip


def can_merge_directly(queue: Queue, submission: Submission) -> bool:
    check = submission.direct_merge_check
    return check is not None and check.tip == queue.target_branch.tip and _passes_direct_merge_check(queue, check)


def _passes_direct_merge_check(queue: Queue, check: DirectMergeCheck) -> bool:
    if not check.contains_tip or check.contains_removed_commit or not check.has_changes:
        return False
    required = run_validity.required_statuses(queue).statuses
    return bool(required) and check.passed_statuses.issuperset(required)


def _is_lane_empty(queue: Queue, submission: Submission) -> bool:
    impacted_targets = lanes.impacted_targets_of(queue, submission)
    others = (*queue.active.batches, *queue.bisections)
    return not any(other.impacted_targets.overlaps(impacted_targets) for other in others)


def choose_landing(queue: Queue, _: Instant) -> Queue:
    """One landing at a time. Until its intent is saved it locks no pull request and can be dropped."""
    landing = queue.landing
    if landing is not None and landing.is_intended:
        return queue
    if landing is None or not _is_landing_current(queue, landing):
        return _start_landing(queue, _furthest_landing(queue))
    if landing.pull_requests_read:
        return replace(queue, landing=replace(landing, phase=LandingPhase.INTENDED))
    return _enlarge(queue, landing)


def _enlarge(queue: Queue, landing: Landing) -> Queue:
    """If more batches pass while pull requests are read, all of them land in one update. Only once: a larger landing is
    read again completely, and if batches pass faster than that, nothing would ever land."""
    furthest = None if landing.enlarged else _furthest_landing(queue)
    if furthest is None or not set(furthest.submission_ids) > set(landing.submission_ids):
        return queue
    return _start_landing(queue, replace(furthest, enlarged=True))


def can_land(queue: Queue, batch: Batch) -> bool:
    ahead = run_validity.batches_ahead(queue, batch)
    return run_validity.has_passed(queue, batch) and all(
        run_validity.has_passed_or_is_cleared(queue, other) for other in ahead
    )


def _can_choose_landing(queue: Queue) -> bool:
    """While the target branch must be read again, its recorded tip may be wrong, so nothing lands."""
    return not queue.is_paused and not queue.target_branch.refresh_requested


def _is_landing_current(queue: Queue, landing: Landing) -> bool:
    if not _can_choose_landing(queue):
        return False
    if landing.run is None:
        current = _direct_landing(queue)
    else:
        batch = next((batch for batch in queue.active.batches if landing.run in batch.runs), None)
        current = None if batch is None else _landing_of_batch(queue, batch)
    return current is not None and current.members == landing.members and current.expected_tip == landing.expected_tip


def _furthest_landing(queue: Queue) -> Landing | None:
    if not _can_choose_landing(queue):
        return None
    landings = (_landing_of_batch(queue, batch) for batch in reversed(queue.active.batches))
    return next((landing for landing in landings if landing is not None), None) or _direct_landing(queue)


def _start_landing(queue: Queue, landing: Landing | None) -> Queue:
    if landing is None:
        return queue if queue.landing is None else replace(queue, landing=None)
    count = queue.counters.landings + 1
    counters = replace(queue.counters, landings=count)
    return replace(queue, counters=counters, landing=replace(landing, number=count))


def _landing_of_batch(queue: Queue, batch: Batch) -> Landing | None:
    run, tip = run_validity.passed_run(queue, batch), queue.target_branch.tip
    if run is None or tip is None or not can_land(queue, batch):
        return None
    members = run_validity.unlanded_members(queue, run.stack)
    steps = tuple(step for member, step in zip(run.stack, run.chain, strict=True) if member in members)
    landing = Landing(
        number=0,
        phase=LandingPhase.REBASING,
        run=run.id,
        members=members,
        expected_tip=tip,
        base=run.base,
        tested_steps=steps,
        landing_method=run.landing_method,
        test_branch_tip=run.tip,
    )
    if not run_validity.can_land_unchanged(queue.target_branch, run):
        return replace(landing, rebased=True)
    return replace(landing, phase=LandingPhase.READING, steps=prefer_reused_steps(queue, members, steps))


def prefer_reused_steps(queue: Queue, members: tuple[Member, ...], steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Of commits with the same parent and tree, land the one that later runs were built on."""
    for batch in queue.active.batches:
        for run in queue.runs_of(batch):
            for member, step in zip(run.prs_ahead, run.chain, strict=False):
                if member == members[-1] and step.is_interchangeable_with(steps[-1]):
                    return (*steps[:-1], step)
    return steps


def _direct_landing(queue: Queue) -> Landing | None:
    candidate = None if queue.direct_merge_candidate is None else queue.submissions[queue.direct_merge_candidate]
    if candidate is None or candidate.direct_merge_check is None or not can_merge_directly(queue, candidate):
        return None
    step = Step(
        candidate.direct_merge_check.commit, candidate.direct_merge_check.tip, candidate.direct_merge_check.tree
    )
    return Landing(
        number=0,
        phase=LandingPhase.READING,
        run=None,
        members=run_lifecycle.stack_members(queue, (candidate.id,)),
        expected_tip=candidate.direct_merge_check.tip,
        base=candidate.direct_merge_check.tip,
        tested_steps=(step,),
        steps=(step,),
        landing_method=queue.config.landing,
    )
