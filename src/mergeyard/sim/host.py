"""A host that is only a picture of one: it shows pull requests and does what the queue's tasks ask for."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.sim import building, landing
from mergeyard.sim.place import Place
from mergeyard.sim.repository import Conflict


class Host(Place):
    def perform(self, task: t.Task, as_of: int) -> e.Event:
        match task:
            case t.LookAtTarget():
                return self._look_at_target(task, as_of)
            case t.LookAtPull():
                return e.PullSeen(pull=self.look(task.number), as_of=as_of)
            case t.LookAtChecks():
                return self.look_at_checks(task.run, as_of)
            case t.BuildRun():
                return building.build(self, task)
            case t.DeleteBranch():
                self.repository.refs.pop(task.run, None)
                return e.BranchDeleted(run=task.run)
            case t.ExamineHead():
                return building.examine(self, task)
            case t.ComposeLanding():
                return landing.compose(self, task)
            case t.ReadPulls():
                pulls = tuple(self.look(number) for number in task.numbers)
                return e.LandingRead(landing=task.landing, pulls=pulls, as_of=as_of)
            case t.Land():
                by_forge = task.method is LandingMethod.PROVIDER_MERGE
                return landing.merge_one_by_one(self, task) if by_forge else landing.push(self, task)

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
