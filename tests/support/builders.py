"""Builders with defaults, so that a test names only what matters to it.

`a_world(prs=3, batch=2)` is a world with a queue that contains three pull requests, with their runs built. Its methods
are the actions of users, CI and Git host. `a_pull_request(3)`, `a_run(1, 2)` and similar are plain values without a
world.
"""

from collections.abc import Mapping
from typing import TypedDict, Unpack

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, LandingMethod, MergeMethod, Mode
from mergeyard.domain.ids import BatchId, PullRequestNumber, QueueId, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import (
    ALL_TARGETS,
    ImpactedTargets,
    PullRequest,
    Requirement,
    Submission,
    impacted_targets_from_names,
)
from mergeyard.domain.queue import Batch, Decision, LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Member, Run, RunKind, Step
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine.tasks import pending_tasks
from mergeyard.engine.views import WaitReason, render_text, wait_reason
from tests.support.settings import Settings
from tests.support.world.world import REQUIRED_STATUSES, START_TIME, TARGET_BRANCH, World

ROOT = Sha("root")
"""The tip of the target branch in queues that are plain values."""


class SubmitOptions(TypedDict, total=False):
    """Options of a submission."""

    priority: int | None
    no_batch: bool | None
    forced: bool | None
    impacted_targets: ImpactedTargets | None


def a_config(
    *, mode: Mode = Mode.SINGLE, batch: int = 0, depth: int | None = None, **settings: Unpack[Settings]
) -> Config:
    """`batch` is the size of batches, 0 for none; `depth` enables optimistic merging."""
    return Config(
        mode=mode,
        batch=batch > 0,
        batching_min_size=batch or 4,
        can_optimistically_merge=depth is not None,
        pending_failure_depth=depth or 0,
        **settings,
    )


class QueueWorld(World):
    """A world with one short method per action of users, CI and Git host."""

    # Actions of users.

    def submit(self, *numbers: int, stacked_on: int | None = None, **options: Unpack[SubmitOptions]) -> Decision:
        """Opens those that do not exist yet (on the tip, or on another's head) and submits all in one decision."""
        for number in numbers:
            if PullRequestNumber(number) not in self.host.pull_requests:
                self.open_pull_request(number, stacked_on=None if stacked_on is None else self.head(stacked_on))
        return self.apply(*[self.build_submission(number, **options) for number in numbers])

    def change(self, number: int, **changes: object) -> None:
        """Changes the pull request on the Git host without an event for the queue."""
        self.host.pull_requests[PullRequestNumber(number)] = replace(
            self.host.pull_requests[PullRequestNumber(number)], **changes
        )

    def observe_pull_request(self, number: int) -> e.PullRequestObserved:
        """The event of reading this pull request from the Git host now."""
        return e.PullRequestObserved(
            pull_request=self.host.read_pull_request(PullRequestNumber(number)),
            observed_at_revision=self.queue.counters.revision,
        )

    def require(self, number: int, *requirements: Requirement) -> Decision:
        """Rules of the Git host require this of the pull request, and the queue reads it."""
        self.change(number, requirements=requirements)
        return self.apply(self.observe_pull_request(number))

    def cancel(self, number: int) -> Decision:
        return self.apply(e.CancelRequested(number=PullRequestNumber(number), actor="ann"))

    def restart(self, number: int) -> Decision:
        return self.apply(e.RestartRequested(number=PullRequestNumber(number), actor="ann"))

    def prioritize(self, number: int, priority: int) -> Decision:
        return self.apply(e.PriorityRequested(number=PullRequestNumber(number), priority=priority))

    # Results of CI.

    def passes(self, *numbers: int) -> Decision:
        return self.apply(self.observe_result(CheckState.PASSED, *numbers))

    def fails(self, *numbers: int) -> Decision:
        return self.apply(self.observe_result(CheckState.FAILED, *numbers))

    def observe_result(self, state: CheckState, *numbers: int) -> e.ChecksObserved:
        """The event that all required checks of the run that tests exactly these pull requests have this state."""
        run = self.run_of(*numbers)
        return self.observe_checks(run, dict.fromkeys(run.required_statuses, state))

    def observe_checks(self, run: Run, checks: dict[str, CheckState]) -> e.ChecksObserved:
        self.checks.results[run.tip] = checks
        return self.host.read_checks(run.id, self.queue.counters.revision)

    # Tasks.

    def build(self) -> None:
        """Builds test branches until no build is pending."""
        while self.pending_tasks(t.BuildRun):
            self.perform(t.BuildRun)

    def perform(self, *kinds: type[t.Task]) -> None:
        """Performs the pending tasks of these kinds, but not the tasks that follow from them."""
        revision = self.queue.counters.revision
        for task in self.pending_tasks(*kinds):
            self.apply(self.host.perform_task(task, revision))

    def save_landing_intent(self) -> None:
        """Advances the landing until its intent is saved."""
        self.perform(t.RebaseLanding)
        self.perform(t.ReadPullRequests)
        assert self.queue.landing is not None
        assert self.queue.landing.is_intended

    # State.

    def pending_tasks(self, *kinds: type[t.Task]) -> tuple[t.Task, ...]:
        return tuple(task for task in pending_tasks(self.queue) if isinstance(task, kinds))

    @property
    def queue_text(self) -> str:
        return render_text(self.queue)

    def head(self, number: int) -> Sha:
        return self.host.pull_requests[PullRequestNumber(number)].head

    def submission(self, number: int) -> Submission:
        """The current submission of a pull request, else its last one."""
        current = self.queue.submission_of(PullRequestNumber(number))
        return self.concluded_submissions[PullRequestNumber(number)] if current is None else current

    def submission_id(self, number: int) -> SubmissionId:
        return self.submission(number).id

    def state(self, number: int) -> PullRequestState:
        return self.submission(number).state

    def reason(self, number: int) -> Reason:
        return self.submission(number).reason

    def wait_reason(self, number: int) -> WaitReason:
        return wait_reason(self.queue, self.submission(number), self.now)

    def run_of(self, *numbers: int) -> Run:
        """The latest run that tests exactly these pull requests."""
        return [run for run in self.queue.runs.values() if prs_tested(run) == numbers][-1]

    def timeline(self, number: int) -> list[tuple[PullRequestState, Reason]]:
        return [(entry.to, entry.reason) for entry in self.journal if entry.number == number]


