"""Brings what is about to land to a replica that took over: fetched if the host has it, else made again."""

from contextlib import suppress

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import MissingObject
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.performing.composing import composed
from mergeyard.service.performing.looking import direct_commit
from mergeyard.service.site import Site


async def with_what_is_left(site: Site, task: Land) -> Land:
    """Of two commits with the same parent and tree, the one that its own test branch leads to is never lost."""
    last = task.steps[-1]
    if task.tested_tip is None or await is_at_hand(site, task, last.commit):
        return task
    if not await site.has(task.tested_tip):
        return task
    own = await site.mirror.read(task.tested_tip)
    if (own.parents[:1], own.tree) != ((last.parent,), last.tree):
        return task
    return replace(task, steps=(*task.steps[:-1], replace(last, commit=own.sha)))


async def is_at_hand(site: Site, task: Land, commit: Sha) -> bool:
    if await site.has(commit):
        return True
    heads = [site.host.head_ref(member.number) for member in task.members]
    await site.mirror.fetch([TEST_BRANCHES, *heads])
    if await site.has(commit):
        return True
    with suppress(MissingObject):
        await _make_again(site, task)
    return await site.has(commit)


async def _make_again(site: Site, task: Land) -> None:
    landing = site.keeper.queue.landing
    if landing is None or landing.number != task.landing:
        return
    if landing.run is None:
        (member,) = task.members
        await direct_commit(site, member.ticket, member.head, task.expected)
    elif landing.composed:
        await composed(site, landing.tested, task.expected)
