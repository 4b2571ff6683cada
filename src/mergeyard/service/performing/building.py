"""Builds test branches: merges the members of a run one by one, and pushes what comes of it.

The branch that is there already is the answer, whoever built it: a build may be repeated after a crash, and
commits made twice are two different commits.
"""

from msgspec.structs import replace

from mergeyard.domain.events import BuildRefusal, Event, GroundLost, PullTouched, RunBuilt, RunRefused, TargetTouched
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.tasks import BuildRun
from mergeyard.ports.git import Conflict, GitTrouble, MissingObject, OutputTooLargeError, PushRefused, RefUpdate, Stale
from mergeyard.service import wording
from mergeyard.service.naming_branches import TEST_BRANCHES, branch_ref, test_branch
from mergeyard.service.performing.drafting import open_draft
from mergeyard.service.performing.removed import holds_removed_commit
from mergeyard.service.performing.stepping import TOO_MUCH_TO_READ, Stepper, TooLarge, steps_of
from mergeyard.service.repository_config import FILE, Broken, parse, read_file
from mergeyard.service.site import Site

BY_THE_TARGET = (BuildRefusal.CONFLICTS_WITH_TARGET, BuildRefusal.NOTHING_TO_MERGE, BuildRefusal.ALREADY_CONTAINED)


async def build(site: Site, task: BuildRun) -> tuple[Event, ...]:
    run = site.keeper.queue.runs.get(task.run)
    if run is None:
        return ()
    try:
        steps = await _chain(site, task)
    except MissingObject:
        await _fetch_all(site, task)
        try:
            steps = await _chain(site, task)
        except MissingObject as error:
            return _ask_about_members(task, error) if await site.has(task.onto) else (GroundLost(run=task.run),)
    if isinstance(steps, RunRefused):
        outrun = steps.refusal in BY_THE_TARGET and await _has_moved_on(site)
        return (TargetTouched(),) if outrun else (steps,)
    pushed = await _push(site, task, run, steps)
    if isinstance(pushed, RunBuilt):
        await open_draft(site, run)
    return (pushed,)


async def _has_moved_on(site: Site) -> bool:
    """A forge may have judged it upon a newer target than the one that we know."""
    tip = await site.tip()
    return tip != site.keeper.queue.target.tip


async def _chain(site: Site, task: BuildRun) -> tuple[Step, ...] | RunRefused:
    if not task.members:
        return (await _bare_step(site, task),)
    stepper = Stepper(site.mirror, task.method, task.run, task.base)
    steps, onto = list[Step](), task.onto
    for member in task.members:
        try:
            step = await _step(site, task, stepper, member, onto)
        except OutputTooLargeError:
            step = replace(_refuse(task, member, BuildRefusal.TOO_LARGE), words=TOO_MUCH_TO_READ)
        if isinstance(step, RunRefused):
            return step
        steps.append(step)
        onto = step.commit
    return tuple(steps)


async def _step(site: Site, task: BuildRun, stepper: Stepper, member: Member, onto: Sha) -> Step | RunRefused:
    if await holds_removed_commit(site, member.head, task.forbidden):
        return _refuse(task, member, BuildRefusal.CONTAINS_REMOVED_COMMIT)
    problems = await tree_problems(site, member.head, task.base)
    if problems:
        return replace(_refuse(task, member, BuildRefusal.INVALID_TREE), words=problems)
    step = await stepper.step(member, site.title_of(member), onto)
    if isinstance(step, TooLarge):
        return replace(_refuse(task, member, BuildRefusal.TOO_LARGE), words=step.words)
    refusal = await _refusal(site, task, member, onto, step)
    if isinstance(step, Conflict) or refusal is not None:
        return refusal or _refuse(task, member, BuildRefusal.CONFLICTS_WITH_STACK)
    broken = await config_error(site, onto, step.commit)
    if broken:
        return replace(_refuse(task, member, BuildRefusal.BREAKS_CONFIG), words=broken)
    return step


async def tree_problems(site: Site, head: Sha, base: Sha) -> str:
    """What the base has itself is no fault of the head: every folder that it changes there has it too."""
    found = await site.mirror.tree_problems(head, without=base)
    if not found:
        return ""
    known = await site.mirror.tree_problems(await site.mirror.tree(base), without=None)
    return "; ".join(wording.harmless(problem) for problem in found if problem not in known)


async def config_error(site: Site, before: Sha, after: Sha) -> str:
    """What is wrong with `.mergeyard.toml` in a commit that changes it: landed, it would close the queue for all."""
    if await site.mirror.has_same_file(before, after, FILE):
        return ""
    config = parse(await read_file(site.mirror, after))
    return config.words if isinstance(config, Broken) else ""


async def _bare_step(site: Site, task: BuildRun) -> Step:
    """A commit of its own that changes nothing: statuses on the target's commit itself may be others' old ones."""
    tree = await site.mirror.tree(task.onto)
    commit = await site.mirror.commit(tree, (task.onto,), wording.bare_message(task.run))
    return Step(commit, task.onto, tree)


