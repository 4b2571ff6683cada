"""Test world: the engine with a fake Git host, a fake CI and a manual clock."""

from collections.abc import Callable, Iterable, Sequence

from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, QueueId, Sha
from mergeyard.domain.journal import SYSTEM_ACTOR, PullRequestChanged
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest, RequiredStatuses, Submission
from mergeyard.domain.queue import Decision, LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Run
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.decide import decide
from mergeyard.engine.tasks import pending_tasks
from tests.support.world.host import FakeHost
from tests.support.world.repository import CheckRules, Content, FakeChecks, FakeRepository

TARGET_BRANCH = "main"
MAX_TASKS = 1000
START_TIME = Instant(1_700_000_000_000)
REQUIRED_STATUSES = RequiredStatuses(("unit",))

DecisionListener = Callable[[Queue, Sequence[e.Event], Decision], None]


def never_flaky() -> bool:
    return False


class World:
    def __init__(self, config: Config, *, base_passed: bool = True, is_flaky: Callable[[], bool] = never_flaky) -> None:
        self.check_rules = CheckRules()
        self.repository = FakeRepository({"README": "hello"})
        self.checks = FakeChecks(self.repository, self.check_rules, is_flaky)
        self.host = FakeHost(self.repository, self.checks, TARGET_BRANCH, REQUIRED_STATUSES)
        self.now = START_TIME
        self.concluded_submissions: dict[PullRequestNumber, Submission] = {}
        self.journal: list[PullRequestChanged] = []
        self.listeners: list[DecisionListener] = []
        tip = self.host.tip
        target_branch = TargetBranch(
            name=TARGET_BRANCH,
            tip=tip,
            history=(LandedCommit(tip, None),),
            required_statuses=REQUIRED_STATUSES,
            passed_bases=frozenset({tip} if base_passed else ()),
        )
        self.queue = Queue(id=QueueId("world"), target_branch=target_branch, config=config, mode=config.mode)

    # Actions of users on the Git host.

    def open_pull_request(
        self, number: int, files: dict[str, Content] | None = None, *, stacked_on: Sha | None = None
    ) -> PullRequestNumber:
        base = stacked_on or self.host.tip
        changed = {**self.repository.commits[base].files, **(files or {f"file{number}": f"pr{number}"})}
        head = self.repository.commit((base,), changed, f"head of {number}")
        self.host.pull_requests[PullRequestNumber(number)] = PullRequest(
            number=PullRequestNumber(number), head=head, base_branch=TARGET_BRANCH, mergeability=Mergeability.MERGEABLE
        )
        return PullRequestNumber(number)

    def push_to_target_branch(self, files: dict[str, Content]) -> Sha:
        tip = self.host.tip
        commit = self.repository.commit((tip,), {**self.repository.commits[tip].files, **files}, "external push")
        self.repository.refs[TARGET_BRANCH] = commit
        return commit

    # Events for the queue.

    def apply(self, *events: e.Event) -> Decision:
        before = self.queue
        decision = decide(before, events, self.now)
        self.queue = decision.queue
        self.journal.extend(entry for entry in decision.journal if isinstance(entry, PullRequestChanged))
        self.concluded_submissions.update(
            (submission.number, submission) for submission in decision.concluded_submissions
        )
        for listener in self.listeners:
            listener(before, events, decision)
        return decision

    def build_submission(
        self,
        number: int,
        *,
        priority: int | None = None,
        no_batch: bool | None = None,
        forced: bool | None = None,
        by_maintainer: bool = False,
        impacted_targets: ImpactedTargets | None = None,
        actor: str = SYSTEM_ACTOR,
    ) -> e.PullRequestSubmitted:
        return e.PullRequestSubmitted(
            pull_request=self.host.read_pull_request(PullRequestNumber(number)),
            observed_at_revision=self.queue.counters.revision,
            priority=priority,
            no_batch=no_batch,
            forced=forced,
            by_maintainer=by_maintainer,
            impacted_targets=impacted_targets,
            actor=actor,
        )

    def advance_time(self, milliseconds: int) -> Decision:
        self.now = Instant(self.now + milliseconds)
        return self.apply()

    # Tasks and CI.

    def perform_pending_tasks(self) -> None:
        """Performs pending tasks one by one until none is left."""
        for _ in range(MAX_TASKS):
            task = next(iter(pending_tasks(self.queue)), None)
            if task is None:
                return
            self.apply(self.host.perform_task(task, self.queue.counters.revision))
        raise AssertionError("pending tasks never end")

    def runs_in_progress(self) -> tuple[Run, ...]:
        return self.queue.runs_in_progress

    def report_checks(self, runs: Iterable[Run]) -> Decision:
        """The CI completes the checks of these runs."""
        events = list[e.Event]()
        for run in runs:
            self.checks.report(run.tip, run.required_statuses)
            events.append(self.host.read_checks(run.id, self.queue.counters.revision))
        return self.apply(*events)
