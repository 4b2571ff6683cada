"""What an action on a pull request would cost, how the pull request would merge, and with which words.

For the cost the engine decides on the action, and nothing of the decision is stored.
"""

import asyncio
from collections import defaultdict
from enum import StrEnum

import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import DEFAULT_PRIORITY, Config, HeadBranchFallback, LandingMethod, MergeMethod, Mode
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import HeadBranchAccess, ImpactedTargets, PullRequest
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Run
from mergeyard.domain.states import Mergeability, PullRequestState, Refusal, RunStatus
from mergeyard.domain.timestamps import SECOND, Instant, later
from mergeyard.engine import merging, observations
from mergeyard.engine.decide import decide
from mergeyard.ports.forge import RequestPurpose, requests_for
from mergeyard.ports.git import Conflict, LimitExceededError, MissingObject
from mergeyard.service import errors
from mergeyard.service.commit_messages import MAX_MESSAGE_CHARS, merge_message, sanitize_line
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories, RepositoryContext
from mergeyard.service.tasks.commit_builder import (
    MAX_REBASE_COMMITS,
    MergeCommitBuilder,
    PullRequestTooLarge,
    RebaseDiffers,
    write_squash,
)


class Action(StrEnum):
    SUBMIT = "submit"
    RESTART = "restart"
    CANCEL = "cancel"
    PRIORITY = "priority"


class StoppedRun(Struct, frozen=True):
    run: Run
    elapsed_ms: int
    numbers: tuple[PullRequestNumber, ...]
    """The pull requests that it tests."""


class ActionPreview(Struct, frozen=True):
    stopped: tuple[StoppedRun, ...] = ()
    """The running test runs that the action stops."""
    delayed: tuple[PullRequestNumber, ...] = ()
    """The other pull requests that are tested again."""
    is_upper_bound: bool = False
    """The impacted targets are not known yet: the action can stop fewer runs."""

    @property
    def elapsed_ms(self) -> int:
        """The CI time that is lost."""
        return sum(each.elapsed_ms for each in self.stopped)


class MergesBy(StrEnum):
    TESTED_COMMIT = "tested_commit"
    PROVIDER_MERGE = "provider_merge"
    CLOSE = "close"
    """The tested commit is pushed, and the pull request is closed."""


class MergePreview(Struct, frozen=True, kw_only=True):
    head: Sha
    merge_method: MergeMethod
    merges_by: MergesBy
    explanation: str
    """How the pull request merges and, if its head branch cannot be moved, why and what to do about it."""
    messages: tuple[str, ...]
    """Of the commits that it becomes, oldest first."""


log = structlog.get_logger()

UNKNOWN_RUN = "(the test run)"
"""In the trailer of a message for which no test run was started yet."""


PREVIEW_COUNTS_MS = 5 * SECOND
MAX_CACHED_PREVIEWS = 100
MAX_COSTLY_HEADS = 1000


class CachedPreview(Struct, frozen=True):
    decisive: object
    """What of the queue the preview depends on."""
    read_at: Instant
    preview: MergePreview


