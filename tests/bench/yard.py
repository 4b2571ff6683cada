"""A yard in full swing: every slot taken, many waiting, a host that answers at once, and people who never rest."""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from time import thread_time_ns

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.landing import Landed
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.queue import Queue
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import CheckState, Mergeability, RunStatus
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import Targets, named
from mergeyard.engine.decide import decide
from mergeyard.engine.work import work

TARGET = "main"
START = Instant(1_700_000_000_000)
BETWEEN_TURNS = 200
BETWEEN_SUBMISSIONS = 1000
SUBMITTED_TOGETHER = 200
REQUIRED: tuple[str, ...] = ("build", "lint", "unit")
CONCURRENCY = 50
A_WEEK = 7 * 24 * 60
"""So that no run times out while the waiting of a day are submitted."""

MODULES = 400
NEIGHBOURHOOD = 40
IMPACTED = 20
"""Each pull request impacts 20 of 40 neighbouring modules: it shares one with about a fifth of the others."""

KINDS = (
    "submission",
    "cancel",
    "priority_change",
    "pull_seen",
    "run_built",
    "run_passed",
    "landing_composed",
    "landing_read",
    "landing_succeeded",
    "branch_deleted",
)

PRIORITIES = (100,) * 16 + (10, 50, 50, 150)
NEARLY_IN_ORDER = 5
"""Tests take about equally long, so the next to pass is one of the five that run longest."""

Spent = defaultdict[str, list[float]]
"""The microseconds of every turn, by what happened in it; under "work" those of reading off what is to be done."""


