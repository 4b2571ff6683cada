"""Reads what the engine asks for: the target branch, pull requests and checks."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import HeadMove, Member
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.domain.tasks import ReadChecks, ReadPullRequest, ReadPullRequests, ReadTargetBranch
from mergeyard.domain.timestamps import MINUTE, SECOND, later
from mergeyard.engine import admission
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostUnavailable, UnexpectedHostResponse
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.check_sources import ForgeCheckPoller
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.repositories import RepositoryContext, read_required_statuses
from mergeyard.service.statuses import to_check_states
from mergeyard.service.tasks import commit_builder, head_branches

log = structlog.get_logger()


async def read_target_branch(
    context: RepositoryContext, store: Store, task: ReadTargetBranch
) -> tuple[events.Event, ...]:
    revision = context.queue_actor.queue.counters.revision
    tip = await context.fetch_target_tip()
    if tip is None:
        return (events.TargetBranchObserved(tip=None, observed_at_revision=revision),)
    observed = events.TargetBranchObserved(
        tip=tip,
        observed_at_revision=revision,
        required_statuses=await read_required_statuses(context, tip),
        removed_commits=await commit_builder.find_removed_commits(context, store, task.known_tip, tip),
    )
    return (observed,)


async def read_pull_request(
    context: RepositoryContext, reader: PullRequestReader, store: Store, task: ReadPullRequest
) -> tuple[events.Event, ...]:
    revision = context.queue_actor.queue.counters.revision
    pull_request = await _read_or_mark_closed(context, reader, task.number)
    if pull_request is None:
        return ()
    impacted_targets = await persistence.read_impacted_targets(
        store, context.queue_actor.id, pull_request.number, pull_request.head
    )
    return (
        events.PullRequestObserved(
            pull_request=pull_request, observed_at_revision=revision, impacted_targets=impacted_targets
        ),
    )


async def read_landing_pull_requests(
    context: RepositoryContext, reader: PullRequestReader, task: ReadPullRequests
) -> tuple[events.Event, ...]:
    revision = context.queue_actor.queue.counters.revision
    pull_requests = await asyncio.gather(*(_read_or_mark_closed(context, reader, number) for number in task.numbers))
    found = tuple(pull_request for pull_request in pull_requests if pull_request is not None)
    return (events.LandingPullRequestsRead(landing=task.landing, pull_requests=found, observed_at_revision=revision),)


MAX_READ_AGE_MS = 10 * SECOND
"""A merge relies on a read of its pull requests that began at most this long before."""
MAX_READS = 3
MAX_CHECKING_MS = MINUTE
CHECKING_INTERVAL_MS = SECOND


async def can_no_longer_merge(
    context: RepositoryContext, members: Sequence[Member], clock: Clock, moves: Sequence[HeadMove] = ()
) -> bool:
    """Reads pull requests whose landing was decided once more, right before they merge. An earlier attempt may have
    moved their head branches.

    GitLab checks a pull request again when its head branch moves, and until it has finished it does not show what the
    rules require. A landing for which this takes long is given up: the engine decides it again when GitLab has
    finished, and until then it locks no pull request."""
    commits = {move.number: move.commit for move in moves}
    late_reads, deadline = 0, later(clock.now(), MAX_CHECKING_MS)
    while late_reads < MAX_READS:
        began_at = clock.now()
        reads = (_can_no_longer_merge(context, member, commits.get(member.number)) for member in members)
        found = await asyncio.gather(*reads)
        if True in found or (None in found and began_at >= deadline):
            return True
        if None in found:
            await clock.sleep(CHECKING_INTERVAL_MS)
        elif began_at <= clock.now() <= began_at + MAX_READ_AGE_MS:
            return False
        else:
            late_reads += 1
    raise HostUnavailable("The Git host takes too long to show the pull requests that are about to merge.")


async def _can_no_longer_merge(context: RepositoryContext, member: Member, moved_to: Sha | None) -> bool | None:
    """None while the Git host checks it. A Git host can withdraw approvals because we moved the head branch: those that
    were given before count, unless a reviewer requests changes."""
    try:
        pull_request = await context.read_pull_request(member.number)
    except UnexpectedHostResponse:
        pull_request = None
    if pull_request is not None and pull_request.head == moved_to:
        requirements = (each for each in pull_request.requirements if each.reason is Reason.CHANGES_REQUESTED)
        pull_request = replace(pull_request, head=member.head, requirements=tuple(requirements))
    queue = context.queue_actor.queue
    if pull_request is None or admission.can_no_longer_merge(queue, member, pull_request):
        return True
    is_checking = pull_request.merged_into is None and pull_request.mergeability is Mergeability.CHECKING
    return None if is_checking and _must_show_rules(queue, member) else False


def _must_show_rules(queue: Queue, member: Member) -> bool:
    """Not for a forced pull request, nor where the Git host itself merges: it refuses what its rules forbid."""
    submission, landing = queue.submissions.get(member.submission_id), queue.landing
    is_forced = submission is not None and submission.forced
    return not is_forced and (landing is None or landing.landing_method is LandingMethod.TESTED_COMMIT)


async def read_checks(
    context: RepositoryContext, forge_checks: ForgeCheckPoller, store: Store, task: ReadChecks
) -> tuple[events.Event, ...]:
    queue = context.queue_actor.queue
    run, revision = queue.runs.get(task.run), queue.counters.revision
    if run is None:
        return ()
    await forge_checks.refresh_checks(context.queue_actor.key, run)
    checks = to_check_states(await store.statuses(context.repo, run.tip))
    return (events.ChecksObserved(run=run.id, checks=checks, observed_at_revision=revision),)


async def _read_or_mark_closed(
    context: RepositoryContext, reader: PullRequestReader, number: PullRequestNumber
) -> PullRequest | None:
    """A pull request that the Git host no longer has, or describes with invalid data, counts as closed."""
    submission, found = context.queue_actor.queue.submission_of(number), await _read_if_valid(context, reader, number)
    if submission is not None and found is not None:
        moved = found.head
        if await head_branches.undo_late_move(context, submission, found):
            found = await _read_if_valid(context, reader, number)
            if found is not None and found.head == moved:  # the Git host does not show the head of before yet
                found = _with_known_head(found, submission.pull_request)
    if submission is not None and found is None:
        return replace(submission.pull_request, is_open=False)
    return found


async def _read_if_valid(
    context: RepositoryContext, reader: PullRequestReader, number: PullRequestNumber
) -> PullRequest | None:
    try:
        return await reader.read_with_merge_check(context, number)
    except UnexpectedHostResponse as error:
        log.warning("pull_request_unreadable", repo=str(context.repo), number=number, error=str(error))
        return None


def _with_known_head(found: PullRequest, known: PullRequest) -> PullRequest:
    """With what git found out about the known head, and what else the Git host shows now."""
    return replace(
        known,
        base_branch=found.base_branch,
        is_open=found.is_open,
        draft=found.draft,
        requirements=found.requirements,
        merged_into=found.merged_into,
    )