class Previews:
    def __init__(self, registry: QueueRegistry, repositories: Repositories, reader: PullRequestReader) -> None:
        self._registry = registry
        self._repositories = repositories
        self._reader = reader
        self._cached: dict[tuple[QueueKey, PullRequestNumber], CachedPreview] = {}
        self._locks = defaultdict[Repo, asyncio.Lock](asyncio.Lock)
        self._host_locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._costly_heads = dict[tuple[Repo, Sha], str]()
        """The heads for which git exceeded a limit here. Users who can only read must not make git try again."""

    async def preview_merge(self, key: QueueKey, number: PullRequestNumber) -> MergePreview:
        """Reads the pull request from the Git host, so it can be one that was not submitted. Users who can only read
        can ask for this: so a Git host is asked for one pull request at a time, git works on one preview of a
        repository at a time, and an answer counts for some seconds."""
        queue_actor, clock = await self._registry.get(key), self._registry.clock
        async with self._locks[key.repo]:
            queue, cached = queue_actor.queue, self._cached.get((key, number))
            found_at, run = clock.now(), find_run(queue, number)
            decisive = (queue.config, None if run is None else (run.id, run.landing_method, run.chain))
            if cached and cached.decisive == decisive and found_at < later(cached.read_at, PREVIEW_COUNTS_MS):
                return cached.preview
            preview = await self._read_merge_preview(key, number)
            self._cached.pop((key, number), None)
            if len(self._cached) >= MAX_CACHED_PREVIEWS:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key, number] = CachedPreview(decisive, clock.now(), preview)
            return preview

    async def _read_merge_preview(self, key: QueueKey, number: PullRequestNumber) -> MergePreview:
        context = await self._repositories.open_context(await self._registry.get(key))
        config = context.queue_actor.queue.config
        async with self._host_locks[key.repo.host]:
            with requests_for(RequestPurpose.DISPLAY):
                pull_request = await self._reader.read(context, number)
        if pull_request is None:
            raise errors.pull_request_not_found(key, number)
        if submission := context.queue_actor.queue.submission_of(number):
            pull_request = observations.apply_refusal(submission, pull_request)
        if not pull_request.is_open:
            refusal = Refusal.PR_ALREADY_MERGED if pull_request.merged_into else Refusal.PR_CLOSED
            raise errors.pull_request_refused(refusal, number)
        tip = await context.fetch_target_tip()
        if tip is None:
            raise RequestRefused(Code.BRANCH_NOT_FOUND, f"{key.repo} has no branch {key.branch}: push it first.")
        run = find_run(context.queue_actor.queue, number, pull_request.head)
        merges_by, explanation = explain_merge(config, pull_request, run)
        messages = () if merges_by is MergesBy.PROVIDER_MERGE else await _read_messages(context, pull_request, run)
        problem = _describe_other_base(key, pull_request)
        if not messages and not problem:
            messages, problem = await self._write_messages(context, pull_request, run, tip, merges_by)
        return MergePreview(
            head=pull_request.head,
            merge_method=context.merge_method_of(None if run is None else run.id),
            merges_by=merges_by,
            explanation=problem or explanation,
            messages=() if problem else messages,
        )

    async def _write_messages(
        self, context: RepositoryContext, pull_request: PullRequest, run: Run | None, tip: Sha, merges_by: MergesBy
    ) -> tuple[tuple[str, ...], str]:
        """One attempt per head: only a submission gets a second one."""
        costly = context.repo, pull_request.head
        if costly not in self._costly_heads:
            try:
                await context.fetch_head_if_missing(pull_request.number, pull_request.head)
                return await _write_messages(context, pull_request, run, tip, merges_by)
            except LimitExceededError as error:
                log.warning("git_limit_exceeded", repo=str(context.repo), number=pull_request.number, error=str(error))
                if len(self._costly_heads) >= MAX_COSTLY_HEADS:
                    self._costly_heads.pop(next(iter(self._costly_heads)))
                self._costly_heads[costly] = str(error)
        return (), f"The queue would refuse it: {self._costly_heads[costly]}. Split it into smaller pull requests."

    async def preview(
        self, key: QueueKey, number: PullRequestNumber, action: Action, priority: int | None = None
    ) -> ActionPreview:
        queue_actor = await self._registry.get(key)
        return preview_action(queue_actor.queue, number, action, priority, self._registry.clock.now())


def preview_action(
    queue: Queue, number: PullRequestNumber, action: Action, priority: int | None, now: Instant
) -> ActionPreview:
    decision = decide(queue, [_build_event(queue, number, action, priority)], now)
    active_after = {run.id for run in decision.queue.runs.values() if run.is_active}
    stopped = tuple(
        StoppedRun(run, now - run.started_at, tuple(member.number for member in run.tested_members))
        for run in queue.runs_in_progress
        if run.id not in active_after and run.started_at is not None
    )
    delayed = (
        entry.number
        for entry in decision.journal
        if isinstance(entry, PullRequestChanged)
        and entry.to is PullRequestState.PENDING
        and entry.source is not PullRequestState.NOT_READY
        and entry.number != number
    )
    is_unknown = action is Action.SUBMIT and queue.submission_of(number) is None
    is_upper_bound = is_unknown and queue.mode is Mode.PARALLEL
    return ActionPreview(stopped, tuple(dict.fromkeys(delayed)), is_upper_bound)


