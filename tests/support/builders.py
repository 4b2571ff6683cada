"""Builders with defaults, so that a test names only what matters to it.

`a_yard(prs=3, batch=2)` is a world with a queue, three pull requests in it and their runs built; its methods are what
people, the CI and the host do. `a_pull(3)`, `a_run(1, 2)` and their like are plain values, made without any world.
"""

from collections.abc import Mapping
from typing import TypedDict, Unpack

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import (
    Config,
    LandingMethod,
    MergeMethod,
    Mode,
)
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import BatchId, PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.landing import Landed
from mergeyard.domain.line import Batch
from mergeyard.domain.pulls import HeadExam, PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Member, Run, RunKind, Step
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import CheckState, Mergeability, PrState, RunStatus
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import ALL, Targets, named
from mergeyard.engine.explaining import Waiting, explain
from mergeyard.engine.picture import picture
from mergeyard.engine.work import work
from mergeyard.sim.world import REQUIRED, START, TARGET, World
from tests.support.settings import Settings

ROOT = Sha("root")
"""The tip of the target in queues that are plain values."""


class Wishes(TypedDict, total=False):
    """What somebody may ask for when submitting."""

    priority: int | None
    no_batch: bool | None
    forced: bool | None
    targets: Targets | None


def a_config(
    *, mode: Mode = Mode.SINGLE, batch: int = 0, depth: int | None = None, **settings: Unpack[Settings]
) -> Config:
    """`batch` is the size of batches, 0 for none; `depth` turns optimistic merging on."""
    return Config(
        mode=mode,
        batch=batch > 0,
        batching_min_size=batch or 4,
        can_optimistically_merge=depth is not None,
        pending_failure_depth=depth or 0,
        **settings,
    )


class Yard(World):
    """A world whose people, CI and host do one thing at a time, each in a word."""

    # People.

    def submit(self, *numbers: int, upon: int | None = None, **wishes: Unpack[Wishes]) -> Decision:
        """Open them where they are not open yet (on the tip, or on another's head), and submit them in one turn."""
        for number in numbers:
            if PrNumber(number) not in self.host.pulls:
                self.open(number, upon=None if upon is None else self.head(upon))
        return self.tell(*[self.submission(number, **wishes) for number in numbers])

    def change(self, number: int, **changes: object) -> None:
        """At the host; the queue is not told."""
        self.host.pulls[PrNumber(number)] = replace(self.host.pulls[PrNumber(number)], **changes)

    def pull_seen(self, number: int) -> e.PullSeen:
        """It as the host shows it just now."""
        return e.PullSeen(pull=self.host.look(PrNumber(number)), as_of=self.queue.counters.turns)

    def cancel(self, number: int) -> Decision:
        return self.tell(e.CancelRequested(number=PrNumber(number), actor="ann"))

    def restart(self, number: int) -> Decision:
        return self.tell(e.RestartRequested(number=PrNumber(number), actor="ann"))

    def prioritise(self, number: int, priority: int) -> Decision:
        return self.tell(e.PriorityRequested(number=PrNumber(number), priority=priority))

    # The CI.

    def passes(self, *numbers: int) -> Decision:
        return self.tell(self.verdict(CheckState.PASSED, *numbers))

    def fails(self, *numbers: int) -> Decision:
        return self.tell(self.verdict(CheckState.FAILED, *numbers))

    def verdict(self, state: CheckState, *numbers: int) -> e.ChecksSeen:
        """All required statuses of the run that tests exactly these, seen just now."""
        run = self.run_of(*numbers)
        return self.checks_seen(run, dict.fromkeys(run.required, state))

    def checks_seen(self, run: Run, checks: dict[str, CheckState]) -> e.ChecksSeen:
        self.checks.results[run.tip] = checks
        return self.host.look_at_checks(run.id, self.queue.counters.turns)

    # The hands.

    def build(self) -> None:
        """Build test branches until all that can be are."""
        while self.outstanding(t.BuildRun):
            self.perform(t.BuildRun)

    def perform(self, *kinds: type[t.Task]) -> None:
        """Do what is outstanding now of these kinds, and not what follows from it."""
        as_of = self.queue.counters.turns
        for task in self.outstanding(*kinds):
            self.tell(self.host.perform(task, as_of))

    def intend(self) -> None:
        """Go on with the landing until its intent is saved."""
        self.perform(t.ComposeLanding)
        self.perform(t.ReadPulls)
        assert self.queue.landing is not None
        assert self.queue.landing.intended

    # Questions.

    def outstanding(self, *kinds: type[t.Task]) -> tuple[t.Task, ...]:
        return tuple(task for task in work(self.queue) if isinstance(task, kinds))

    @property
    def picture(self) -> str:
        return picture(self.queue)

    def head(self, number: int) -> Sha:
        return self.host.pulls[PrNumber(number)].head

    def stay(self, number: int) -> Submission:
        """The present stay of a pull request, else its last."""
        present = self.queue.submission_of(PrNumber(number))
        return self.ended[PrNumber(number)] if present is None else present

    def ticket(self, number: int) -> Ticket:
        return self.stay(number).ticket

    def state(self, number: int) -> PrState:
        return self.stay(number).state

    def reason(self, number: int) -> Reason:
        return self.stay(number).reason

    def waits(self, number: int) -> Waiting:
        return explain(self.queue, self.stay(number))

    def run_of(self, *numbers: int) -> Run:
        """The latest run that tests exactly these."""
        return [run for run in self.queue.runs.values() if prs_tested(run) == numbers][-1]

    def timeline(self, number: int) -> list[tuple[PrState, Reason]]:
        return [(entry.to, entry.reason) for entry in self.journal if entry.number == number]


