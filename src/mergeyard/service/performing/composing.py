"""Puts tested contents on a tip that moved meanwhile, if nobody else changed the paths that they change."""

from mergeyard.domain.events import CompositionRefused, Event, LandingComposed
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Step
from mergeyard.domain.tasks import ComposeLanding
from mergeyard.ports.git import Commit, Conflict
from mergeyard.service.site import Site


async def compose(site: Site, task: ComposeLanding) -> tuple[Event, ...]:
    steps, onto = list[Step](), task.onto
    for tested in task.tested:
        step = await _transplant(site, tested, onto)
        if step is None:
            return (CompositionRefused(landing=task.landing),)
        steps.append(step)
        onto = step.commit
    return (LandingComposed(landing=task.landing, steps=tuple(steps)),)


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
        tip = await site.mirror.commit(tree, _parents(commit, tip), commit.message, commit.author)
    return Step(tip, onto, tree)


def _parents(commit: Commit, onto: Sha) -> tuple[Sha, ...]:
    return (onto, *commit.parents[1:])
