"""Lands a tested chain: pushes the target branch by compare-and-swap, or finds out that this is already done.

The run's test branch is the permission to land: one atomic push moves the target branch and deletes the test branch,
each only from its expected value. So a push that arrives late or twice has no effect.

With the methods squash and rebase the same push moves the head branch of every pull request to its commit, only from
the tested head: the Git host then shows the pull request as merged, and a push of the author makes the whole push fail.
Where one push cannot do both, the head branches are moved first, and moved back if nothing lands.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import assert_never

import structlog
from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import HeadMove, Step
from mergeyard.domain.tasks import Land, RebaseLanding
from mergeyard.ports import git
from mergeyard.ports.external import Clock
from mergeyard.service import landed_heads
from mergeyard.service.git_names import TEST_BRANCH_REF_PATTERN, branch_ref, name_test_branch
from mergeyard.service.repo_config import CONFIG_FILE
from mergeyard.service.repositories import RepositoryContext, mark_merged
from mergeyard.service.tasks import head_branches
from mergeyard.service.tasks.observe import can_no_longer_merge
from mergeyard.service.tasks.test_branches import close_draft

log = structlog.get_logger()

Steps = tuple[Step, ...]


async def rebase_landing(context: RepositoryContext, task: RebaseLanding) -> tuple[events.Event, ...]:
    """Another replica may have built the commits: then they are fetched. If the test branch is gone as well, or there
    are too many changed paths to compare, the landing is refused, so that the engine tests again."""
    landing = context.queue_actor.queue.landing
    if landing is None or landing.number != task.landing:
        return ()  # another replica has decided about it
    method = context.queue_actor.queue.runs[landing.run].merge_method
    steps = None
    with suppress(git.MissingObject, git.LimitExceededError):
        try:
            steps = await _rebase_whole_changes(context, task, method)
        except git.MissingObject:
            heads = [context.host.head_ref(member.number) for member in task.members]
            await context.mirror.fetch([TEST_BRANCH_REF_PATTERN, context.target_ref, *heads])
            steps = await _rebase_whole_changes(context, task, method)
    if steps is None:
        return (events.LandingRebaseRefused(landing=task.landing),)
    return (events.LandingRebased(landing=task.landing, steps=steps),)


async def _rebase_whole_changes(context: RepositoryContext, task: RebaseLanding, method: MergeMethod) -> Steps | None:
    """None also if the target branch had a part of a change during the test, and lost it since: the tested commit has
    only the rest, and the paths of the two differ."""
    steps = await _rebase_steps(context, task.tested_steps, task.onto)
    if steps is None:
        return None
    for member, step in zip(task.members, steps, strict=True):
        if not await landed_heads.is_whole(context, task.onto, method, member.head, step):
            return None
    return steps


async def _rebase_steps(context: RepositoryContext, tested: Iterable[Step], onto: Sha) -> Steps | None:
    steps = list[Step]()
    for step_to_rebase in tested:
        step = await _rebase_step(context, step_to_rebase, onto)
        if step is None:
            return None
        steps.append(step)
        onto = step.commit
    return tuple(steps)


async def _rebase_step(context: RepositoryContext, tested: Step, onto: Sha) -> Step | None:
    """Rebases one step commit by commit: with merge method `rebase` a step can have several. A path that one of them
    changes and another one restores counts as changed, because each of them gets the tested content of its paths."""
    commits = await context.mirror.first_parents(tested.commit, down_to=tested.parent)
    if not commits:
        return None
    paths = [await context.mirror.changed_paths(commit.parents[0], commit.sha) for commit in commits]
    if not frozenset[bytes]().union(*paths).isdisjoint(await context.mirror.changed_paths(tested.parent, onto)):
        return None
    tip, tree = onto, await context.mirror.tree(onto)
    for commit, changed in zip(commits, paths, strict=True):
        new_tree = await context.mirror.replace_paths(tip, commit.sha, changed)
        if isinstance(new_tree, git.Conflict):
            return None
        tree, parents = new_tree, (tip, *commit.parents[1:])
        tip = await context.mirror.commit(tree, parents, commit.message, commit.author, commit.committer.date)
    return Step(tip, onto, tree)


async def _recover_commits(context: RepositoryContext, task: Land) -> Land:
    """Returns the task with commits that exist. Two runs can create different commits with the same parent and tree;
    the one that this run's test branch points to cannot be lost. A rebased landing can be rebased again."""
    tested_commit = task.steps[-1].commit
    if await context.has_commit(tested_commit):
        return task
    heads = [context.host.head_ref(member.number) for member in task.members]
    await context.mirror.fetch([TEST_BRANCH_REF_PATTERN, *heads])
    if await context.has_commit(tested_commit):
        return task
    recreated = await _recreate(context, task)
    if await context.has_commit(tested_commit):
        return task
    steps = await _use_test_branch_tip(context, task.test_branch_tip, task.steps) or recreated or ()
    has_same_trees = [step.tree for step in steps] == [step.tree for step in task.steps]
    if not has_same_trees:
        return task
    # After another crash no replica would know these commits, to move the heads back: no head is moved.
    return replace(task, steps=steps, head_moves=())