def prs_tested(run: Run) -> tuple[int, ...]:
    return tuple(member.number for member in run.tested_members)


def prs_ahead(run: Run) -> tuple[int, ...]:
    return tuple(member.number for member in run.prs_ahead)


def a_world(
    *,
    prs: int = 0,
    base_passed: bool = True,
    batch: int = 0,
    depth: int | None = None,
    **settings: Unpack[Settings],
) -> QueueWorld:
    world = QueueWorld(a_config(batch=batch, depth=depth, **settings), base_passed=base_passed)
    world.submit(*range(1, prs + 1))
    world.build()
    return world


def a_parallel_world(
    *lanes: str, batch: int = 0, depth: int | None = None, base_passed: bool = True, **settings: Unpack[Settings]
) -> QueueWorld:
    """One pull request per string; its characters are its impacted targets: `a_parallel_world("x", "y", "xy")`."""
    world = QueueWorld(a_config(mode=Mode.PARALLEL, batch=batch, depth=depth, **settings), base_passed=base_passed)
    for number, names in enumerate(lanes, 1):
        world.open_pull_request(number)
        world.apply(world.build_submission(number, impacted_targets=impacted_targets_from_names(*names)))
    world.build()
    return world


def a_failed_prefix_on_an_untested_tip() -> QueueWorld:
    """3 fails alone in a bisection with 4, on a tip that was rebased from 1 and 2 and never tested."""
    world = a_parallel_world(batch=2)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"), no_batch=True)
    world.submit(2, impacted_targets=impacted_targets_from_names("y"), no_batch=True)
    world.submit(3, 4, impacted_targets=impacted_targets_from_names("x", "y"))
    world.build()
    for number in 1, 2:
        world.passes(number)
        world.perform_pending_tasks()
    world.fails(3, 4)
    world.build()
    world.fails(3)
    world.build()
    return world


def a_queue(*, prs: int = 0, batch: int = 0, depth: int | None = None, **settings: Unpack[Settings]) -> Queue:
    return a_world(prs=prs, batch=batch, depth=depth, **settings).queue


# Plain values.


def a_pull_request(
    number: int = 1,
    *,
    head: str | None = None,
    base: str = TARGET_BRANCH,
    is_open: bool = True,
    draft: bool = False,
    fork: bool = False,
    mergeability: Mergeability = Mergeability.MERGEABLE,
    merged_into: str | None = None,
    is_in_target_branch: bool = False,
    contains: Mapping[int, str] | None = None,
    requirements: tuple[Requirement, ...] = (),
) -> PullRequest:
    return PullRequest(
        number=PullRequestNumber(number),
        head=Sha(head or f"head{number}"),
        base_branch=base,
        is_open=is_open,
        draft=draft,
        fork=fork,
        mergeability=mergeability,
        merged_into=merged_into,
        is_in_target_branch=is_in_target_branch,
        contained_heads={PullRequestNumber(other): Sha(other_head) for other, other_head in (contains or {}).items()},
        requirements=requirements,
    )


