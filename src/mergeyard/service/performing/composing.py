"""Puts tested contents on a tip that moved meanwhile, if nobody else changed the paths that they change.

What comes of it lies only in our mirror until it lands. So its commits have the dates of those that were tested: a
replica that takes over makes the very same ones.
"""

from collections.abc import Iterable

from mergeyard.domain.events import CompositionRefused, Event, LandingComposed
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Step
from mergeyard.domain.tasks import ComposeLanding
from mergeyard.ports.git import Commit, Conflict, MissingObject, OutputTooLargeError
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.site import Site


async def compose(site: Site, task: ComposeLanding) -> tuple[Event, ...]:
    try:
        steps = await _composed_or_fetched(site, task)
    except OutputTooLargeError:  # what changed meanwhile is too much to compare: it is tested again instead
        steps = None
    if steps is None:
        return (CompositionRefused(landing=task.landing),)
    return (LandingComposed(landing=task.landing, steps=steps),)


async def _composed_or_fetched(site: Site, task: ComposeLanding) -> tuple[Step, ...] | None:
    try:
        return await composed(site, task.tested, task.onto)
    except MissingObject:
        return await _composed_of_what_the_host_has(site, task)


async def _composed_of_what_the_host_has(site: Site, task: ComposeLanding) -> tuple[Step, ...] | None:
    """Another replica may have built it. If somebody has deleted its branch as well, it must be tested again."""
    await site.mirror.fetch([TEST_BRANCHES, site.target_ref])
    try:
        return await composed(site, task.tested, task.onto)
    except MissingObject:
        return None


async def composed(site: Site, tested: Iterable[Step], onto: Sha) -> tuple[Step, ...] | None:
    steps = list[Step]()
    for each in tested:
        step = await _transplant(site, each, onto)
        if step is None:
            return None
        steps.append(step)
        onto = step.commit
    return tuple(steps)


async def _transplant(site: Site, tested: Step, onto: Sha) -> Step | None:
    """Commit by commit, as it was tested: a rebased pull request may have several."""
    changed = await site.mirror.changed_paths(tested.parent, tested.commit)
    if not changed.isdisjoint(await site.mirror.changed_paths(tested.parent, onto)):
        return None
    commits = await site.mirror.first_parents(tested.commit, down_to=tested.parent)
    if not commits:
        return None
    tip, tree = onto, await site.mirror.tree(onto)
    for commit in commits:
        paths = await site.mirror.changed_paths(commit.parents[0], commit.sha)
        transplanted = await site.mirror.transplant(tip, commit.sha, paths)
        if isinstance(transplanted, Conflict):
            return None
        tree = transplanted
        making = (tree, _parents(commit, tip), commit.message, commit.author, commit.committed)
        tip = await site.mirror.commit(*making)
    return Step(tip, onto, tree)


def _parents(commit: Commit, onto: Sha) -> tuple[Sha, ...]:
    return (onto, *commit.parents[1:])