def _build_event(queue: Queue, number: PullRequestNumber, action: Action, priority: int | None) -> e.Event:
    match action:
        case Action.RESTART:
            return e.RestartRequested(number=number)
        case Action.CANCEL:
            return e.CancelRequested(number=number)
        case Action.PRIORITY:
            return e.PriorityRequested(number=number, priority=DEFAULT_PRIORITY if priority is None else priority)
        case Action.SUBMIT:
            return _build_submission(queue, number, priority)


def _build_submission(queue: Queue, number: PullRequestNumber, priority: int | None) -> e.PullRequestSubmitted:
    """Of a pull request that the queue does not hold nothing is known yet: assumes that it is ready and impacts all
    targets, so that no cost is missed."""
    existing = queue.submission_of(number)
    assumed = PullRequest(
        number=number,
        head=Sha("0" * 40),
        base_branch=queue.target_branch.name,
        mergeability=Mergeability.MERGEABLE,
    )
    return e.PullRequestSubmitted(
        pull_request=assumed if existing is None else existing.pull_request,
        observed_at_revision=queue.counters.revision,
        merge_checked=True,
        priority=priority,
        impacted_targets=ImpactedTargets(everything=True) if existing is None else existing.impacted_targets,
    )


def find_run(queue: Queue, number: PullRequestNumber, head: Sha | None = None) -> Run | None:
    """The run that tests the pull request now, or tested it, with this head if one is given."""
    submission = queue.submission_of(number)
    run = None if submission is None or submission.run is None else queue.runs.get(submission.run)
    return run if run is not None and _can_merge(run, number, head) else None


def _can_merge(run: Run, number: PullRequestNumber, head: Sha | None) -> bool:
    """Whether its commits can still be the ones that merge: a run that is repeated gets the current settings."""
    is_stopped = run.restart_requested or run.invalidated is not None
    if is_stopped or not (run.is_active or run.status is RunStatus.SUCCEEDED):
        return False
    return any(each.number == number and head in (None, each.head) for each in run.stack)


def _describe_other_base(key: QueueKey, pull_request: PullRequest) -> str:
    """Empty if the pull request merges into the branch of the queue."""
    if pull_request.base_branch == key.branch:
        return ""
    base = sanitize_line(pull_request.base_branch)
    return f"This queue does not merge it: its base branch is {base}. Change its base branch to {key.branch} first."


async def _read_messages(context: RepositoryContext, pull_request: PullRequest, run: Run | None) -> tuple[str, ...]:
    """Those of the commits that are tested already; empty if there are none."""
    steps = () if run is None else zip(run.stack, run.chain, strict=False)
    step = next((step for member, step in steps if member.number == pull_request.number), None)
    try:
        commits = step and await context.mirror.first_parents(step.commit, down_to=step.parent)
    except MissingObject:  # another replica has them
        commits = ()
    return tuple(commit.message for commit in commits or ())


async def _write_messages(
    context: RepositoryContext, pull_request: PullRequest, run: Run | None, tip: Sha, merges_by: MergesBy
) -> tuple[tuple[str, ...], str]:
    """Those that the queue would write now, or why it would not. For a rebase the queue makes the commits as for a test
    run, but does not push them. A Git host that rebases keeps the messages as they are."""
    number, head, mirror = pull_request.number, pull_request.head, context.mirror
    run_id = RunId(UNKNOWN_RUN) if run is None else run.id
    match context.merge_method_of(None if run is None else run.id):
        case MergeMethod.MERGE_COMMIT:
            return (merge_message(number, pull_request.title, run_id, context.host.number_prefix),), ""
        case MergeMethod.SQUASH:
            message, _ = await write_squash(context, pull_request, run_id, tip, tip)
            return (message,), ""
        case MergeMethod.REBASE:
            builder = MergeCommitBuilder(context, MergeMethod.REBASE, run_id, tip, pull_request)
            step = await builder.build_step(Member(SubmissionId(0), number, head), tip)
            if isinstance(step, Conflict):
                branch = context.queue_actor.key.branch
                return (), f"It has conflicts with {branch}: resolve them, then push."
            if isinstance(step, PullRequestTooLarge):
                return (), f"The queue would refuse it: {step.message} Split it into smaller pull requests."
            if isinstance(step, RebaseDiffers):
                advice = "Rebase the branch yourself or squash its commits, then push."
                return (), f"The rebase gives other files than the merge of the pull request. {step.message} {advice}"
            if merges_by is MergesBy.PROVIDER_MERGE and context.host.forge is not None:
                commits = await mirror.commits(head, without=[tip], limit=MAX_REBASE_COMMITS)
                return tuple(each.message[:MAX_MESSAGE_CHARS] for each in commits if len(each.parents) < 2), ""
            commits = await mirror.first_parents(step.commit, down_to=step.parent) or ()
            return tuple(commit.message for commit in commits), ""


