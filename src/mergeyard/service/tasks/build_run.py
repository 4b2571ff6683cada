"""Builds test branches: creates the commits of a run's members one by one and pushes the result.

A build can run twice (after a crash, or on two replicas), and commits created twice have different SHAs. So if the test
branch already exists on the Git host with the same contents, its commits are used instead of the new ones.
"""

from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import CheckState
from mergeyard.domain.tasks import BuildRun
from mergeyard.ports.forge import ChecksFrom, HostRefused
from mergeyard.ports.git import Conflict, GitError, MissingObject, OutputTooLargeError, PushRefused, RefUpdate, Stale
from mergeyard.ports.store import Store
from mergeyard.service.commit_messages import base_run_message, sanitize_line
from mergeyard.service.git_names import TEST_BRANCH_REF_PATTERN, branch_ref, name_test_branch
from mergeyard.service.repositories import RepositoryContext
from mergeyard.service.tasks import commit_builder
from mergeyard.service.tasks.test_branches import open_draft

TARGET_REFUSALS = (
    events.BuildRefusal.CONFLICTS_WITH_TARGET,
    events.BuildRefusal.NOTHING_TO_MERGE,
    events.BuildRefusal.ALREADY_CONTAINED,
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
        return (replace(pushed, head_checks=await _read_head_checks(context, store, task, pushed.steps)),)
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
        if isinstance(step, Conflict):
            return await _explain_conflict(context, task, builder, member, step)
        if refusal := await _find_reason_for_no_change(context, task, member, onto, step):
            return _refuse(task, member, refusal)
        if problem := await commit_builder.find_config_error(context, onto, step.commit):
            return _refuse(task, member, events.BuildRefusal.BREAKS_CONFIG, problem)
    except OutputTooLargeError:
        return _refuse(task, member, events.BuildRefusal.TOO_LARGE, commit_builder.OUTPUT_TOO_LARGE_MESSAGE)
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
    conflict: Conflict,
) -> events.RunBuildRefused:
    alone = await builder.build_step(member, task.base)
    if isinstance(alone, Conflict):
        return _refuse(task, member, events.BuildRefusal.CONFLICTS_WITH_TARGET, _describe_conflict(alone))
    stack = (*task.built_members, *task.members)
    ahead = stack[: stack.index(member)]
    blockers = [
        other.submission_id
        for other in ahead
        if isinstance(await context.mirror.merge(other.head, member.head), Conflict)
    ]
    refused = _refuse(task, member, events.BuildRefusal.CONFLICTS_WITH_STACK, _describe_conflict(conflict))
    return replace(refused, blockers=tuple(blockers))


async def _push_chain(
    context: RepositoryContext, task: BuildRun, run: Run, steps: tuple[Step, ...]
) -> events.RunBuilt | events.RunBuildRefused | events.RunStartRefused:
    ref = branch_ref(name_test_branch(run))
    outcome = await context.mirror.push(RefUpdate(ref, None, steps[-1].commit))
    if isinstance(outcome, PushRefused):
        refusal = f"The Git host refuses the test branch {name_test_branch(run)}: {outcome.detail}"
        if await _is_every_commit_refused(context, task, ref):
            return events.RunStartRefused(run=task.run, detail=refusal)
        culprit = await _find_culprit(context, task, ref, steps)
        if culprit is None:
            raise GitError(refusal)
        return _refuse(task, culprit, events.BuildRefusal.REFUSED, outcome.detail)
    if isinstance(outcome, Stale):
        return events.RunBuilt(run=task.run, steps=await _read_existing_steps(context, task, ref, steps))
    return events.RunBuilt(run=task.run, steps=steps)


async def _is_every_commit_refused(context: RepositoryContext, task: BuildRun, ref: str) -> bool:
    """Whether the Git host refuses even an empty commit of ours there: because of the name of the branch, our address,
    a missing signature. Then no pull request is the cause."""
    probe = (await _build_base_step(context, task)).commit
    if isinstance(await context.mirror.push(RefUpdate(ref, None, probe)), PushRefused):
        return True
    await context.mirror.push(RefUpdate(ref, probe, None))
    return False


async def _find_culprit(context: RepositoryContext, task: BuildRun, ref: str, steps: tuple[Step, ...]) -> Member | None:
    """Finds the first member whose commit the Git host refuses, by pushing the chain step by step. None if the host
    refuses nothing any longer."""
    pushed: Sha | None = None
    culprit: Member | None = None
    for member, step in zip(task.members, steps, strict=False):
        if isinstance(await context.mirror.push(RefUpdate(ref, pushed, step.commit)), PushRefused):
            culprit = member
            break
        pushed = step.commit
    if pushed is not None:
        await context.mirror.push(RefUpdate(ref, pushed, None))
    return culprit


async def _read_existing_steps(
    context: RepositoryContext, task: BuildRun, ref: str, expected: tuple[Step, ...]
) -> tuple[Step, ...]:
    """Returns the steps of the branch that exists on the Git host if they have the same trees and merged heads as
    `expected`. Otherwise someone else pushed to our branch: deletes it, and the task is tried again."""
    existing = (await context.mirror.fetch([ref])).get(ref)
    if existing is None:
        raise GitError(f"{ref} existed when it was pushed, but not when it was fetched.")
    steps = await _read_steps_up_to(context, task, existing)
    if steps is None or await _read_contents(context, steps) != await _read_contents(context, expected):
        await context.mirror.push(RefUpdate(ref, existing, None))
        raise GitError(f"{ref} had unexpected contents and was deleted.")
    return steps


async def _read_steps_up_to(context: RepositoryContext, task: BuildRun, tip: Sha) -> tuple[Step, ...] | None:
    if task.members:
        return await commit_builder.read_steps(context.mirror, task.onto, tip, task.members)
    base_commit = await context.mirror.read_commit(tip)
    return (Step(tip, task.onto, base_commit.tree),) if base_commit.parents == (task.onto,) else None


async def _read_contents(context: RepositoryContext, steps: tuple[Step, ...]) -> list[tuple[Sha, tuple[Sha, ...]]]:
    """The tree and the merged parents of every commit."""
    segments = [await context.mirror.first_parents(step.commit, down_to=step.parent) or () for step in steps]
    return [(commit.tree, commit.parents[1:]) for segment in segments for commit in segment]


async def _fetch_inputs(context: RepositoryContext, task: BuildRun) -> None:
    heads = (context.host.head_ref(member.number) for member in (*task.built_members, *task.members))
    await context.mirror.fetch([context.target_ref, TEST_BRANCH_REF_PATTERN, *heads])


def _refuse(task: BuildRun, member: Member, refusal: events.BuildRefusal, detail: str = "") -> events.RunBuildRefused:
    return events.RunBuildRefused(run=task.run, submission_id=member.submission_id, refusal=refusal, detail=detail)


def _describe_conflict(conflict: Conflict) -> str:
    return f"Conflicts in {', '.join(sanitize_line(path) for path in conflict.paths[:10])}"
