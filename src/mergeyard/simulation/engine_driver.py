"""Drives the production engine on simulated time, with a light Git host: events in, actions out."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec import Struct, field

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, QueueId, RunId, Sha
from mergeyard.domain.pull_requests import PullRequest, RequiredStatuses
from mergeyard.domain.queue import Decision, LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import CheckState, PullRequestState
from mergeyard.domain.timestamps import HOUR, Instant
from mergeyard.engine.decide import decide
from mergeyard.engine.tasks import pending_tasks

UINT64_MASK = 2**64 - 1
GOLDEN_RATIO_64 = 0x9E3779B97F4A7C15


def deterministic_random(*key: int | tuple[int, ...]) -> float:
    """A number in [0, 1). The hash of integers is the same in every process; splitmix64 mixes its bits."""
    bits = (hash(key) + GOLDEN_RATIO_64) & UINT64_MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & UINT64_MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & UINT64_MASK
    return (bits ^ (bits >> 31)) / (UINT64_MASK + 1)


ChangeNumber = int
"""Number of a change, counted from 0 in the order of arrival."""


class SimulatedRun(Struct, frozen=True, eq=False, kw_only=True):
    """One run, compared by identity: another run with the same stack is a different run."""

    stack: tuple[ChangeNumber, ...]
    """All changes in it that have not merged, from the bottom up."""
    tested_count: int = 1
    """How many changes at the end of the stack it tests; it takes as long as the longest of them."""
    base_merge_count: int | None = None
    """How many merges its base contains; None: all merges at its start."""


class ChangeDecision(Struct, frozen=True, kw_only=True):
    """The final decision about a change."""

    number: ChangeNumber
    merged: bool
    evidence: tuple[SimulatedRun, ...] = ()
    """The runs that this decision relies on; all others were wasted."""


class Actions(Struct):
    decisions: list[ChangeDecision] = field(default_factory=list[ChangeDecision])
    """In the order of merging."""
    runs_to_start: list[SimulatedRun] = field(default_factory=list[SimulatedRun])
    """On top of everything merged, including the decisions of these actions."""
    runs_to_stop: list[SimulatedRun] = field(default_factory=list[SimulatedRun])
    wake_at: int | None = None
    """When to call the policy again, even if nothing happens until then."""

    def merge(self, number: ChangeNumber, *by: SimulatedRun) -> None:
        self.decisions.append(ChangeDecision(number=number, merged=True, evidence=by))

    def fail(self, number: ChangeNumber, *by: SimulatedRun) -> None:
        self.decisions.append(ChangeDecision(number=number, merged=False, evidence=by))


class SimulationDiverged(Exception):
    """The policy is too slow to finish, or stopped deciding."""


TARGET_BRANCH = "main"
REQUIRED_STATUSES = RequiredStatuses(("tests",))
ROOT_COMMIT = Sha("root")


class CommitContents(Struct, frozen=True):
    """Contents of a commit: the first `base` merges, and the stack on top of them."""

    base: int
    stack: tuple[ChangeNumber, ...] = ()


class LightHost:
    def __init__(
        self, tip: Sha | None = ROOT_COMMIT, required: RequiredStatuses = REQUIRED_STATUSES, prefix: str = "c"
    ) -> None:
        """`prefix` starts the names of the commits that this host creates."""
        self.required_statuses = required
        self.prefix = prefix
        self.pull_requests: dict[PullRequestNumber, PullRequest] = {}
        self.commits = defaultdict[Sha, CommitContents](lambda: CommitContents(0))
        """Commits from before the simulation contain nothing relevant."""
        self.tip = tip
        self.merged: list[ChangeNumber] = []

    def perform_task(self, task: t.Task, revision: int) -> e.Event:
        match task:
            case t.BuildRun():
                return self._build(task)
            case t.DeleteBranch():
                return e.BranchDeleted(run=task.run)
            case t.RebaseLanding():
                return e.LandingRebased(landing=task.landing, steps=self._chain(task.onto, task.members))
            case t.ReadPullRequests():
                pull_requests = tuple(map(self.pull_requests.__getitem__, task.numbers))
                return e.LandingPullRequestsRead(
                    landing=task.landing, pull_requests=pull_requests, observed_at_revision=revision
                )
            case t.Land():
                return self._land(task)
            case t.ReadTargetBranch():
                return self._observe_target_branch(revision)
            case t.ReadPullRequest():
                return e.PullRequestObserved(
                    pull_request=self.pull_requests[task.number], observed_at_revision=revision
                )
            case t.ReadChecks():
                return e.ChecksObserved(run=task.run, checks={}, observed_at_revision=revision)
            case _:
                assert_never(task)

    def push_externally(self, revision: int) -> e.TargetBranchObserved:
        """An external push that moves the target branch and changes nothing."""
        self.tip = self._commit(CommitContents(len(self.merged)))
        return self._observe_target_branch(revision)

    def _observe_target_branch(self, revision: int) -> e.TargetBranchObserved:
        return e.TargetBranchObserved(
            tip=self.tip, observed_at_revision=revision, required_statuses=self.required_statuses
        )

    def _build(self, task: t.BuildRun) -> e.RunBuilt:
        steps = self._chain(task.onto, task.members)
        if not steps:
            steps = (Step(self._commit(self.commits[task.onto]), task.onto, Sha(f"{task.onto} base run")),)
        return e.RunBuilt(run=task.run, steps=steps)

    def _chain(self, onto: Sha, members: tuple[Member, ...]) -> tuple[Step, ...]:
        steps = list[Step]()
        for member in members:
            below = self.commits[onto]
            commit = self._commit(CommitContents(below.base, (*below.stack, member.number)))
            steps.append(Step(commit, onto, Sha(f"{onto} and {member.number}")))
            onto = commit
        return tuple(steps)

    def _commit(self, contents: CommitContents) -> Sha:
        commit = Sha(f"{self.prefix}{len(self.commits)}")
        self.commits[commit] = contents
        return commit

    def _land(self, task: t.Land) -> e.LandingSucceeded:
        self.merged.extend(member.number for member in task.members)
        self.tip = task.steps[-1].commit
        self.commits[self.tip] = CommitContents(len(self.merged))
        return e.LandingSucceeded(landing=task.landing, steps=task.steps)


STALL_TIMEOUT_MS = HOUR
"""If a flaky run made the target branch look broken, all submissions are held; after this time the simulation pushes to
it."""
MAX_DECISIONS = 10_000
"""Per call: a few decisions for each landing, and as many landings as there are lanes."""

DecideFunction = Callable[[Queue, Sequence[e.Event], Instant], Decision]


class EngineDriver:
    def __init__(self, queue: Queue, host: LightHost, engine: DecideFunction = decide) -> None:
        self.decide = engine
        self.queue = queue
        self.host = host
        self.run_by_id: dict[RunId, SimulatedRun] = {}
        self.active_run_ids: dict[SimulatedRun, RunId] = {}
        """Runs in progress."""
        self.planned_runs: dict[SimulatedRun, Run] = {}
        """The engine's run for each simulated run."""
        self.wake_at: int | None = None

    @property
    def revision(self) -> int:
        """The revision at which an observation made now starts."""
        return self.queue.counters.revision

    @property
    def is_stalled(self) -> bool:
        return bool(self.queue.held) and not self.active_run_ids and self.wake_at is None

    def build_result(self, simulated_run: SimulatedRun, passed: bool) -> e.Event:
        state = CheckState.PASSED if passed else CheckState.FAILED
        checks = dict.fromkeys(self.planned_runs[simulated_run].required_statuses, state)
        return e.ChecksObserved(
            run=self.active_run_ids.pop(simulated_run), checks=checks, observed_at_revision=self.revision
        )

    def push_externally(self) -> e.Event:
        return self.host.push_externally(self.revision)

    def decide_until_idle(self, events: Sequence[e.Event], now: Instant, actions: Actions) -> None:
        """Decides and performs tasks until none is pending."""
        for _ in range(MAX_DECISIONS):
            decision = self.decide(self.queue, events, now)
            self.queue, self.wake_at = decision.queue, decision.wake_at
            for submission in decision.concluded_submissions:
                if submission.state is not PullRequestState.MERGED:
                    actions.fail(submission.number, *self._find_evidence(submission.run))
            tasks = pending_tasks(self.queue)
            if not tasks:
                return
            events = [self._perform_task(task, actions) for task in tasks]
        raise SimulationDiverged("there is always another pending task")

    def _perform_task(self, task: t.Task, actions: Actions) -> e.Event:
        event = self.host.perform_task(task, self.revision)
        match task, event:
            case t.BuildRun(), e.RunBuilt():
                actions.runs_to_start.append(self.track_run(self.queue.runs[task.run], event.steps))
            case t.DeleteBranch(), _:
                simulated_run = self.run_by_id.get(task.run)
                if simulated_run is not None and self.active_run_ids.pop(simulated_run, None) is not None:
                    actions.runs_to_stop.append(simulated_run)
            case t.Land(), _:
                for member in task.members:
                    own_run = self.queue.submissions[member.submission_id].run
                    actions.merge(member.number, *self._find_evidence(task.run, own_run))
            case _:
                pass
        return event

    def track_run(self, run: Run, steps: tuple[Step, ...]) -> SimulatedRun:
        """Registers a run as in progress."""
        contents = self.host.commits[steps[-1].commit]
        simulated_run = SimulatedRun(
            stack=contents.stack, tested_count=run.tested_count, base_merge_count=contents.base
        )
        self.run_by_id[run.id] = simulated_run
        self.active_run_ids[simulated_run] = run.id
        self.planned_runs[simulated_run] = run
        return simulated_run

    def _find_evidence(self, *runs: RunId | None) -> tuple[SimulatedRun, ...]:
        return tuple(self.run_by_id[run] for run in runs if run is not None and run in self.run_by_id)


def start_driver(config: Config, engine: DecideFunction = decide) -> EngineDriver:
    """A driver with an empty queue on a target branch that has passed."""
    target_branch = TargetBranch(
        name=TARGET_BRANCH,
        tip=ROOT_COMMIT,
        history=(LandedCommit(ROOT_COMMIT, None),),
        required_statuses=REQUIRED_STATUSES,
        passed_bases=frozenset({ROOT_COMMIT}),
    )
    return EngineDriver(
        Queue(id=QueueId("race"), target_branch=target_branch, config=config, mode=config.mode), LightHost(), engine
    )
