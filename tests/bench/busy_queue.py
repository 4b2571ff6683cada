"""A busy queue: every slot is taken, many pull requests wait, the host responds at once, and users keep submitting."""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from time import thread_time_ns

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import PullRequestNumber, QueueId, Sha
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest, RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.queue import LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import CheckState, Mergeability, RunStatus
from mergeyard.domain.timestamps import Instant, later
from mergeyard.engine.decide import decide
from mergeyard.engine.tasks import pending_tasks

TARGET_BRANCH = "main"
START = Instant(1_700_000_000_000)
DECISION_INTERVAL_MS = 200
SUBMISSION_INTERVAL_MS = 1000
SUBMISSIONS_PER_DECISION = 200
REQUIRED: tuple[str, ...] = ("build", "lint", "unit")
CONCURRENCY = 50
RUN_TIMEOUT_MINUTES = 7 * 24 * 60
"""A week, so that no run times out while the submissions of a day are made."""

MODULES = 400
WINDOW = 40
IMPACTED = 20
"""Each pull request impacts 20 of 40 adjacent modules: it shares one with about a fifth of the others."""

KINDS = (
    "submission",
    "cancel",
    "priority_change",
    "pr_observed",
    "run_built",
    "run_passed",
    "landing_rebased",
    "landing_prs_read",
    "landing_succeeded",
    "branch_deleted",
)

PRIORITIES = (100,) * 16 + (10, 50, 50, 150)
OLDEST_RUNS = 5
"""Runs take about equally long, so the next to pass is one of the five oldest."""

Durations = defaultdict[str, list[float]]
"""The microseconds of every decision by kind of event, and under "pending_tasks" those of deriving the tasks."""