def prs_tested(run: Run) -> tuple[int, ...]:
    return tuple(member.number for member in run.tested)


def prs_beneath(run: Run) -> tuple[int, ...]:
    return tuple(member.number for member in run.beneath)


def a_yard(
    *,
    prs: int = 0,
    proven: bool = True,
    batch: int = 0,
    depth: int | None = None,
    **settings: Unpack[Settings],
) -> Yard:
    yard = Yard(a_config(batch=batch, depth=depth, **settings), proven=proven)
    yard.submit(*range(1, prs + 1))
    yard.build()
    return yard


def a_parallel_yard(
    *lanes: str, batch: int = 0, depth: int | None = None, proven: bool = True, **settings: Unpack[Settings]
) -> Yard:
    """A pull request per word, its letters being its targets: `a_parallel_yard("x", "y", "xy")`."""
    yard = Yard(a_config(mode=Mode.PARALLEL, batch=batch, depth=depth, **settings), proven=proven)
    for number, letters in enumerate(lanes, 1):
        yard.open(number)
        yard.tell(yard.submission(number, targets=named(*letters)))
    yard.build()
    return yard


def a_red_prefix_upon_an_unseen_tip() -> Yard:
    """3 is red by itself in a bisection with 4, upon a tip that was composed of 1 and 2 and never tested."""
    yard = a_parallel_yard(batch=2)
    yard.submit(1, targets=named("x"), no_batch=True)
    yard.submit(2, targets=named("y"), no_batch=True)
    yard.submit(3, 4, targets=named("x", "y"))
    yard.build()
    for number in 1, 2:
        yard.passes(number)
        yard.perform_all()
    yard.fails(3, 4)
    yard.build()
    yard.fails(3)
    yard.build()
    return yard


def a_queue(*, prs: int = 0, batch: int = 0, depth: int | None = None, **settings: Unpack[Settings]) -> Queue:
    return a_yard(prs=prs, batch=batch, depth=depth, **settings).queue


# Plain values.


def a_pull(
    number: int = 1,
    *,
    head: str | None = None,
    base: str = TARGET,
    is_open: bool = True,
    draft: bool = False,
    fork: bool = False,
    mergeability: Mergeability = Mergeability.MERGEABLE,
    merged_into: str | None = None,
    contained: bool = False,
    contains: Mapping[int, str] | None = None,
) -> PullRequest:
    return PullRequest(
        number=PrNumber(number),
        head=Sha(head or f"head{number}"),
        base=base,
        is_open=is_open,
        draft=draft,
        fork=fork,
        mergeability=mergeability,
        merged_into=merged_into,
        contained=contained,
        contains={PrNumber(other): Sha(its_head) for other, its_head in (contains or {}).items()},
    )


