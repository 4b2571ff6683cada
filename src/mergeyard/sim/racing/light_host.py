"""A host and a CI without contents: commits are names, and every task is done at once, so that races are fast."""

from collections import defaultdict
from typing import assert_never

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Member, Step
from mergeyard.sim.racing.policy import Number

TARGET = "main"
REQUIRED = Required(("tests",))
ROOT = Sha("root")


class Contents(Struct, frozen=True):
    """What a commit holds: the first so many merges, and these upon them."""

    base: int
    stack: tuple[Number, ...] = ()


class LightHost:
    def __init__(self, tip: Sha | None = ROOT, required: Required = REQUIRED, prefix: str = "c") -> None:
        """The names of its own commits begin with the prefix."""
        self.required = required
        self.prefix = prefix
        self.pulls: dict[PrNumber, PullRequest] = {}
        self.commits = defaultdict[Sha, Contents](lambda: Contents(0))
        """Those that were there before hold nothing that anybody here would ask for."""
        self.tip = tip
        self.merged: list[Number] = []

    def perform(self, task: t.Task, as_of: int) -> e.Event:
        match task:
            case t.BuildRun():
                return self._build(task)
            case t.DeleteBranch():
                return e.BranchDeleted(run=task.run)
            case t.ComposeLanding():
                return e.LandingComposed(landing=task.landing, steps=self._chain(task.onto, task.members))
            case t.ReadPulls():
                pulls = tuple(map(self.pulls.__getitem__, task.numbers))
                return e.LandingRead(landing=task.landing, pulls=pulls, as_of=as_of)
            case t.Land():
                return self._land(task)
            case t.LookAtTarget():
                return self._look(as_of)
            case t.LookAtPull():
                return e.PullSeen(pull=self.pulls[task.number], as_of=as_of)
            case t.LookAtChecks():
                return e.ChecksSeen(run=task.run, checks={}, as_of=as_of)
            case t.ExamineHead():
                raise NotImplementedError("nobody merges without a run")
            case _:
                assert_never(task)

    def push_from_outside(self, as_of: int) -> e.TargetSeen:
        """Somebody moves the target, and changes nothing by it."""
        self.tip = self._commit(Contents(len(self.merged)))
        return self._look(as_of)

    def _look(self, as_of: int) -> e.TargetSeen:
        return e.TargetSeen(tip=self.tip, as_of=as_of, required=self.required)

    def _build(self, task: t.BuildRun) -> e.RunBuilt:
        steps = self._chain(task.onto, task.members)
        if not steps:
            steps = (Step(self._commit(self.commits[task.onto]), task.onto, Sha(f"{task.onto} alone")),)
        return e.RunBuilt(run=task.run, steps=steps)

    def _chain(self, onto: Sha, members: tuple[Member, ...]) -> tuple[Step, ...]:
        steps = list[Step]()
        for member in members:
            beneath = self.commits[onto]
            commit = self._commit(Contents(beneath.base, (*beneath.stack, _number(member))))
            steps.append(Step(commit, onto, Sha(f"{onto} and {member.number}")))
            onto = commit
        return tuple(steps)

    def _commit(self, contents: Contents) -> Sha:
        commit = Sha(f"{self.prefix}{len(self.commits)}")
        self.commits[commit] = contents
        return commit

    def _land(self, task: t.Land) -> e.LandingSucceeded:
        self.merged.extend(map(_number, task.members))
        self.tip = task.steps[-1].commit
        self.commits[self.tip] = Contents(len(self.merged))
        return e.LandingSucceeded(landing=task.landing, steps=task.steps)


def _number(member: Member) -> Number:
    return int(member.number)
