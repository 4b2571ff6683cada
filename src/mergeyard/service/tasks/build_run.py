"""Builds test branches: creates the commits of a run's members one by one and pushes the result.

A build can run twice (after a crash, or on two replicas), and commits created twice have different SHAs. So if the test
branch already exists on the Git host with the same contents, its commits are used instead of the new ones.
"""

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import assert_never

import structlog
from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import CheckState
from mergeyard.domain.tasks import BuildRun
from mergeyard.ports.forge import ChecksFrom, HostRefused
from mergeyard.ports.git import (
    Commit,
    Conflict,
    GitError,
    LimitExceededError,
    MissingObject,
    OutputTooLargeError,
    PushRefused,
    RefUpdate,
    RemoteUnavailable,
    Stale,
    TooManyPathsError,
)
from mergeyard.ports.store import Store
from mergeyard.service.commit_messages import base_run_message, merge_message, rebase_message
from mergeyard.service.git_names import (
    TEST_BRANCH_REF_PATTERN,
    branch_ref,
    name_test_branch,
    parse_head_trailer,
    parse_pull_request_trailer,
)
from mergeyard.service.repo_config import CONFIG_FILE, InvalidConfig, parse_config, read_config_file
from mergeyard.service.repositories import RepositoryContext
from mergeyard.service.tasks import commit_builder
from mergeyard.service.tasks.test_branches import open_draft

log = structlog.get_logger()

TARGET_REFUSALS = (
    events.BuildRefusal.CONFLICTS_WITH_TARGET,
    events.BuildRefusal.NOTHING_TO_MERGE,
    events.BuildRefusal.ALREADY_CONTAINED,
    events.BuildRefusal.REBASE_DIFFERS,
)


async def build_run(context: RepositoryContext, store: Store, task: BuildRun) -> tuple[events.Event, ...]:
    run = context.queue_actor.queue.runs.get(task.run)
    if run is None:
        return ()
    try:
        steps = await _build_chain(context, task)
    except MissingObject:
        await _fetch_inputs(context, task)
        try:
            steps = await _build_chain(context, task)
        except MissingObject:
            if not await context.has_commit(task.onto):
                return (events.BaseCommitMissing(run=task.run),)
            if not task.members:
                raise
            # The Git host no longer has a head, so it was replaced.
            return tuple(events.PullRequestDirty(number=member.number) for member in task.members)
    if isinstance(steps, events.RunBuildRefused):
        # A refusal against an old tip of the target branch is not final.
        if steps.refusal in TARGET_REFUSALS:
            tip = await context.fetch_target_tip()
            if tip != context.queue_actor.queue.target_branch.tip:
                return (events.TargetBranchDirty(),)
        return (steps,)
    pushed = await _push_chain(context, task, run, steps)
    if isinstance(pushed, events.RunBuilt):
        try:
            await open_draft(context, run)
        except HostRefused as refused:  # CI that runs for pull requests would never start
            return (events.RunStartRefused(run=task.run, detail=f"The Git host refuses the draft: {refused}"),)
        head_checks = await _read_head_checks(context, store, task, pushed.steps)
        statuses_ahead = await _read_statuses_ahead(context, task, pushed.steps)
        return (replace(pushed, head_checks=head_checks, statuses_ahead=statuses_ahead),)
    return (pushed,)


async def _read_head_checks(
    context: RepositoryContext, store: Store, task: BuildRun, steps: tuple[Step, ...]
) -> dict[str, CheckState] | None:
    """None unless the head has the tree of the test commit: only then its checks say something about this run."""
    if not task.read_head_checks or not task.members:
        return None
    head = task.members[0].head
    if await context.mirror.tree(head) != steps[-1].tree:
        return None
    if context.host.forge is not None and context.host.checks_from is ChecksFrom.HOST:
        statuses = await context.host.forge.statuses(context.repo, head, context.queue_actor.key.branch)
    else:
        statuses = await store.statuses(context.repo, head)
    return {status.context: status.check_state for status in statuses}