async def _use_test_branch_tip(context: RepositoryContext, tested_tip: Sha, steps: Steps) -> Steps | None:
    if not await context.has_commit(tested_tip):
        return None
    branch_tip = await context.mirror.read_commit(tested_tip)
    last_step = replace(steps[-1], commit=branch_tip.sha, tree=branch_tip.tree)
    return (*steps[:-1], last_step) if branch_tip.parents[:1] == (last_step.parent,) else None


async def _recreate(context: RepositoryContext, task: Land) -> Steps | None:
    """Creates the commits of a rebased landing again."""
    landing = context.queue_actor.queue.landing
    if landing is None or landing.number != task.landing or not landing.rebased:
        return None
    with suppress(git.MissingObject):
        return await _rebase_steps(context, landing.tested_steps, task.expected_tip)
    return None


MAX_PUSH_ATTEMPTS = 3
IsReadOutdated = Callable[[], bool]
"""Whether the pull requests were read too long ago, for example before a crash. Called right before each push."""


async def land(
    context: RepositoryContext, task: Land, clock: Clock, is_read_outdated: IsReadOutdated
) -> tuple[events.Event, ...]:
    run = context.queue_actor.queue.runs.get(task.run)
    if run is None:
        return ()  # another replica has finished the landing
    branch = branch_ref(name_test_branch(run))
    for _ in range(MAX_PUSH_ATTEMPTS):
        outcome = await _attempt(context, task, branch, clock, is_read_outdated)
        if outcome is not None:
            if not any(isinstance(event, events.LandingSucceeded) for event in outcome):
                await head_branches.move_back(context, task.head_moves, clock)
            return outcome
    raise git.RemoteUnavailable("The target branch has the expected commit, but the push fails. Check the Git host.")


async def _attempt(
    context: RepositoryContext, task: Land, branch: str, clock: Clock, is_read_outdated: IsReadOutdated
) -> tuple[events.Event, ...] | None:
    """Reads the refs first and pushes only if nothing has landed. Our push deletes the test branch, so while that
    branch exists, wherever it points, nothing has landed. None: the refs changed during the push, read them again."""
    tip, permission = await _fetch_refs(context, branch)
    if finished := await _finish_if_landed(context, tip, task):
        return finished
    if permission is None:
        # No push of ours can succeed any more: what the target branch has now is final.
        tip, _ = await _fetch_refs(context, branch)
        return await _finish_if_landed(context, tip, task) or (events.LandingOutcomeUnknown(landing=task.landing),)
    if permission != task.test_branch_tip:
        return (events.LandingMissed(landing=task.landing, test_branch_moved=tip == task.expected_tip),)
    if tip != task.expected_tip:
        return await _withdraw_permission(context, task, branch)
    task = await _recover_commits(context, task)
    new = task.steps[-1].commit
    if not await context.has_commit(new):
        raise git.RemoteUnavailable("The tested commits exist neither here nor on the Git host.")
    if not await context.mirror.contains(new, task.expected_tip):
        return await _withdraw_permission(context, task, branch)
    await _close_drafts(context, task)
    recent_moves = head_branches.select_recent(context, task.head_moves, clock)
    if is_read_outdated() and await can_no_longer_merge(context, task.members, clock, recent_moves):
        return await _withdraw_permission(context, task, branch)
    if moved_first := [move for move in task.head_moves if head_branches.is_moved_first(context, move)]:
        began_at = clock.now()
        if failed := await head_branches.move_first(context, moved_first, clock):
            return await _withdraw_permission(context, task, branch, failed)
        recent_moves = moved_first if head_branches.is_recent(began_at, clock) else ()
        if is_read_outdated() and await can_no_longer_merge(context, task.members, clock, recent_moves):
            return await _withdraw_permission(context, task, branch)
        if pushed := await head_branches.find_pushed(context, moved_first):
            return await _withdraw_permission(context, task, branch, head_branches.FailedMoves(pushed=tuple(pushed)))
    updates = [
        git.RefUpdate(context.target_ref, task.expected_tip, new),
        git.RefUpdate(branch, task.test_branch_tip, None),
    ]
    moves = [move for move in task.head_moves if move not in moved_first]
    outcome = await _push_with_heads(context, updates, moves)
    match outcome:
        case git.Pushed():  # final, even if the target branch is rewritten right after the push
            return (*await _finish_landing(context, task), events.TargetBranchDirty())
        case git.PushRefused():
            return (events.LandingRefused(landing=task.landing, detail=outcome.detail),)
        case git.Stale():
            pushed = await head_branches.find_pushed(context, moves)
            failed = head_branches.FailedMoves(pushed=tuple(pushed))
            return await _withdraw_permission(context, task, branch, failed) if pushed else None
        case _:
            assert_never(outcome)