def a_submission(
    number: int = 1,
    *,
    pull: PullRequest | None = None,
    priority: int = 100,
    minutes_ago: int = 0,
    targets: Targets | None = None,
    forced: bool = False,
    state: PrState = PrState.PENDING,
) -> Submission:
    """Its ticket is its number."""
    submitted_at = type(START)(START - minutes_ago * MINUTE)
    return Submission(
        ticket=Ticket(number),
        pull=pull or a_pull(number),
        priority=priority,
        submitted_at=submitted_at,
        state_changed_at=submitted_at,
        targets=targets,
        forced=forced,
        state=state,
    )


def an_exam(
    tip: str = ROOT,
    *,
    contains_tip: bool = True,
    changes_something: bool = True,
    holds_removed_commit: bool = False,
    passed: tuple[str, ...] = REQUIRED.statuses,
) -> HeadExam:
    """Of a head that may merge directly onto this tip, unless said otherwise."""
    return HeadExam(
        tip=Sha(tip),
        contains_tip=contains_tip,
        changes_something=changes_something,
        holds_removed_commit=holds_removed_commit,
        passed=frozenset(passed),
        commit=Sha("examined"),
        tree=Sha("tree of examined"),
    )


def a_target(*, required: tuple[str, ...] = REQUIRED.statuses) -> TargetBranch:
    return TargetBranch(name=TARGET, tip=ROOT, history=(Landed(ROOT, None),), required=type(REQUIRED)(required))


def a_plain_queue(*waiting: Submission, config: Config | None = None) -> Queue:
    """A queue in which all of these wait, and nothing was decided yet."""
    config = config or Config()
    buckets = dict[int, SortedMap[Ticket, None]]()
    submissions: SortedMap[Ticket, Submission] = SortedMap()
    tickets: SortedMap[PrNumber, Ticket] = SortedMap()
    for submission in waiting:
        bucket: SortedMap[Ticket, None] = buckets.get(submission.priority, SortedMap())
        buckets[submission.priority] = bucket.put(submission.ticket, None)
        submissions = submissions.put(submission.ticket, submission)
        tickets = tickets.put(submission.number, submission.ticket)
    return Queue(
        id=QueueId("plain"),
        target=a_target(),
        config=config,
        mode=config.mode,
        submissions=submissions,
        tickets=tickets,
        waiting=buckets,
    )


def a_member(number: int) -> Member:
    return Member(Ticket(number), PrNumber(number), Sha(f"head{number}"))


def a_step(commit: str, *, upon: str = ROOT, tree: str | None = None) -> Step:
    return Step(Sha(commit), Sha(upon), Sha(tree or f"tree of {commit}"))


def a_run(
    *stack: int,
    tests: int = 1,
    status: RunStatus = RunStatus.IN_PROGRESS,
    kind: RunKind = RunKind.LINE,
    base: str = ROOT,
    left_out: frozenset[Ticket] = frozenset(),
) -> Run:
    """A run upon pull requests whose tickets are their numbers; its chain is `1`, `1+2`, and so on."""
    names = ["+".join(map(str, stack[: at + 1])) for at in range(len(stack))]
    parents = [base, *names]
    return Run(
        id=RunId(f"run of {names[-1] if names else 'nothing'}"),
        kind=kind,
        base=Sha(base),
        stack=tuple(map(a_member, stack)),
        tests=tests,
        left_out=left_out,
        required=REQUIRED.statuses,
        method=MergeMethod.MERGE_COMMIT,
        landing=LandingMethod.TESTED_COMMIT,
        timeout=300 * MINUTE,
        status=status,
        chain=tuple(a_step(name, upon=parent) for name, parent in zip(names, parents, strict=False)),
        started_at=START,
    )


def a_batch(number: int, *tickets: int, targets: Targets = ALL, behind: frozenset[Ticket] = frozenset()) -> Batch:
    return Batch(id=BatchId(number), tickets=tuple(map(Ticket, tickets or (number,))), targets=targets, behind=behind)


def a_wait(reason: Reason, *prs: int, checks: tuple[str, ...] = ()) -> Waiting:
    """For these pull requests, or for these checks."""
    return Waiting(reason, tuple(map(PrNumber, prs)), checks)