class Yard:
    def __init__(self, mode: Mode, waiting: int) -> None:
        self.dice = Random(waiting)
        self.now = START
        self.pulls = 0
        self.commits = 0
        self.spent = Spent(list)
        self.modules = tuple(f"//area{number // 10}/module{number}" for number in range(MODULES))
        tip = self._commit()
        self.queue = Queue(
            id=QueueId("bench"),
            target=TargetBranch(
                name=TARGET,
                tip=tip,
                history=(Landed(tip, None),),
                required=Required(REQUIRED),
                proofs={tip: (frozenset(),)},
            ),
            config=Config(mode=mode, concurrency=CONCURRENCY, testing_timeout_minutes=A_WEEK),
            mode=mode,
        )
        self._fill(CONCURRENCY + waiting)
        self._answer_all()

    @property
    def waiting(self) -> int:
        return sum(len(bucket) for bucket in self.queue.waiting.values())

    @property
    def under_test(self) -> list[Run]:
        return [run for run in self.queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def go_round(self) -> Spent:
        """As many come as leave or start, so the yard stays as full as it is."""
        self.spent = Spent(list)
        acts: list[Callable[[], None]] = [
            self.submit,
            self.submit,
            self.cancel,
            self.touch,
            self.change_priority,
            self.pass_a_run,
        ]
        self.dice.shuffle(acts)
        for act in acts:
            act()
            self._answer_all()
        return self.spent

    # What people and the CI do.

    def submit(self) -> None:
        self._tell("submission", self._submission())

    def cancel(self) -> None:
        self._tell("cancel", e.CancelRequested(number=self._somebody_waiting().number))

    def touch(self) -> None:
        pull = replace(self._somebody_waiting(), title=f"Now in its version {self.commits}")
        self._tell("pull_seen", e.PullSeen(pull=pull, as_of=self.queue.counters.turns))

    def change_priority(self) -> None:
        pull = self._somebody_waiting()
        event = e.PrSubmitted(pull=pull, as_of=self.queue.counters.turns, priority=self.dice.choice((20, 60, 120)))
        self._tell("priority_change", event)

    def pass_a_run(self) -> None:
        run = self.dice.choice(self.under_test[:NEARLY_IN_ORDER])
        checks = dict.fromkeys(REQUIRED, CheckState.PASSED)
        self._tell("run_passed", e.ChecksSeen(run=run.id, checks=checks, as_of=self.queue.counters.turns))

    # What the host answers.

    def _answer_all(self) -> None:
        """One at a time, in any order, as hands that work side by side do."""
        while tasks := self._work():
            self._answer(self.dice.choice(tasks))

    def _answer(self, task: t.Task) -> None:
        match task:
            case t.BuildRun():
                steps = self._steps(task.onto, task.members)
                self._tell("run_built", e.RunBuilt(run=task.run, steps=steps))
            case t.ComposeLanding():
                steps = self._steps(task.onto, task.members)
                self._tell("landing_composed", e.LandingComposed(landing=task.landing, steps=steps))
            case t.ReadPulls():
                pulls, as_of = tuple(map(self._pull, task.numbers)), self.queue.counters.turns
                self._tell("landing_read", e.LandingRead(landing=task.landing, pulls=pulls, as_of=as_of))
            case t.Land():
                self._tell("landing_succeeded", e.LandingSucceeded(landing=task.landing, steps=task.steps))
            case t.DeleteBranch():
                self._tell("branch_deleted", e.BranchDeleted(run=task.run))
            case _:
                raise AssertionError(f"nothing in this yard asks for {task}")

    def _steps(self, onto: Sha, members: tuple[Member, ...]) -> tuple[Step, ...]:
        steps = list[Step]()
        for _ in members:
            steps.append(Step(self._commit(), onto, self._commit()))
            onto = steps[-1].commit
        return tuple(steps)

    # How the engine is asked, and timed.

    def _tell(self, kind: str, event: e.Event) -> None:
        """The time of this thread alone, whoever else is busy here. The old queue is freed and garbage is collected
        within it: a turn pays for what it throws away."""
        self.now = later(self.now, BETWEEN_TURNS)
        begun = thread_time_ns()
        self.queue = decide(self.queue, (event,), self.now).queue
        self.spent[kind].append((thread_time_ns() - begun) / 1000)

    def _work(self) -> tuple[t.Task, ...]:
        begun = thread_time_ns()
        tasks = work(self.queue)
        self.spent["work"].append((thread_time_ns() - begun) / 1000)
        return tasks

    # Where everything comes from.

    def _fill(self, count: int) -> None:
        """A second apart, as if they had come over a day; a few hundred to a turn, because nobody looks yet."""
        while self.pulls < count:
            together = min(SUBMITTED_TOGETHER, count - self.pulls)
            self.now = later(self.now, together * BETWEEN_SUBMISSIONS)
            events = [self._submission() for _ in range(together)]
            self.queue = decide(self.queue, events, self.now).queue

    def _submission(self) -> e.PrSubmitted:
        self.pulls += 1
        pull = PullRequest(
            number=PrNumber(self.pulls),
            head=self._commit(),
            base=TARGET,
            branch=f"topic/{self.pulls}",
            title=f"Change number {self.pulls}",
            author=f"author{self.pulls % 97}",
            mergeability=Mergeability.MERGEABLE,
        )
        return e.PrSubmitted(
            pull=pull,
            as_of=self.queue.counters.turns,
            priority=self.dice.choice(PRIORITIES),
            targets=self._targets(),
        )

    def _targets(self) -> Targets | None:
        first = self.dice.randrange(MODULES)
        return named(*(self.modules[(first + at) % MODULES] for at in self.dice.sample(range(NEIGHBOURHOOD), IMPACTED)))

    def _commit(self) -> Sha:
        self.commits += 1
        return Sha(f"{self.commits:040x}")

    def _pull(self, number: PrNumber) -> PullRequest:
        submission = self.queue.submission_of(number)
        assert submission is not None
        return submission.pull

    def _somebody_waiting(self) -> PullRequest:
        place = self.dice.randrange(self.waiting)
        for bucket in self.queue.waiting.values():
            if place < len(bucket):
                return self.queue.submissions[bucket.nth(place)].pull
            place -= len(bucket)
        raise AssertionError("somebody always waits")