def a_requirement(
    reason: Reason = Reason.WAITING_FOR_REVIEW,
    *,
    needed: int = 1,
    given: int | None = 0,
    names: tuple[str, ...] = (),
    blocks_if_unknown: bool = True,
) -> Requirement:
    """By default an approval that is missing."""
    return Requirement(reason=reason, needed=needed, given=given, names=names, blocks_if_unknown=blocks_if_unknown)


def a_submission(
    number: int = 1,
    *,
    pull_request: PullRequest | None = None,
    priority: int = 100,
    minutes_ago: int = 0,
    impacted_targets: ImpactedTargets | None = None,
    forced: bool = False,
    state: PullRequestState = PullRequestState.PENDING,
) -> Submission:
    """Its submission ID is its number."""
    submitted_at = type(START_TIME)(START_TIME - minutes_ago * MINUTE)
    return Submission(
        id=SubmissionId(number),
        pull_request=pull_request or a_pull_request(number),
        priority=priority,
        submitted_at=submitted_at,
        state_changed_at=submitted_at,
        impacted_targets=impacted_targets,
        forced=forced,
        state=state,
    )


def a_target_branch(*, required: tuple[str, ...] = REQUIRED_STATUSES.statuses) -> TargetBranch:
    return TargetBranch(
        name=TARGET_BRANCH,
        tip=ROOT,
        history=(LandedCommit(ROOT, None),),
        required_statuses=type(REQUIRED_STATUSES)(required),
    )


def a_plain_queue(*waiting: Submission, config: Config | None = None) -> Queue:
    """A queue in which all of these wait, before the first decision."""
    config = config or Config()
    buckets = dict[int, SortedMap[SubmissionId, None]]()
    submissions: SortedMap[SubmissionId, Submission] = SortedMap()
    submission_ids: SortedMap[PullRequestNumber, SubmissionId] = SortedMap()
    for submission in waiting:
        bucket: SortedMap[SubmissionId, None] = buckets.get(submission.priority, SortedMap())
        buckets[submission.priority] = bucket.put(submission.id, None)
        submissions = submissions.put(submission.id, submission)
        submission_ids = submission_ids.put(submission.number, submission.id)
    return Queue(
        id=QueueId("plain"),
        target_branch=a_target_branch(),
        config=config,
        mode=config.mode,
        submissions=submissions,
        submission_by_number=submission_ids,
        waiting=buckets,
    )


def a_member(number: int) -> Member:
    return Member(SubmissionId(number), PullRequestNumber(number), Sha(f"head{number}"))


def a_step(commit: str, *, parent: str = ROOT, tree: str | None = None) -> Step:
    return Step(Sha(commit), Sha(parent), Sha(tree or f"tree of {commit}"))


def a_run(
    *stack: int,
    tests: int = 1,
    status: RunStatus = RunStatus.IN_PROGRESS,
    kind: RunKind = RunKind.BATCH,
    base: str = ROOT,
    left_out: frozenset[SubmissionId] = frozenset(),
) -> Run:
    """A run on pull requests whose submission IDs are their numbers; its chain is `1`, `1+2`, and so on."""
    names = ["+".join(map(str, stack[: at + 1])) for at in range(len(stack))]
    parents = [base, *names]
    return Run(
        id=RunId(f"run of {names[-1] if names else 'nothing'}"),
        kind=kind,
        base=Sha(base),
        stack=tuple(map(a_member, stack)),
        tested_count=tests,
        excluded_submission_ids=left_out,
        required_statuses=REQUIRED_STATUSES.statuses,
        merge_method=MergeMethod.MERGE_COMMIT,
        landing_method=LandingMethod.TESTED_COMMIT,
        timeout_ms=300 * MINUTE,
        status=status,
        chain=tuple(a_step(name, parent=parent) for name, parent in zip(names, parents, strict=False)),
        started_at=START_TIME,
    )


def a_batch(
    number: int,
    *submission_ids: int,
    impacted_targets: ImpactedTargets = ALL_TARGETS,
    prerequisites: frozenset[SubmissionId] = frozenset(),
) -> Batch:
    return Batch(
        id=BatchId(number),
        submission_ids=tuple(map(SubmissionId, submission_ids or (number,))),
        impacted_targets=impacted_targets,
        prerequisites=prerequisites,
    )


def a_wait_reason(
    reason: Reason, *prs: int, checks: tuple[str, ...] = (), detail: str = "", until: Instant | None = None
) -> WaitReason:
    """Waiting for these pull requests or these checks."""
    return WaitReason(reason, tuple(map(PullRequestNumber, prs)), checks, detail=detail, until=until)