class BusyQueue:
    def __init__(self, mode: Mode, waiting: int) -> None:
        self.rng = Random(waiting)
        self.now = START
        self.submitted = 0
        self.commits = 0
        self.durations = Durations(list)
        self.modules = tuple(f"//area{number // 10}/module{number}" for number in range(MODULES))
        tip = self._commit()
        self.queue = Queue(
            id=QueueId("bench"),
            target_branch=TargetBranch(
                name=TARGET_BRANCH,
                tip=tip,
                history=(LandedCommit(tip, None),),
                required_statuses=RequiredStatuses(REQUIRED),
                passed_bases=frozenset({tip}),
            ),
            config=Config(mode=mode, concurrency=CONCURRENCY, testing_timeout_minutes=RUN_TIMEOUT_MINUTES),
            mode=mode,
        )
        self._fill(CONCURRENCY + waiting)
        self._perform_all()

    @property
    def waiting(self) -> int:
        return sum(len(bucket) for bucket in self.queue.waiting.values())

    @property
    def runs_in_progress(self) -> list[Run]:
        return [run for run in self.queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def run_round(self) -> Durations:
        """As many pull requests are submitted as leave or start, so the number of waiting ones stays the same."""
        self.durations = Durations(list)
        actions: list[Callable[[], None]] = [
            self.submit,
            self.submit,
            self.cancel,
            self.change_title,
            self.change_priority,
            self.pass_a_run,
        ]
        self.rng.shuffle(actions)
        for action in actions:
            action()
            self._perform_all()
        return self.durations

    # Users and CI.

    def submit(self) -> None:
        self._decide("submission", self._submission())

    def cancel(self) -> None:
        self._decide("cancel", e.CancelRequested(number=self._waiting_pr().number))

    def change_title(self) -> None:
        pull_request = replace(self._waiting_pr(), title=f"Title number {self.commits}")
        self._decide(
            "pr_observed",
            e.PullRequestObserved(pull_request=pull_request, observed_at_revision=self.queue.counters.revision),
        )

    def change_priority(self) -> None:
        pull_request = self._waiting_pr()
        event = e.PullRequestSubmitted(
            pull_request=pull_request,
            observed_at_revision=self.queue.counters.revision,
            priority=self.rng.choice((20, 60, 120)),
        )
        self._decide("priority_change", event)

    def pass_a_run(self) -> None:
        run = self.rng.choice(self.runs_in_progress[:OLDEST_RUNS])
        checks = dict.fromkeys(REQUIRED, CheckState.PASSED)
        self._decide(
            "run_passed", e.ChecksObserved(run=run.id, checks=checks, observed_at_revision=self.queue.counters.revision)
        )

    # Results of tasks.

    def _perform_all(self) -> None:
        """One task at a time in random order, as concurrent workers would."""
        while tasks := self._pending_tasks():
            self._perform(self.rng.choice(tasks))

    def _perform(self, task: t.Task) -> None:
        match task:
            case t.BuildRun():
                steps = self._steps(task.onto, task.members)
                self._decide("run_built", e.RunBuilt(run=task.run, steps=steps))
            case t.RebaseLanding():
                steps = self._steps(task.onto, task.members)
                self._decide("landing_rebased", e.LandingRebased(landing=task.landing, steps=steps))
            case t.ReadPullRequests():
                pull_requests, revision = tuple(map(self._pull_request, task.numbers)), self.queue.counters.revision
                self._decide(
                    "landing_prs_read",
                    e.LandingPullRequestsRead(
                        landing=task.landing, pull_requests=pull_requests, observed_at_revision=revision
                    ),
                )
            case t.Land():
                self._decide("landing_succeeded", e.LandingSucceeded(landing=task.landing, steps=task.steps))
            case t.DeleteBranch():
                self._decide("branch_deleted", e.BranchDeleted(run=task.run))
            case _:
                raise AssertionError(f"unexpected task: {task}")

    def _steps(self, onto: Sha, members: tuple[Member, ...]) -> tuple[Step, ...]:
        steps = list[Step]()
        for _ in members:
            steps.append(Step(self._commit(), onto, self._commit()))
            onto = steps[-1].commit
        return tuple(steps)

    # Calls of the engine, timed.

    def _decide(self, kind: str, event: e.Event) -> None:
        """Measures the CPU time of this thread. That includes freeing the old queue and collecting garbage: a
        decision pays for what it discards."""
        self.now = later(self.now, DECISION_INTERVAL_MS)
        started = thread_time_ns()
        self.queue = decide(self.queue, (event,), self.now).queue
        self.durations[kind].append((thread_time_ns() - started) / 1000)

    def _pending_tasks(self) -> tuple[t.Task, ...]:
        started = thread_time_ns()
        tasks = pending_tasks(self.queue)
        self.durations["pending_tasks"].append((thread_time_ns() - started) / 1000)
        return tasks

    # Test data.

    def _fill(self, count: int) -> None:
        """Submits a second apart, as over a day; a few hundred per decision, because this is not measured."""
        while self.submitted < count:
            count_now = min(SUBMISSIONS_PER_DECISION, count - self.submitted)
            self.now = later(self.now, count_now * SUBMISSION_INTERVAL_MS)
            events = [self._submission() for _ in range(count_now)]
            self.queue = decide(self.queue, events, self.now).queue

    def _submission(self) -> e.PullRequestSubmitted:
        self.submitted += 1
        pull_request = PullRequest(
            number=PullRequestNumber(self.submitted),
            head=self._commit(),
            base_branch=TARGET_BRANCH,
            head_branch=f"topic/{self.submitted}",
            title=f"Change number {self.submitted}",
            author=f"author{self.submitted % 97}",
            mergeability=Mergeability.MERGEABLE,
        )
        return e.PullRequestSubmitted(
            pull_request=pull_request,
            observed_at_revision=self.queue.counters.revision,
            priority=self.rng.choice(PRIORITIES),
            impacted_targets=self._impacted_targets(),
        )

    def _impacted_targets(self) -> ImpactedTargets | None:
        first = self.rng.randrange(MODULES)
        return impacted_targets_from_names(
            *(self.modules[(first + offset) % MODULES] for offset in self.rng.sample(range(WINDOW), IMPACTED))
        )

    def _commit(self) -> Sha:
        self.commits += 1
        return Sha(f"{self.commits:040x}")

    def _pull_request(self, number: PullRequestNumber) -> PullRequest:
        submission = self.queue.submission_of(number)
        assert submission is not None
        return submission.pull_request

    def _waiting_pr(self) -> PullRequest:
        index = self.rng.randrange(self.waiting)
        for bucket in self.queue.waiting.values():
            if index < len(bucket):
                return self.queue.submissions[bucket.nth(index)].pull_request
            index -= len(bucket)
        raise AssertionError("no pull request waits")
