"""Reads what the engine asks for: the target branch, pull requests and checks."""

import asyncio

import structlog
from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.tasks import ReadChecks, ReadPullRequest, ReadPullRequests, ReadTargetBranch
from mergeyard.ports.forge import UnexpectedHostResponse
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.check_sources import ForgeCheckPoller
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.repositories import RepositoryContext, read_required_statuses
from mergeyard.service.statuses import to_check_states
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


async def read_checks(
    context: RepositoryContext, forge_checks: ForgeCheckPoller, store: Store, task: ReadChecks
) -> tuple[events.Event, ...]:
    queue = context.queue_actor.queue
    run, revision = queue.runs.get(task.run), queue.counters.revision
    if run is None:
        return ()
    await forge_checks.refresh_checks(context.queue_actor.key, run.tip)
    checks = to_check_states(await store.statuses(context.repo, run.tip))
    return (events.ChecksObserved(run=run.id, checks=checks, observed_at_revision=revision),)


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
    if pull_request is None and submission is not None:
        return replace(submission.pull_request, is_open=False)
    return pull_request
