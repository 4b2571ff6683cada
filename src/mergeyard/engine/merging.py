"""Chooses what lands next: the furthest batch that passed, with everything it is stacked on, in one update."""

from msgspec.structs import replace

from mergeyard.domain.queue import Batch, Landing, LandingPhase, Queue
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import run_validity


def choose_landing(queue: Queue, _: Instant) -> Queue:
    """One landing at a time. Until its intent is saved it locks no pull request and can be dropped."""
    landing = queue.landing
    if landing is not None and landing.is_intended:
        return queue
    if landing is None or not _is_landing_current(queue, landing):
        return _start_landing(queue, _furthest_landing(queue))
    if landing.pull_requests_read:
        return replace(queue, landing=replace(landing, phase=LandingPhase.INTENDED))
    return queue


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
    batch = next((batch for batch in queue.active.batches if landing.run in batch.runs), None)
    current = None if batch is None else _landing_of_batch(queue, batch)
    return current is not None and current.members == landing.members and current.expected_tip == landing.expected_tip


def _furthest_landing(queue: Queue) -> Landing | None:
    if not _can_choose_landing(queue):
        return None
    landings = (_landing_of_batch(queue, batch) for batch in reversed(queue.active.batches))
    return next((landing for landing in landings if landing is not None), None)


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
