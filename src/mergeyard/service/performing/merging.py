"""Merges pull requests one by one, where the queue leaves the merge itself to the place of the target.

A forge merges with its own call, and only the head that was tested; where there is none, git does it.
"""

from mergeyard.domain.events import Event, LandingMissed, LandingRefused, LandingSucceeded, TargetTouched
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Step
from mergeyard.domain.tasks import Land
from mergeyard.service.performing.marking import mark_merged
from mergeyard.service.performing.merging_by_forge import MergingByForge, Unseen
from mergeyard.service.performing.merging_by_git import MergingByGit, MergingRefused
from mergeyard.service.site import Site

Merging = MergingByGit | MergingByForge

LOOKS = 16
"""With the waits between them about a minute, in which a forge shows what it merged: later, it was taken off. And what
it calls unmergeable for so long, it will not merge."""


async def merge_one_by_one(site: Site, task: Land, look: int) -> tuple[Event, ...]:
    """An intent is finished, never given up: what is merged already is found at its place."""
    forge = site.host.forge
    patient = look < LOOKS
    merging = MergingByGit(site, task) if forge is None else MergingByForge(site, forge, task, patient=patient)
    outcome, steps = await _merge(site, merging, task, look)
    while isinstance(outcome, LandingMissed):  # by another replica's merge of the same, perhaps
        again, more = await _merge(site, merging, task, look)
        if len(more) <= len(steps):
            break
        outcome, steps = again, more
    if isinstance(merging, MergingByForge) and not isinstance(outcome, LandingSucceeded):
        await merging.call_off(task.members[len(steps) :])
    await mark_merged(site, task.members, steps)
    return outcome, TargetTouched()


async def _merge(site: Site, merging: Merging, task: Land, look: int) -> tuple[Event, list[Step]]:
    tip = await site.tip()
    steps = await merging.merged_already(tip)
    try:
        return await _merge_the_rest(merging, task, tip, steps), steps
    except Unseen:
        if look < LOOKS:
            raise
        return LandingMissed(landing=task.landing, steps=tuple(steps)), steps


async def _merge_the_rest(merging: Merging, task: Land, tip: Sha | None, steps: list[Step]) -> Event:
    """Adds every merge to the steps; others may have pushed upon ours."""
    onto, left = steps[-1].commit if steps else task.expected, task.members[len(steps) :]
    if left and (tip != onto or not _as_tested(task, steps)):
        return LandingMissed(landing=task.landing, steps=tuple(steps))
    for member in left:
        step = await merging.merge(member, onto)
        if step is None:
            return LandingMissed(landing=task.landing, steps=tuple(steps))
        if isinstance(step, MergingRefused):
            words, ticket = step.words, member.ticket if step.blames else None
            return LandingRefused(landing=task.landing, words=words, ticket=ticket, steps=tuple(steps))
        steps.append(step)
        if not _as_tested(task, steps):
            return LandingMissed(landing=task.landing, steps=tuple(steps))
        onto = step.commit
    return LandingSucceeded(landing=task.landing, steps=tuple(steps))


def _as_tested(task: Land, steps: list[Step]) -> bool:
    """Where something else came of a merge than was tested, or something was taken off beneath it, nobody tested the
    others upon it."""
    beneath = (task.expected, *(step.commit for step in steps))
    made = zip(beneath, steps, task.steps, strict=False)
    return all(step.parent == onto and step.tree == tested.tree for onto, step, tested in made)