async def _refusal(site: Site, task: BuildRun, member: Member, onto: Sha, step: Step | Conflict) -> RunRefused | None:
    """Whether it is the member's own fault. Only what looks wrong is compared with the base, which costs a merge."""
    if isinstance(step, Conflict):
        return await _explain_conflict(site, task, member, step)
    if step.tree != await site.mirror.tree(onto):
        return None
    if await site.mirror.holds(task.base, member.head):
        return _refuse(task, member, BuildRefusal.ALREADY_CONTAINED)
    if await site.mirror.merge(task.base, member.head) == await site.mirror.tree(task.base):
        return _refuse(task, member, BuildRefusal.NOTHING_TO_MERGE)
    return None


async def _explain_conflict(site: Site, task: BuildRun, member: Member, conflict: Conflict) -> RunRefused:
    alone = await Stepper(site.mirror, task.method, task.run, task.base).step(member, "", task.base)
    if isinstance(alone, Conflict):
        return replace(_refuse(task, member, BuildRefusal.CONFLICTS_WITH_TARGET), words=_conflict_words(alone))
    stack = (*task.beneath, *task.members)
    ahead = stack[: stack.index(member)]
    blockers = [
        other.ticket for other in ahead if isinstance(await site.mirror.merge(other.head, member.head), Conflict)
    ]
    refused = _refuse(task, member, BuildRefusal.CONFLICTS_WITH_STACK)
    return replace(refused, blockers=tuple(blockers), words=_conflict_words(conflict))


async def _push(site: Site, task: BuildRun, run: Run, steps: tuple[Step, ...]) -> RunBuilt | RunRefused:
    ref = branch_ref(test_branch(run))
    outcome = await site.mirror.push(RefUpdate(ref, None, steps[-1].commit))
    if isinstance(outcome, PushRefused):
        culprit = await _culprit(site, task, ref, steps)
        if culprit is None:
            raise GitTrouble(f"the host refuses the test branch {ref}: {outcome.words}")
        return replace(_refuse(task, culprit, BuildRefusal.REFUSED), words=outcome.words)
    if isinstance(outcome, Stale):
        return RunBuilt(run=task.run, steps=await _steps_that_are_there(site, task, ref, steps))
    return RunBuilt(run=task.run, steps=steps)


async def _culprit(site: Site, task: BuildRun, ref: str, steps: tuple[Step, ...]) -> Member | None:
    """The first that the host will not have upon those beneath; None when it would not have even those."""
    if isinstance(await site.mirror.push(RefUpdate(ref, None, task.onto)), PushRefused):
        return None
    pushed, culprit = task.onto, None
    for member, step in zip(task.members, steps, strict=False):
        if isinstance(await site.mirror.push(RefUpdate(ref, pushed, step.commit)), PushRefused):
            culprit = member
            break
        pushed = step.commit
    await site.mirror.push(RefUpdate(ref, pushed, None))
    return culprit


async def _steps_that_are_there(site: Site, task: BuildRun, ref: str, own: tuple[Step, ...]) -> tuple[Step, ...]:
    """Ours, made at another time, or those of somebody who pushed where nobody else should: only the same contents,
    brought by the same heads, are the same."""
    there = (await site.mirror.fetch([ref])).get(ref)
    if there is None:
        raise GitTrouble(f"{ref} was there and is gone")
    steps = await _steps_up_to(site, task, there)
    if steps is None or await _brought(site, steps) != await _brought(site, own):
        await site.mirror.push(RefUpdate(ref, there, None))
        raise GitTrouble(f"{ref} held something else and was removed")
    return steps


async def _steps_up_to(site: Site, task: BuildRun, tip: Sha) -> tuple[Step, ...] | None:
    if task.members:
        return await steps_of(site.mirror, task.onto, tip, task.members)
    bare = await site.mirror.read(tip)
    return (Step(tip, task.onto, bare.tree),) if bare.parents == (task.onto,) else None


async def _brought(site: Site, steps: tuple[Step, ...]) -> list[tuple[Sha, tuple[Sha, ...]]]:
    """Every commit's contents, and what it merged."""
    ways = [await site.mirror.first_parents(step.commit, down_to=step.parent) or () for step in steps]
    return [(commit.tree, commit.parents[1:]) for way in ways for commit in way]


async def _fetch_all(site: Site, task: BuildRun) -> None:
    heads = (site.host.head_ref(member.number) for member in (*task.beneath, *task.members))
    await site.mirror.fetch([site.target_ref, TEST_BRANCHES, *heads])


def _ask_about_members(task: BuildRun, error: MissingObject) -> tuple[Event, ...]:
    """A head that nobody can give us any more has been replaced: a look at its pull request will tell."""
    if not task.members:
        raise error
    return tuple(PullTouched(number=member.number) for member in task.members)


def _refuse(task: BuildRun, member: Member, refusal: BuildRefusal) -> RunRefused:
    return RunRefused(run=task.run, ticket=member.ticket, refusal=refusal)


def _conflict_words(conflict: Conflict) -> str:
    return f"Conflicts in {', '.join(wording.harmless(path) for path in conflict.paths[:10])}"