async def _read_statuses_ahead(context: RepositoryContext, task: BuildRun, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The last member can merge in one push with those ahead of it, so the file of the target branch does not decide
    alone. What the last member itself adds counts after its merge: it cannot choose its own checks."""
    if not task.members:
        return ()
    below = steps[-2].commit if len(steps) > 1 else task.onto
    if await context.mirror.has_same_file(task.base, below, CONFIG_FILE):
        return ()
    config = parse_config(await read_config_file(context.mirror, below))
    if isinstance(config, InvalidConfig):
        return ()
    return config.required_statuses


async def _build_chain(context: RepositoryContext, task: BuildRun) -> tuple[Step, ...] | events.RunBuildRefused:
    if not task.members:
        return (await _build_base_step(context, task),)
    builder = commit_builder.MergeCommitBuilder(context, task.merge_method, task.run, task.base)
    steps, onto = list[Step](), task.onto
    for member in task.members:
        step = await _build_step(context, task, builder, member, onto)
        if isinstance(step, events.RunBuildRefused):
            return step
        steps.append(step)
        onto = step.commit
    return tuple(steps)


async def _build_step(
    context: RepositoryContext, task: BuildRun, builder: commit_builder.MergeCommitBuilder, member: Member, onto: Sha
) -> Step | events.RunBuildRefused:
    try:
        if await commit_builder.contains_removed_commit(context, member.head, task.forbidden_commits):
            return _refuse(task, member, events.BuildRefusal.CONTAINS_REMOVED_COMMIT)
        if problems := await commit_builder.find_tree_problems(context, member.head, task.base):
            return _refuse(task, member, events.BuildRefusal.INVALID_TREE, problems)
        step = await builder.build_step(member, onto)
        if isinstance(step, commit_builder.PullRequestTooLarge):
            return _refuse(task, member, events.BuildRefusal.TOO_LARGE, step.message)
        if isinstance(step, Conflict | commit_builder.RebaseDiffers):
            return await _explain_conflict(context, task, builder, member, step)
        if refusal := await _find_reason_for_no_change(context, task, member, onto, step):
            return _refuse(task, member, refusal)
        if problem := await commit_builder.find_config_error(context, onto, step.commit):
            return _refuse(task, member, events.BuildRefusal.BREAKS_CONFIG, problem)
    except TooManyPathsError as error:
        return _refuse(task, member, events.BuildRefusal.TOO_LARGE, str(error))
    except OutputTooLargeError:
        return _refuse(task, member, events.BuildRefusal.TOO_LARGE, commit_builder.OUTPUT_TOO_LARGE_MESSAGE)
    except LimitExceededError as error:
        return await _explain_exceeded_limit(context, task, builder, member, onto, error)
    return step


async def _build_base_step(context: RepositoryContext, task: BuildRun) -> Step:
    """Creates an empty commit on the base: the base commit itself can carry statuses of earlier CI runs."""
    tree = await context.mirror.tree(task.onto)
    commit = await context.mirror.commit(tree, (task.onto,), base_run_message(task.run))
    return Step(commit, task.onto, tree)


async def _find_reason_for_no_change(
    context: RepositoryContext, task: BuildRun, member: Member, onto: Sha, step: Step
) -> events.BuildRefusal | None:
    """None unless the member changes nothing, even alone. Only a step without a change is compared with the base,
    because that costs a merge."""
    mirror = context.mirror
    if step.tree != await mirror.tree(onto):
        return None
    if await mirror.contains(task.base, member.head):
        return events.BuildRefusal.ALREADY_CONTAINED
    is_empty = await mirror.merge(task.base, member.head) == await mirror.tree(task.base)
    return events.BuildRefusal.NOTHING_TO_MERGE if is_empty else None


async def _explain_conflict(
    context: RepositoryContext,
    task: BuildRun,
    builder: commit_builder.MergeCommitBuilder,
    member: Member,
    conflict: Conflict | commit_builder.RebaseDiffers,
) -> events.RunBuildRefused:
    alone = await builder.build_step(member, task.base)
    if isinstance(alone, Conflict):
        return _refuse(task, member, events.BuildRefusal.CONFLICTS_WITH_TARGET, _describe_conflict(alone))
    if isinstance(alone, commit_builder.RebaseDiffers):
        return _refuse(task, member, events.BuildRefusal.REBASE_DIFFERS, alone.message)
    stack = (*task.built_members, *task.members)
    ahead = stack[: stack.index(member)]
    blockers = [
        other.submission_id
        for other in ahead
        if isinstance(await context.mirror.merge(other.head, member.head), Conflict)
    ]
    refused = _refuse(task, member, events.BuildRefusal.CONFLICTS_WITH_STACK, _describe_conflict(conflict))
    return replace(refused, blockers=tuple(blockers))


async def _explain_exceeded_limit(
    context: RepositoryContext,
    task: BuildRun,
    builder: commit_builder.MergeCommitBuilder,
    member: Member,
    onto: Sha,
    error: LimitExceededError,
) -> events.RunBuildRefused:
    """A pull request ahead can be the cause, for example with folders in which git looks for a renamed file: a member
    that merges alone waits until those ahead are gone."""
    log.warning("git_limit_exceeded", repo=str(context.repo), number=member.number, head=member.head, error=str(error))
    if onto != task.base:
        with suppress(LimitExceededError):
            await builder.build_step(member, task.base)
            return _refuse(task, member, events.BuildRefusal.CONFLICTS_WITH_STACK, f"{error}.")
    return _refuse(task, member, events.BuildRefusal.LIMIT_EXCEEDED, f"{error}.")


async def _push_chain(
    context: RepositoryContext, task: BuildRun, run: Run, steps: tuple[Step, ...]
) -> events.RunBuilt | events.RunBuildRefused | events.RunStartRefused:
    ref = branch_ref(name_test_branch(run))
    outcome = await context.mirror.push(RefUpdate(ref, None, steps[-1].commit))
    if isinstance(outcome, PushRefused):
        refusal = f"The Git host refuses the test branch {name_test_branch(run)}: {outcome.detail}"
        accepted = await _count_accepted_steps(context, ref, steps)
        if accepted == len(steps):
            raise RemoteUnavailable(refusal)  # and accepts it now
        if accepted or (task.members and await _accepts_any_message(context, task, ref, steps)):
            return _refuse(task, task.members[accepted], events.BuildRefusal.REFUSED, outcome.detail)
        return events.RunStartRefused(run=task.run, detail=refusal)
    if isinstance(outcome, Stale):
        return events.RunBuilt(run=task.run, steps=await _read_existing_steps(context, task, ref, steps))
    return events.RunBuilt(run=task.run, steps=steps)


async def _count_accepted_steps(context: RepositoryContext, ref: str, steps: tuple[Step, ...]) -> int:
    """How many steps, from the first one, the Git host accepts on a test branch."""
    for count, step in enumerate(steps):
        if not await _is_accepted(context, ref, step.commit):
            return count
    return len(steps)


async def _accepts_any_message(context: RepositoryContext, task: BuildRun, ref: str, steps: tuple[Step, ...]) -> bool:
    """Whether the Git host accepts any commit that changes nothing and has the form of ours. If not, no pull request is
    the cause, but the name of the branch, our address, a missing signature, or what all our messages have in common."""
    tree, parents = await context.mirror.tree(task.onto), [task.onto]
    if task.merge_method is MergeMethod.MERGE_COMMIT:
        parents += (await context.mirror.read_commit(task.onto)).parents[:1]
    async for message in _list_messages(context, task, steps):
        if await _is_accepted(context, ref, await context.mirror.commit(tree, parents, message)):
            return True
    return False


async def _is_accepted(context: RepositoryContext, ref: str, commit: Sha) -> bool:
    """Creates the test branch there, and deletes it: other rules can apply to a branch that exists."""
    if isinstance(await context.mirror.push(RefUpdate(ref, None, commit)), PushRefused):
        return False
    await context.mirror.push(RefUpdate(ref, commit, None))
    return True


NO_PULL_REQUEST = PullRequestNumber(2**31 - 1)
PLAIN_MESSAGE = "A change"
MAX_EARLIER_MERGES = 3
MAX_SEARCHED_COMMITS = 100


async def _list_messages(context: RepositoryContext, task: BuildRun, steps: tuple[Step, ...]) -> AsyncGenerator[str]:
    """Of the pull requests in this run, of one without anything special, and of the last ones that merged or are tested
    ahead: those can have what a rule requires, such as the key of a ticket."""
    for step in steps:
        yield (await context.mirror.read_commit(step.commit)).message
    plain = await context.mirror.commit(await context.mirror.tree(task.base), (task.base,), PLAIN_MESSAGE)
    examples = [(NO_PULL_REQUEST, await context.mirror.read_commit(plain))]
    for commit in await context.mirror.last_first_parents(task.onto, limit=MAX_SEARCHED_COMMITS):
        number = parse_pull_request_trailer(commit.message)
        if number is not None and len(examples) <= MAX_EARLIER_MERGES:
            examples.append((number, commit))
    for number, commit in examples:
        with suppress(MissingObject):
            yield await _rewrite_message(context, task, number, commit)


async def _rewrite_message(
    context: RepositoryContext, task: BuildRun, number: PullRequestNumber, commit: Commit
) -> str:
    """As this run would write it: the merge method or the template can have changed since."""
    subject = commit.message.partition("\n")[0]
    match task.merge_method:
        case MergeMethod.MERGE_COMMIT:
            return merge_message(number, subject.partition(": ")[2] or subject, task.run, context.host.number_prefix)
        case MergeMethod.REBASE:
            head = parse_head_trailer(commit.message) or commit.sha
            return rebase_message(number, (await context.mirror.read_commit(head)).message, task.run, head)
        case MergeMethod.SQUASH:
            branch = context.queue_actor.key.branch
            pull_request = PullRequest(number=number, head=commit.sha, base_branch=branch, title=subject)
            return (await commit_builder.write_squash(context, pull_request, task.run, task.base, task.onto))[0]
        case _:
            assert_never(task.merge_method)


async def _read_existing_steps(
    context: RepositoryContext, task: BuildRun, ref: str, expected: tuple[Step, ...]
) -> tuple[Step, ...]:
    """Returns the steps of the branch that exists on the Git host if its commits are those that we write, at another
    time. Otherwise someone else pushed to our branch: deletes it, and the task is tried again."""
    existing = (await context.mirror.fetch([ref])).get(ref)
    if existing is None:
        raise RemoteUnavailable(f"{ref} existed when it was pushed, but not when it was fetched.")
    steps = await _read_steps_up_to(context, task, existing)
    if steps is None or not await _are_our_commits(context, steps, expected):
        await context.mirror.push(RefUpdate(ref, existing, None))
        raise RemoteUnavailable(f"{ref} had unexpected contents and was deleted.")
    return steps


async def _read_steps_up_to(context: RepositoryContext, task: BuildRun, tip: Sha) -> tuple[Step, ...] | None:
    if task.members:
        return await commit_builder.read_steps(context.mirror, task.onto, tip, task.members)
    base_commit = await context.mirror.read_commit(tip)
    return (Step(tip, task.onto, base_commit.tree),) if base_commit.parents == (task.onto,) else None


async def _are_our_commits(context: RepositoryContext, steps: tuple[Step, ...], expected: tuple[Step, ...]) -> bool:
    """Writes the expected commits again at the time of the existing ones. The names are the same only if everything
    is: trees, merged heads, messages, people and signatures, which depend on nothing but these bytes and our key."""
    existing = await _list_commits(context, steps)
    ours = await _list_commits(context, expected)
    if len(existing) != len(ours):
        return False
    for found, written in zip(existing, ours, strict=True):
        if await _write_again(context, written, found) != found.sha:
            return False
    return True


async def _write_again(context: RepositoryContext, written: Commit, found: Commit) -> Sha | None:
    """Our commit at the place and time of the other one; None if that has a time that git does not accept."""
    parents = (*found.parents[:1], *written.parents[1:])
    date = found.committer.date
    author = written.author
    if author.date == written.committer.date:  # the author is the queue, at the time of the build
        author = replace(author, date=date)
    try:
        return await context.mirror.commit(written.tree, parents, written.message, author, date)
    except GitError:
        return None


async def _list_commits(context: RepositoryContext, steps: tuple[Step, ...]) -> list[Commit]:
    segments = [await context.mirror.first_parents(step.commit, down_to=step.parent) or () for step in steps]
    return [commit for segment in segments for commit in segment]


async def _fetch_inputs(context: RepositoryContext, task: BuildRun) -> None:
    heads = (context.host.head_ref(member.number) for member in (*task.built_members, *task.members))
    await context.mirror.fetch([context.target_ref, TEST_BRANCH_REF_PATTERN, *heads])


def _refuse(task: BuildRun, member: Member, refusal: events.BuildRefusal, detail: str = "") -> events.RunBuildRefused:
    return events.RunBuildRefused(run=task.run, submission_id=member.submission_id, refusal=refusal, detail=detail)


def _describe_conflict(conflict: Conflict | commit_builder.RebaseDiffers) -> str:
    if isinstance(conflict, commit_builder.RebaseDiffers):
        return conflict.message
    return f"Conflicts in {commit_builder.describe_paths(conflict)}"
