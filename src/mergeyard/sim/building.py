"""Builds what is to be tested, and examines what may merge directly."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.pulls import HeadExam
from mergeyard.domain.runs import Member, Step
from mergeyard.sim.place import Place
from mergeyard.sim.repository import Conflict


def build(place: Place, task: t.BuildRun) -> e.RunBuilt | e.RunRefused | e.GroundLost:
    """Doing it twice is harmless: the branch that is there is the answer."""
    if task.run in place.repository.refs:
        return place.built[task.run]
    if place.is_lost(task.onto):
        return e.GroundLost(run=task.run)
    steps = list[Step]()
    onto = task.onto
    for member in task.members:
        refusal = _refusal(place, task, member, onto)
        if refusal is not None:
            blockers = _blockers(place, task, member) if refusal is e.BuildRefusal.CONFLICTS_WITH_STACK else ()
            return e.RunRefused(run=task.run, ticket=member.ticket, refusal=refusal, blockers=blockers)
        steps.append(place.merge(member, onto, f"{member.number} for {task.run}"))
        onto = steps[-1].commit
    if not task.members:
        files = place.repository.commits[onto].files
        bare = place.repository.commit((onto,), files, f"nothing for {task.run}")
        steps.append(Step(bare, onto, place.repository.commits[bare].tree))
    place.repository.refs[task.run] = place.tested_tips[task.run] = steps[-1].commit
    place.built[task.run] = e.RunBuilt(run=task.run, steps=tuple(steps))
    return place.built[task.run]


def _refusal(place: Place, task: t.BuildRun, member: Member, onto: Sha) -> e.BuildRefusal | None:
    if place.holds_removed_commit(member.head, task.forbidden):
        return e.BuildRefusal.CONTAINS_REMOVED_COMMIT
    if place.repository.contains(task.base, member.head):
        return e.BuildRefusal.ALREADY_CONTAINED
    try:
        if place.repository.merged_files(task.base, member.head) == place.repository.commits[task.base].files:
            return e.BuildRefusal.NOTHING_TO_MERGE
    except Conflict:
        return e.BuildRefusal.CONFLICTS_WITH_TARGET
    try:
        place.repository.merged_files(onto, member.head)
    except Conflict:
        return e.BuildRefusal.CONFLICTS_WITH_STACK
    return None


def _blockers(place: Place, task: t.BuildRun, member: Member) -> tuple[Ticket, ...]:
    """Those ahead of it with which alone it conflicts already."""
    stack = (*task.beneath, *task.members)
    return tuple(other.ticket for other in stack[: stack.index(member)] if _clash(place, other, member))


def _clash(place: Place, one: Member, other: Member) -> bool:
    try:
        place.repository.merged_files(one.head, other.head)
    except Conflict:
        return True
    return False


def examine(place: Place, task: t.ExamineHead) -> e.HeadExamined:
    files = place.repository.commits[task.head].files
    commit = place.repository.commit((task.tip, task.head), files, f"{task.number} directly")
    exam = HeadExam(
        tip=task.tip,
        contains_tip=place.repository.contains(task.head, task.tip),
        changes_something=files != place.repository.commits[task.tip].files,
        holds_removed_commit=place.holds_removed_commit(task.head, task.forbidden),
        passed=place.checks.passed(task.head),
        commit=commit,
        tree=place.repository.commits[commit].tree,
    )
    return e.HeadExamined(ticket=task.ticket, exam=exam, forbidden=task.forbidden)
