"""Moves the target to what was tested, or finds out whether that was done already.

The run's own test branch is the permission: one push moves the target and deletes the branch, both only from their
expected values. So a push that comes late, or twice, can land nothing.
"""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.events import Event, LandingLost, LandingMissed, LandingRefused, LandingSucceeded, TargetTouched
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Run
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import GitTrouble, Pushed, PushRefused, RefUpdate, Stale
from mergeyard.service.naming_branches import branch_ref, test_branch
from mergeyard.service.performing.drafting import close_draft
from mergeyard.service.performing.marking import mark_merged
from mergeyard.service.performing.remaking import is_at_hand, with_what_is_left
from mergeyard.service.repository_config import read_file
from mergeyard.service.site import Site

ATTEMPTS = 3


async def land(site: Site, task: Land) -> tuple[Event, ...]:
    run = _run(site, task)
    if run is None and task.run is not None:
        return ()  # another replica has seen it through meanwhile
    branch = None if run is None else branch_ref(test_branch(run))
    for _ in range(ATTEMPTS):
        outcome = await _attempt(site, task, branch)
        if outcome is not None:
            return outcome
    raise GitTrouble("the target is where we expect it, and yet it cannot be moved")


async def _attempt(site: Site, task: Land, branch: str | None) -> tuple[Event, ...] | None:
    """What the host shows is the answer; only when it shows that nothing has happened yet, something is pushed.
    A push of ours deletes the branch: while that is there, wherever it leads, nothing has landed."""
    tip, permission = await _read(site, branch)
    landed = await _landed(site, tip, task)
    if landed is not None:
        return await _succeed(site, landed)
    if branch is not None and permission is None:
        return await _succeed_or_lose(site, task)
    if branch is not None and permission != task.tested_tip:
        return (LandingMissed(landing=task.landing, withdrawn=tip == task.expected),)
    if tip != task.expected:
        return await _give_up(site, task, branch)
    task = await with_what_is_left(site, task)
    new = task.steps[-1].commit
    if not await is_at_hand(site, task, new):
        return _refuse_what_is_lost(task, branch)
    if not await site.mirror.holds(new, task.expected):
        return await _give_up(site, task, branch)
    outcome = await site.mirror.push(*_updates(site, task, branch, new))
    match outcome:
        case Pushed():  # whatever somebody does with the target right after it
            return (*await _succeed(site, task), TargetTouched())
        case PushRefused():
            return (LandingRefused(landing=task.landing, words=outcome.words),)
        case Stale():
            return None
        case _:
            assert_never(outcome)


def _run(site: Site, task: Land) -> Run | None:
    """None for a direct merge, which no run verified."""
    return None if task.run is None else site.keeper.queue.runs.get(task.run)


async def _read(site: Site, branch: str | None) -> tuple[Sha | None, Sha | None]:
    wanted = [site.target_ref] if branch is None else [site.target_ref, branch]
    refs = await site.mirror.fetch(wanted)
    return refs.get(site.target_ref), None if branch is None else refs.get(branch)


async def _landed(site: Site, tip: Sha | None, task: Land) -> Land | None:
    """As what it did, if it did: as it was decided, or as we could still make it."""
    if tip is None:
        return None
    if await site.mirror.holds(tip, task.steps[-1].commit):
        return task
    left = await with_what_is_left(site, task)
    return left if left is not task and await site.mirror.holds(tip, left.steps[-1].commit) else None


def _updates(site: Site, task: Land, branch: str | None, new: Sha) -> list[RefUpdate]:
    updates = [RefUpdate(site.target_ref, task.expected, new)]
    if branch is not None:
        updates.append(RefUpdate(branch, task.tested_tip, None))
    return updates


async def _succeed_or_lose(site: Site, task: Land) -> tuple[Event, ...]:
    """Without the permission nothing can land any more, so what the target shows now is the end of it."""
    tip, _ = await _read(site, None)
    landed = await _landed(site, tip, task)
    return (LandingLost(landing=task.landing),) if landed is None else await _succeed(site, landed)


def _refuse_what_is_lost(task: Land, branch: str | None) -> tuple[Event, ...]:
    """A direct merge that nobody can make again takes the way that everybody takes."""
    if branch is not None:
        raise GitTrouble("what was tested is nowhere to be found any more")
    words = "its commit was lost with the replica that made it"
    return (LandingRefused(landing=task.landing, ticket=task.members[0].ticket, words=words),)


async def _give_up(site: Site, task: Land, branch: str | None) -> tuple[Event, ...]:
    """First the permission is withdrawn, then the target is read once more: a push of ours may still be on its way.

    The branch is moved and not deleted, so that whoever comes after a crash knows: it was us, and nothing landed.
    """
    tip, _ = await _read(site, None)
    if branch is not None:
        await site.mirror.push(RefUpdate(branch, task.tested_tip, tip))
        tip, permission = await _read(site, branch)
        if permission == task.tested_tip:
            raise GitTrouble("the test branch could not be moved")
    landed = await _landed(site, tip, task)
    return (LandingMissed(landing=task.landing),) if landed is None else await _succeed(site, landed)


async def _succeed(site: Site, task: Land) -> tuple[Event, ...]:
    await mark_merged(site, task.members, task.steps)
    run = _run(site, task)
    if run is not None:
        await close_draft(site, run)
    steps = [replace(step, tree=await site.mirror.tree(step.commit)) for step in task.steps]
    succeeded = LandingSucceeded(landing=task.landing, steps=tuple(steps))
    return (succeeded, TargetTouched()) if await _changes_the_rules(site, task) else (succeeded,)


async def _changes_the_rules(site: Site, task: Land) -> bool:
    """What landed may ask for other statuses than before."""
    before, after = task.expected, task.steps[-1].commit
    return await read_file(site.mirror, before) != await read_file(site.mirror, after)
