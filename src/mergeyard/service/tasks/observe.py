"""Reads what the engine asks for: the target branch, pull requests, and whether a head can be merged directly."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import DirectMergeCheck, PullRequest, Status
from mergeyard.domain.states import SATISFIED_CHECK_STATES
from mergeyard.domain.tasks import CheckDirectMerge, ReadPullRequest, ReadPullRequests, ReadTargetBranch
from mergeyard.ports.forge import ChecksFrom, UnexpectedHostResponse
from mergeyard.ports.git import MissingObject, OutputTooLargeError
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.repositories import RepositoryContext, read_required_statuses
from mergeyard.service.tasks import commit_builder

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
        restored_commits=await _find_restored(context, store, task, tip),
    )
    return (observed,)


async def _find_restored(context: RepositoryContext, store: Store, task: ReadTargetBranch, tip: Sha) -> frozenset[Sha]:
    """Removed commits that the target branch contains again. They were not in the known tip, so only commits since that
    tip are searched."""
    if not task.removed_commits or task.known_tip is None:
        return frozenset()
    try:
        return task.removed_commits & await commit_builder.list_added_commits(context, store, tip, task.known_tip)
    except (MissingObject, OutputTooLargeError):
        return frozenset([sha for sha in task.removed_commits if await context.mirror.contains(tip, sha)])


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


async def _read_or_mark_closed(
    context: RepositoryContext, reader: PullRequestReader, number: PullRequestNumber
) -> PullRequest | None:
    """A pull request that the Git host no longer has, or describes with invalid data, counts as closed."""
    try:
        pull_request = await reader.read_with_merge_check(context, number)
    except UnexpectedHostResponse as error:
        log.warning("pull_request_unreadable", repo=str(context.repo), number=number, error=str(error))
        pull_request = None
    submission = context.queue_actor.queue.submission_of(number)
    return (
        pull_request
        if pull_request is not None or submission is None
        else replace(submission.pull_request, is_open=False)
    )


async def check_direct_merge(
    context: RepositoryContext, store: Store, task: CheckDirectMerge
) -> tuple[events.Event, ...]:
    mirror, submission = context.mirror, context.queue_actor.queue.submissions.get(task.submission_id)
    if submission is None:
        return ()
    await context.fetch_head_if_missing(submission.number, task.head)
    tree = await mirror.tree(task.head)
    statuses = await _read_statuses(context, store, task.head)
    check = DirectMergeCheck(
        tip=task.tip,
        contains_tip=await mirror.contains(task.head, task.tip) and await _passes_build_checks(context, task),
        has_changes=tree != await mirror.tree(task.tip),
        contains_removed_commit=await _may_have_removed_commit(context, task),
        passed_statuses=frozenset(
            status.context for status in statuses if status.check_state in SATISFIED_CHECK_STATES
        ),
        commit=await commit_builder.create_direct_merge_commit(context, task.submission_id, task.head, task.tip),
        tree=tree,
    )
    return (
        events.DirectMergeChecked(
            submission_id=task.submission_id, direct_merge_check=check, forbidden_commits=task.forbidden_commits
        ),
    )


async def _passes_build_checks(context: RepositoryContext, task: CheckDirectMerge) -> bool:
    """False: no direct merge; building a run for the pull request then reports the problem."""
    return not (
        await commit_builder.find_tree_problems(context, task.head, task.tip)
        or await commit_builder.find_config_error(context, task.tip, task.head)
    )


async def _may_have_removed_commit(context: RepositoryContext, task: CheckDirectMerge) -> bool:
    """Also True if the head has too many commits to search: no direct merge, and building a run decides."""
    try:
        return await commit_builder.contains_removed_commit(context, task.head, task.forbidden_commits)
    except OutputTooLargeError:
        return True


async def _read_statuses(context: RepositoryContext, store: Store, commit: Sha) -> Sequence[Status]:
    if context.host.forge is not None and context.host.checks_from is ChecksFrom.HOST:
        return await context.host.forge.statuses(context.repo, commit, context.queue_actor.key.branch)
    return await store.statuses(context.repo, commit)
