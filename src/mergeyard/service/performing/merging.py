"""Merges pull requests one by one, where the queue leaves the merge itself to the place of the target."""

from itertools import takewhile

from mergeyard.domain.events import Event, LandingMissed, LandingRefused, LandingSucceeded, TargetTouched
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import Conflict, Mirror, MissingObject, PushRefused, RefUpdate, Stale
from mergeyard.service import wording
from mergeyard.service.performing.marking import mark_merged
from mergeyard.service.performing.stepping import Stepper, steps_of
from mergeyard.service.site import Site


async def merge_one_by_one(site: Site, task: Land) -> tuple[Event, ...]:
    """An intent is finished, never given up: what is merged already is found in the target's history."""
    tip = (await site.mirror.fetch([site.target_ref])).get(site.target_ref)
    steps = await _merged_already(site.mirror, task, tip)
    outcome = await _merge_the_rest(site, task, tip, steps)
    await mark_merged(site, task.members, steps)
    return outcome, TargetTouched()


async def _merge_the_rest(site: Site, task: Land, tip: Sha | None, steps: list[Step]) -> Event:
    """Adds every merge to the steps; others may have pushed upon ours."""
    onto, left = steps[-1].commit if steps else task.expected, task.members[len(steps) :]
    if left and tip != onto:
        return LandingMissed(landing=task.landing, steps=tuple(steps))
    for member in left:
        try:
            step = await _merge(site, task, member, onto)
        except MissingObject:  # its head is gone from the host, and was never here
            return LandingMissed(landing=task.landing, steps=tuple(steps))
        if isinstance(step, Stale | Conflict):
            return LandingMissed(landing=task.landing, steps=tuple(steps))
        if isinstance(step, PushRefused):
            words, ticket = step.words, member.ticket
            return LandingRefused(landing=task.landing, words=words, ticket=ticket, steps=tuple(steps))
        steps.append(step)
        onto = step.commit
    return LandingSucceeded(landing=task.landing, steps=tuple(steps))


async def _merged_already(mirror: Mirror, task: Land, tip: Sha | None) -> list[Step]:
    """The first commits upon the one that we expected, as far as they are our members'."""
    above = () if tip is None else await mirror.first_parents(tip, down_to=task.expected) or ()
    numbers = {member.number for member in task.members}
    ours = tuple(takewhile(lambda commit: wording.pull_request_of(commit.message) in numbers, above))
    if not ours:
        return []
    count = len({wording.pull_request_of(commit.message) for commit in ours})
    return list(await steps_of(mirror, task.expected, ours[-1].sha, task.members[:count]) or ())


async def _merge(site: Site, task: Land, member: Member, onto: Sha) -> Step | Conflict | Stale | PushRefused:
    queue = site.keeper.queue
    run, stay = queue.runs.get(task.run or RunId("")), queue.submissions.get(member.ticket)
    method = queue.config.merge_method if run is None else run.method
    stepper = Stepper(site.mirror, method, task.run or RunId(""), task.expected)
    step = await stepper.step(member, "" if stay is None else stay.pull.title, onto)
    if isinstance(step, Conflict):
        return step
    outcome = await site.mirror.push(RefUpdate(site.target_ref, onto, step.commit))
    return outcome if isinstance(outcome, Stale | PushRefused) else step
