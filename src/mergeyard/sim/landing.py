"""Lands what was tested: composes it anew, pushes it, or merges one by one as a forge does."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import Member, Step
from mergeyard.sim.place import Place
from mergeyard.sim.repository import patched


def compose(place: Place, task: t.ComposeLanding) -> e.LandingComposed | e.CompositionRefused:
    """The tested contents on the new tip, unless somebody else changed what they replace."""
    steps = list[Step]()
    onto = task.onto
    for member, tested in zip(task.members, task.tested, strict=True):
        files, before = place.repository.commits[onto].files, place.repository.commits[tested.parent].files
        changes = place.repository.changes(tested.parent, tested.commit)
        if any(files.get(path) != before.get(path) for path in changes):
            return e.CompositionRefused(landing=task.landing)
        commit = place.repository.commit((onto, member.head), patched(files, changes), f"{member.number} composed")
        steps.append(Step(commit, onto, place.repository.commits[commit].tree))
        onto = commit
    return e.LandingComposed(landing=task.landing, steps=tuple(steps))


def push(place: Place, task: t.Land) -> e.Event:
    """Two refs in one update, both with their expected values; when in doubt, read what is there."""
    task = _with_what_is_left(place, task)
    new = task.steps[-1].commit
    if place.repository.contains(place.tip, new):
        return e.LandingSucceeded(landing=task.landing, steps=task.steps)
    if task.run is not None and place.repository.refs.get(task.run) != task.tested_tip:
        return e.LandingLost(landing=task.landing)
    if not place.move_target(task, task.expected, new):
        return e.LandingMissed(landing=task.landing)
    if task.run is not None:
        place.repository.refs.pop(task.run)
    place.mark_merged(task.members)
    return e.LandingSucceeded(landing=task.landing, steps=task.steps)


def _with_what_is_left(place: Place, task: t.Land) -> t.Land:
    """Of two commits with the same parent and tree, the one that its own test branch leads to is never lost."""
    last = task.steps[-1]
    if not place.is_lost(last.commit) or task.tested_tip is None:
        return task
    own = place.repository.commits[task.tested_tip]
    if (own.parents[0], own.tree) != (last.parent, last.tree):
        return task
    return replace(task, steps=(*task.steps[:-1], replace(last, commit=task.tested_tip)))


def merge_one_by_one(place: Place, task: t.Land) -> e.Event:
    steps = list[Step]()
    onto = task.expected
    for member in task.members:
        done = _merged_already(place, onto, member)
        if done is not None:
            steps.append(done)
        elif member.number in place.refusing:
            return e.LandingRefused(landing=task.landing, words="not allowed", ticket=member.ticket, steps=tuple(steps))
        elif place.tip != onto:
            return e.LandingMissed(landing=task.landing, steps=tuple(steps))
        else:
            step = place.merge(member, onto, f"{member.number} by the host")
            place.move_target(task, onto, step.commit)
            place.mark_merged((member,))
            steps.append(step)
        onto = steps[-1].commit
    return e.LandingSucceeded(landing=task.landing, steps=tuple(steps))


def _merged_already(place: Place, onto: Sha, member: Member) -> Step | None:
    commit = place.tip
    while commit not in (onto, place.repository.root):
        parents = place.repository.commits[commit].parents
        if parents == (onto, member.head):
            return Step(commit, onto, place.repository.commits[commit].tree)
        commit = parents[0]
    return None
