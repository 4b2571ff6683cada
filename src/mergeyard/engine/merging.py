"""Chooses what lands next: the furthest batch that passed, with everything it is stacked on, in one update."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mergeyard.domain.config import Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import HeadBranchAccess, MovedHead, PullRequest
from mergeyard.domain.queue import Batch, Landing, LandingPhase, Queue
from mergeyard.domain.runs import HeadMove, Member, Run, Step
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import entries, run_validity


def choose_landing(queue: Queue, now: Instant) -> Queue:
    """One landing at a time. Until its intent is saved it locks no pull request and can be dropped."""
    landing = queue.landing
    if landing is not None and landing.is_intended:
        return queue
    if landing is None or not _is_landing_current(queue, landing):
        return _start_landing(queue, _furthest_landing(queue))
    if landing.pull_requests_read:
        return _intend_landing(queue, landing, now)
    return queue


def can_move_head(config: Config, pull_request: PullRequest) -> bool:
    return config.move_head_branches and pull_request.head_branch_access is HeadBranchAccess.MOVABLE


def fallback_of(config: Config, pull_request: PullRequest) -> HeadBranchFallback | None:
    """How the pull request merges because its head branch cannot be moved to the tested commit; None: this is not
    needed, or the head branch can be moved. If the settings changed, that is not known before the next read, at the
    latest the one before the landing."""
    has_other_commits = config.merge_method is not MergeMethod.MERGE_COMMIT
    is_needed = config.landing is LandingMethod.TESTED_COMMIT and has_other_commits and pull_request.is_merged_by_head
    is_unknown = config.move_head_branches and pull_request.head_branch_access is HeadBranchAccess.UNKNOWN
    is_possible = is_unknown or can_move_head(config, pull_request)
    return config.head_branch_fallback if is_needed and not is_possible else None


def needs_provider_merge(queue: Queue, members: Iterable[Member], run: Run | None = None) -> bool:
    """Whether the Git host has to merge one of them. A landing has one method, so it merges the others as well. A run
    keeps its methods when the settings change."""
    config = queue.config
    if run is not None:
        config = replace(config, merge_method=run.merge_method, landing=run.landing_method)
    submissions = (queue.submissions.get(member.submission_id) for member in members)
    fallbacks = (fallback_of(config, each.pull_request) for each in submissions if each is not None)
    return HeadBranchFallback.PROVIDER_MERGE in fallbacks


def _intend_landing(queue: Queue, landing: Landing, now: Instant) -> Queue:
    """Remembers in every submission where its head branch moves, so that this is never taken for a push."""
    moves = list[HeadMove]()
    for submission_id, move in _head_moves(queue, landing):
        moved = queue.submissions[submission_id].with_moved_head(MovedHead(move.commit, now))
        queue = entries.update_submission(queue, moved)
        moves.append(move)
    return replace(queue, landing=replace(landing, phase=LandingPhase.INTENDED, head_moves=tuple(moves)))


def _head_moves(queue: Queue, landing: Landing) -> Iterator[tuple[SubmissionId, HeadMove]]:
    """The head branches that move: of a merge commit the head is a parent, and the Git host moves none. A branch of two
    pull requests cannot be at both commits."""
    is_own_commit = queue.runs[landing.run].merge_method is not MergeMethod.MERGE_COMMIT
    if landing.landing_method is LandingMethod.PROVIDER_MERGE or not is_own_commit:
        return
    pull_requests = [queue.submissions[submission_id].pull_request for submission_id in landing.submission_ids]
    branches = Counter((each.head_repo, each.head_branch) for each in pull_requests)
    for member, step, pull_request in zip(landing.members, landing.steps, pull_requests, strict=True):
        fork, branch = pull_request.head_repo, pull_request.head_branch
        if can_move_head(queue.config, pull_request) and branches[fork, branch] == 1:
            yield member.submission_id, HeadMove(member.number, branch, member.head, step.commit, fork)


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
    """Where the Git host has to merge one pull request, those ahead of it that can land as tested do so first: a
    landing has one method."""
    if not _can_choose_landing(queue):
        return None
    landings = (_landing_of_batch(queue, batch) for batch in reversed(queue.active.batches))
    possible = (landing for landing in landings if landing is not None)
    furthest = next(possible, None)
    if furthest is None or furthest.landing_method is queue.config.landing:
        return furthest
    return next((each for each in possible if each.landing_method is LandingMethod.TESTED_COMMIT), furthest)


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
    steps = prefer_reused_steps(queue, members, steps, run.merge_method)
    return replace(landing, phase=LandingPhase.READING, steps=steps)


def prefer_reused_steps(
    queue: Queue, members: tuple[Member, ...], steps: tuple[Step, ...], merge_method: MergeMethod
) -> tuple[Step, ...]:
    """Of commits with the same parent and tree, land the one that later runs were built on."""
    for batch in queue.active.batches:
        for run in queue.runs_of(batch):
            if run.merge_method is not merge_method:
                continue
            for member, step in zip(run.prs_ahead, run.chain, strict=False):
                if member == members[-1] and step.is_interchangeable_with(steps[-1]):
                    return (*steps[:-1], step)
    return steps
