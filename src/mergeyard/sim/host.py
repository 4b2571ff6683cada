"""A host that is only a picture of one: it holds pull requests and does what the queue's tasks ask for."""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.pulls import HeadExam, PullRequest
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import Mergeability
from mergeyard.sim.checks import Checks
from mergeyard.sim.repository import Conflict, Repository, patched


class Push(Struct, frozen=True):
    """One update of the target that a task made."""

    task: t.Land
    before: Sha
    after: Sha


class Host:
    def __init__(self, repository: Repository, checks: Checks, target: str, required: Required) -> None:
        self.repository = repository
        self.checks = checks
        self.target = target
        self.required = required
        self.pulls: dict[PrNumber, PullRequest] = {}
        self.refusing: set[PrNumber] = set()
        """Pull requests that this host will not merge."""
        self.tested_tips: dict[RunId, Sha] = {}
        self.built: dict[RunId, e.RunBuilt] = {}
        self.pushes: list[Push] = []
        self.forgotten = frozenset[Sha]()
        """Commits that nobody had any more, unless a ref led to them."""
        repository.refs[target] = repository.root

    @property
    def tip(self) -> Sha:
        return self.repository.refs[self.target]

    def lose_mirror(self) -> None:
        """All that no ref leads to is gone, as when another replica takes over."""
        self.forgotten = frozenset(self.repository.commits)

    def _is_lost(self, commit: Sha) -> bool:
        if commit not in self.forgotten:
            return False
        tips = (*self.repository.refs.values(), *(pull.head for pull in self.pulls.values()))
        return not any(self.repository.contains(tip, commit) for tip in tips)

    def perform(self, task: t.Task, as_of: int) -> e.Event:
        match task:
            case t.LookAtTarget():
                return self._look_at_target(task, as_of)
            case t.LookAtPull():
                return e.PullSeen(pull=self.look(task.number), as_of=as_of)
            case t.LookAtChecks():
                return self.look_at_checks(task.run, as_of)
            case t.BuildRun():
                return self._build(task)
            case t.DeleteBranch():
                self.repository.refs.pop(task.run, None)
                return e.BranchDeleted(run=task.run)
            case t.ExamineHead():
                return self._examine(task)
            case t.ComposeLanding():
                return self._compose(task)
            case t.ReadPulls():
                pulls = tuple(self.look(number) for number in task.numbers)
                return e.LandingRead(landing=task.landing, pulls=pulls, as_of=as_of)
            case t.Land():
                return self._merge_one_by_one(task) if task.method is LandingMethod.PROVIDER_MERGE else self._push(task)

    def look(self, number: PrNumber) -> PullRequest:
        pull = self.pulls[number]
        return replace(
            pull,
            mergeability=self._mergeability(pull),
            contained=self.repository.contains(self.tip, pull.head),
            contains={
                other.number: other.head
                for other in self.pulls.values()
                if other.number != number and self._stands_upon(pull, other)
            },
        )

    def look_at_checks(self, run: RunId, as_of: int) -> e.ChecksSeen:
        return e.ChecksSeen(run=run, checks=self.checks.seen(self.tested_tips[run]), as_of=as_of)

    def _stands_upon(self, pull: PullRequest, other: PullRequest) -> bool:
        upon = self.repository.contains(pull.head, other.head)
        return upon and not self.repository.contains(self.tip, other.head)

    def _mergeability(self, pull: PullRequest) -> Mergeability:
        if pull.mergeability is not Mergeability.MERGEABLE:
            return pull.mergeability
        try:
            self.repository.merged_files(self.tip, pull.head)
        except Conflict:
            return Mergeability.NOT_MERGEABLE
        return Mergeability.MERGEABLE

    def _look_at_target(self, task: t.LookAtTarget, as_of: int) -> e.TargetSeen:
        held = self.repository.ancestors(self.tip)
        known = self.repository.ancestors(task.known_tip) if task.known_tip is not None else frozenset[Sha]()
        return e.TargetSeen(
            tip=self.tip,
            as_of=as_of,
            required=self.required,
            removed=known - held,
            restored=task.removed & held,
        )

    def _build(self, task: t.BuildRun) -> e.RunBuilt | e.RunRefused | e.GroundLost:
        """Doing it twice is harmless: the branch that is there is the answer."""
        if task.run in self.repository.refs:
            return self.built[task.run]
        if self._is_lost(task.onto):
            return e.GroundLost(run=task.run)
        steps = list[Step]()
        onto = task.onto
        for member in task.members:
            refusal = self._refusal(task, member, onto)
            if refusal is not None:
                blockers = self._blockers(task, member) if refusal is e.BuildRefusal.CONFLICTS_WITH_STACK else ()
                return e.RunRefused(run=task.run, ticket=member.ticket, refusal=refusal, blockers=blockers)
            steps.append(self._merge(member, onto, f"{member.number} for {task.run}"))
            onto = steps[-1].commit
        if not task.members:
            files = self.repository.commits[onto].files
            bare = self.repository.commit((onto,), files, f"nothing for {task.run}")
            steps.append(Step(bare, onto, self.repository.commits[bare].tree))
        self.repository.refs[task.run] = self.tested_tips[task.run] = steps[-1].commit
        self.built[task.run] = e.RunBuilt(run=task.run, steps=tuple(steps))
        return self.built[task.run]

    def _refusal(self, task: t.BuildRun, member: Member, onto: Sha) -> e.BuildRefusal | None:
        if self._holds_removed_commit(member.head, task.forbidden):
            return e.BuildRefusal.CONTAINS_REMOVED_COMMIT
        if self.repository.contains(task.base, member.head):
            return e.BuildRefusal.ALREADY_CONTAINED
        try:
            if self.repository.merged_files(task.base, member.head) == self.repository.commits[task.base].files:
                return e.BuildRefusal.NOTHING_TO_MERGE
        except Conflict:
            return e.BuildRefusal.CONFLICTS_WITH_TARGET
        try:
            self.repository.merged_files(onto, member.head)
        except Conflict:
            return e.BuildRefusal.CONFLICTS_WITH_STACK
        return None

    def _holds_removed_commit(self, head: Sha, forbidden: frozenset[Sha]) -> bool:
        removed = forbidden - self.repository.ancestors(self.tip)
        return not removed.isdisjoint(self.repository.ancestors(head))

    def _blockers(self, task: t.BuildRun, member: Member) -> tuple[Ticket, ...]:
        """Those ahead of it with which alone it conflicts already."""
        stack = (*task.beneath, *task.members)
        return tuple(other.ticket for other in stack[: stack.index(member)] if self._clash(other, member))

    def _clash(self, one: Member, other: Member) -> bool:
        try:
            self.repository.merged_files(one.head, other.head)
        except Conflict:
            return True
        return False

    def _merge(self, member: Member, onto: Sha, message: str) -> Step:
        files = self.repository.merged_files(onto, member.head)
        commit = self.repository.commit((onto, member.head), files, message)
        return Step(commit, onto, self.repository.commits[commit].tree)

    def _examine(self, task: t.ExamineHead) -> e.HeadExamined:
        files = self.repository.commits[task.head].files
        commit = self.repository.commit((task.tip, task.head), files, f"{task.number} directly")
        exam = HeadExam(
            tip=task.tip,
            contains_tip=self.repository.contains(task.head, task.tip),
            changes_something=files != self.repository.commits[task.tip].files,
            holds_removed_commit=self._holds_removed_commit(task.head, task.forbidden),
            passed=self.checks.passed(task.head),
            commit=commit,
            tree=self.repository.commits[commit].tree,
        )
        return e.HeadExamined(ticket=task.ticket, exam=exam)

    def _compose(self, task: t.ComposeLanding) -> e.LandingComposed | e.CompositionRefused:
        """The tested contents on the new tip, unless somebody else changed what they replace."""
        steps = list[Step]()
        onto = task.onto
        for member, tested in zip(task.members, task.tested, strict=True):
            files, before = self.repository.commits[onto].files, self.repository.commits[tested.parent].files
            changes = self.repository.changes(tested.parent, tested.commit)
            if any(files.get(path) != before.get(path) for path in changes):
                return e.CompositionRefused(landing=task.landing)
            commit = self.repository.commit((onto, member.head), patched(files, changes), f"{member.number} composed")
            steps.append(Step(commit, onto, self.repository.commits[commit].tree))
            onto = commit
        return e.LandingComposed(landing=task.landing, steps=tuple(steps))

    def _push(self, task: t.Land) -> e.Event:
        """Two refs in one update, both with their expected values; when in doubt, read what is there."""
        task = self._with_what_is_left(task)
        new = task.steps[-1].commit
        if self.repository.contains(self.tip, new):
            return e.LandingSucceeded(landing=task.landing, steps=task.steps)
        if task.run is not None and self.repository.refs.get(task.run) != task.tested_tip:
            return e.LandingLost(landing=task.landing)
        if not self._move_target(task, task.expected, new):
            return e.LandingMissed(landing=task.landing)
        if task.run is not None:
            self.repository.refs.pop(task.run)
        self._mark_merged(task.members)
        return e.LandingSucceeded(landing=task.landing, steps=task.steps)

    def _with_what_is_left(self, task: t.Land) -> t.Land:
        """Of two commits with the same parent and tree, the one that its own test branch leads to is never lost."""
        last = task.steps[-1]
        if not self._is_lost(last.commit) or task.tested_tip is None:
            return task
        own = self.repository.commits[task.tested_tip]
        same = replace(last, commit=task.tested_tip)
        return (
            replace(task, steps=(*task.steps[:-1], same))
            if (own.parents[0], own.tree) == (last.parent, last.tree)
            else task
        )

    def _merge_one_by_one(self, task: t.Land) -> e.Event:
        steps = list[Step]()
        onto = task.expected
        for member in task.members:
            done = self._merged_already(onto, member)
            if done is not None:
                steps.append(done)
            elif member.number in self.refusing:
                return e.LandingRefused(
                    landing=task.landing, words="not allowed", ticket=member.ticket, steps=tuple(steps)
                )
            elif self.tip != onto:
                return e.LandingMissed(landing=task.landing, steps=tuple(steps))
            else:
                step = self._merge(member, onto, f"{member.number} by the host")
                self._move_target(task, onto, step.commit)
                self._mark_merged((member,))
                steps.append(step)
            onto = steps[-1].commit
        return e.LandingSucceeded(landing=task.landing, steps=tuple(steps))

    def _merged_already(self, onto: Sha, member: Member) -> Step | None:
        commit = self.tip
        while commit not in (onto, self.repository.root):
            parents = self.repository.commits[commit].parents
            if parents == (onto, member.head):
                return Step(commit, onto, self.repository.commits[commit].tree)
            commit = parents[0]
        return None

    def _move_target(self, task: t.Land, before: Sha, after: Sha) -> bool:
        moved = self.repository.move(self.target, before, after)
        if moved:
            self.pushes.append(Push(task, before, after))
        return moved

    def _mark_merged(self, members: Collection[Member]) -> None:
        for member in members:
            pull = self.pulls[member.number]
            self.pulls[member.number] = replace(pull, is_open=False, merged_into=self.target)
