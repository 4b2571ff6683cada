"""Brings what is about to land to a replica that took over: fetched if the host has it, else made again."""

from contextlib import suppress

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Step
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import MissingObject
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.performing.composing import composed
from mergeyard.service.performing.looking import direct_commit
from mergeyard.service.site import Site

Steps = tuple[Step, ...]


async def with_what_is_left(site: Site, task: Land) -> Land:
    """Of two commits with the same parent and tree, the one that its own test branch leads to is never lost. And where
    it was composed, but another run's commits were the same, it can be composed again."""
    if task.tested_tip is None or await is_at_hand(site, task, task.steps[-1].commit):
        return task
    steps = await _as_on_its_branch(site, task.tested_tip, task.steps) or await _made_again(site, task)
    return task if steps is None or not _is_the_same(steps, task.steps) else replace(task, steps=steps)


async def _as_on_its_branch(site: Site, tested_tip: Sha, steps: Steps) -> Steps | None:
    if not await site.has(tested_tip):
        return None
    own = await site.mirror.read(tested_tip)
    as_tested = replace(steps[-1], commit=own.sha, tree=own.tree)
    return (*steps[:-1], as_tested) if own.parents[:1] == (as_tested.parent,) else None


def _is_the_same(steps: Steps, others: Steps) -> bool:
    return [step.tree for step in steps] == [step.tree for step in others]


async def is_at_hand(site: Site, task: Land, commit: Sha) -> bool:
    if await site.has(commit):
        return True
    heads = [site.host.head_ref(member.number) for member in task.members]
    await site.mirror.fetch([TEST_BRANCHES, *heads])
    if await site.has(commit):
        return True
    await _made_again(site, task)
    return await site.has(commit)


async def _made_again(site: Site, task: Land) -> Steps | None:
    """What it is composed of; a direct merge has no steps of its own."""
    landing = site.keeper.queue.landing
    if landing is None or landing.number != task.landing:
        return None
    with suppress(MissingObject):
        if landing.composed:
            return await composed(site, landing.tested, task.expected)
        if landing.run is None:
            (member,) = task.members
            await direct_commit(site, member.ticket, member.head, task.expected)
    return None