HOST_MERGES = "the Git host merges the pull request, and the queue compares the result with the tested commit."
TESTED_TOGETHER = "It is tested together with a pull request that the Git host has to merge"
BRANCH_PROBLEMS = {
    HeadBranchAccess.IN_FORK: (
        "The head branch is in a fork that the queue cannot push to",
        "The author of the pull request can allow edits by maintainers to change this.",
    ),
    HeadBranchAccess.PROTECTED: (
        "A rule of the Git host protects the head branch, so the queue does not move it",
        "An administrator of the repository can change the rule.",
    ),
    HeadBranchAccess.SHARED: (
        "The head branch is the default branch, or the head branch of another pull request",
        "Use a head branch for this pull request alone to change this.",
    ),
    HeadBranchAccess.NOT_MOVED: (
        "The Git host would no longer show the changes of the pull request if the queue moved its head branch",
        "No action is needed.",
    ),
    HeadBranchAccess.GONE: (
        "The Git host has no head branch with the head of the pull request",
        "Restore the head branch to change this.",
    ),
}
"""Why a head branch cannot be moved, and what to do."""
SETTING_OFF = (
    "The setting moveHeadBranches is off",
    "An administrator can turn it on to change this.",
)


def explain_merge(config: Config, pull_request: PullRequest, run: Run | None = None) -> tuple[MergesBy, str]:
    """How the pull request merges if its tests pass. `run` is the one that tests it, or tested it."""
    if run is not None and not _can_merge(run, pull_request.number, pull_request.head):
        run = None
    by_host = (config.landing if run is None else run.landing_method) is LandingMethod.PROVIDER_MERGE
    if by_host and config.landing is LandingMethod.PROVIDER_MERGE:
        return MergesBy.PROVIDER_MERGE, f"{HOST_MERGES[0].upper()}{HOST_MERGES[1:]}"
    merge_method = config.merge_method if run is None else run.merge_method
    config = replace(config, merge_method=merge_method, landing=LandingMethod.TESTED_COMMIT)
    fallback = merging.fallback_of(config, pull_request)
    if fallback is None and by_host:
        is_alone = run is None or len(run.stack) == 1
        reason = "Its test run keeps the landing provider_merge" if is_alone else TESTED_TOGETHER
        return MergesBy.PROVIDER_MERGE, f"{reason}, so {HOST_MERGES}"
    if fallback is None:
        return MergesBy.TESTED_COMMIT, f"The queue pushes the tested commit{_describe_sign(config, pull_request)}."
    reason, advice = BRANCH_PROBLEMS[pull_request.head_branch_access] if config.move_head_branches else SETTING_OFF
    if by_host or fallback is HeadBranchFallback.PROVIDER_MERGE:
        return MergesBy.PROVIDER_MERGE, f"{reason}, so {HOST_MERGES} {advice}"
    then = "the queue pushes the tested commit and closes the pull request with a link to it."
    return MergesBy.CLOSE, f"{reason}, so {then} {advice}"


def _describe_sign(config: Config, pull_request: PullRequest) -> str:
    """By what the Git host shows that the pull request is merged."""
    if config.merge_method is MergeMethod.MERGE_COMMIT:
        return ", which contains the commits of the pull request"
    can_move = merging.can_move_head(config, pull_request)
    if can_move or pull_request.is_merged_by_head:
        place = f" in {pull_request.head_repo}" if pull_request.head_repo else ""
        condition = "" if can_move else ", if the Git host allows it"
        return f" and moves the head branch {pull_request.head_branch}{place} to it{condition}"
    return " and reports the merge to the Git host"