async def _push_with_heads(
    context: RepositoryContext, updates: Sequence[git.RefUpdate], moves: Sequence[HeadMove]
) -> git.PushOutcome:
    """Head branches that the Git host refuses to move stay where they are."""
    outcome = await context.mirror.push(*updates, *map(head_branches.to_update, moves))
    refused = set(outcome.refs) if isinstance(outcome, git.PushRefused) else set[str]()
    if not refused or not refused.issubset(branch_ref(move.branch) for move in moves):
        return outcome
    log.warning("head_branches_not_moved", repo=str(context.repo), refs=sorted(refused))
    return await _push_with_heads(context, updates, [move for move in moves if branch_ref(move.branch) not in refused])


async def _fetch_refs(context: RepositoryContext, branch: str) -> tuple[Sha | None, Sha | None]:
    """The tips of the target branch and of the test branch."""
    refs = await context.mirror.fetch([context.target_ref, branch])
    return refs.get(context.target_ref), refs.get(branch)


async def _find_landed(context: RepositoryContext, tip: Sha | None, task: Land) -> Land | None:
    """Returns the task with the commits that landed, or None. Those are the decided ones or, if this replica lost them,
    the recovered ones."""
    if tip is None:
        return None
    if await context.mirror.contains(tip, task.steps[-1].commit):
        return task
    recovered = await _recover_commits(context, task)
    has_landed = recovered is not task and await context.mirror.contains(tip, recovered.steps[-1].commit)
    return recovered if has_landed else None


async def _finish_if_landed(context: RepositoryContext, tip: Sha | None, task: Land) -> tuple[events.Event, ...]:
    landed = await _find_landed(context, tip, task)
    return () if landed is None else await _finish_landing(context, landed)


async def _withdraw_permission(
    context: RepositoryContext, task: Land, branch: str, failed: head_branches.FailedMoves | None = None
) -> tuple[events.Event, ...]:
    """Withdraws the permission, then reads the target branch once more, because a push of ours may still be in flight.

    The test branch is moved, not deleted: after a crash, a moved branch means that this task gave up and nothing
    landed. Where a rule of the Git host forbids to move it, it is deleted: after a crash, the outcome is then unknown.
    """
    tip, _ = await _fetch_refs(context, branch)
    moved = await context.mirror.push(git.RefUpdate(branch, task.test_branch_tip, tip))
    is_deleted = isinstance(moved, git.PushRefused)
    if is_deleted:
        await context.mirror.push(git.RefUpdate(branch, task.test_branch_tip, None))
    tip, permission = await _fetch_refs(context, branch)
    if permission == task.test_branch_tip:
        raise git.RemoteRefused("The test branch cannot be moved or deleted. Check the branch rules of the Git host.")
    failed = failed or head_branches.FailedMoves()
    refused = tuple(move.number for move in failed.refused)
    missed = events.LandingMissed(
        landing=task.landing, test_branch_moved=is_deleted or bool(refused), refused_heads=refused
    )
    dirty = (events.PullRequestDirty(number=move.number) for move in failed.pushed)
    return await _finish_if_landed(context, tip, task) or (missed, *dirty)


async def _close_drafts(context: RepositoryContext, task: Land) -> None:
    """Before the push: a Git host shows a draft as merged when its commit is on the target branch."""
    commits = {step.commit for step in task.steps}
    for run in context.queue_actor.queue.runs.values():
        if run.pushed and (run.id == task.run or (run.chain and run.tip in commits)):
            await close_draft(context, run)


async def _finish_landing(context: RepositoryContext, task: Land) -> tuple[events.Event, ...]:
    await mark_merged(context, task.members, task.steps)
    steps = [replace(step, tree=await context.mirror.tree(step.commit)) for step in task.steps]
    succeeded = events.LandingSucceeded(landing=task.landing, steps=tuple(steps))
    if await context.mirror.has_same_file(task.expected_tip, task.steps[-1].commit, CONFIG_FILE):
        return (succeeded,)
    return (succeeded, events.TargetBranchDirty())  # the file can change the required checks
