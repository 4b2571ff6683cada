"""Stories: a queue in a fake world, with one short method per action; the test decides every check result.

Each action applies one event; then all pending tasks are performed, unless the story withholds some of them. Two
invariants are checked after every decision: deciding again changes nothing, and every wait reason that concerns other
pull requests names them.
"""

from collections.abc import Collection
from typing import TypedDict, Unpack

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, LandingMethod, Mode
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.journal import SYSTEM_ACTOR, Cause
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets, PullRequest, RequiredStatuses, Submission
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import CheckState, Mergeability, QueueState, Reason, Refusal
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine.decide import decide
from mergeyard.engine.tasks import pending_tasks
from mergeyard.engine.views import WaitReason, displayed_run, render_text, wait_reason
from tests.support.settings import Settings
from tests.support.world.world import TARGET_BRANCH, World

SECOND = 1000
MAX_STEPS = 1000
"""Repetitions after which a loop counts as endless."""

REASONS_THAT_NAME_PRS = frozenset(
    {Reason.WAITING_FOR_PRS_AHEAD, Reason.WAITING_FOR_PRS_BEHIND, Reason.CONFLICTS_WITH_PR_AHEAD}
)
"""Wait reasons that must name the pull requests that are waited for."""

Numbers = tuple[int, ...]


class StorySettings(Settings, total=False):
    """Here `batch` is the size of a batch and enables batching."""

    mode: Mode
    batch: int
    can_optimistically_merge: bool
    pending_failure_depth: int


class SubmitOptions(TypedDict, total=False):
    """Options of a submission."""

    priority: int
    no_batch: bool
    forced: bool
    by_maintainer: bool
    actor: str


class Story:
    def __init__(self, **settings: Unpack[StorySettings]) -> None:
        self._set_up(World(_with_settings(Config(), settings)))

    @classmethod
    def on_an_untested_base(cls, **settings: Unpack[StorySettings]) -> "Story":
        """No test has passed on the tip of the target branch."""
        story = cls.__new__(cls)
        story._set_up(World(_with_settings(Config(), settings), base_passed=False))
        return story

    def _set_up(self, world: World) -> None:
        self.world = world
        self.world.listeners.append(self._check_invariants)
        self._withheld: tuple[type[t.Task], ...] = ()
        self._updates: list[Numbers] = []
        self._targets: dict[int, ImpactedTargets] = {}

    # Actions of users on pull requests.

    def open(self, number: int, files: dict[str, str] | None = None) -> None:
        self.world.open_pull_request(number, files)

    def open_stacked_on(self, other: int, number: int) -> None:
        """A pull request that is branched from another one and contains its commits."""
        self.world.open_pull_request(number, stacked_on=self._pull_request(other).head)

    def open_from(self, commit: Sha, number: int) -> None:
        self.world.open_pull_request(number, stacked_on=commit)

    def impacts(self, number: int, *names: str) -> None:
        self._targets[number] = ImpactedTargets(frozenset(names))

    def impacts_everything(self, number: int) -> None:
        self._targets[number] = ALL_TARGETS

    def upload_targets(self, number: int, *names: str) -> None:
        targets = ImpactedTargets(frozenset(names))
        self._apply(
            e.ImpactedTargetsUploaded(
                number=PullRequestNumber(number), head=self._pull_request(number).head, impacted_targets=targets
            )
        )

    def submit(self, *numbers: int, **asked: Unpack[SubmitOptions]) -> None:
        """All in one decision; pull requests that do not exist are opened."""
        for number in numbers:
            if number not in self.world.host.pull_requests:
                self.open(number)
        self._apply(
            *(
                self.world.build_submission(number, impacted_targets=self._targets.get(number), **asked)
                for number in numbers
            )
        )

    def submit_pinned(self, number: int) -> None:
        """Submits one particular head."""
        self._apply(replace(self.world.build_submission(number), head_pinned=True))

    def priority(self, number: int, value: int) -> None:
        self.submit(number, priority=value)

    def set_priority(self, number: int, value: int, actor: str = SYSTEM_ACTOR) -> Refusal | None:
        """Without submitting it again."""
        return self._request(e.PriorityRequested(number=PullRequestNumber(number), priority=value, actor=actor))

    def cancel(self, number: int, actor: str = SYSTEM_ACTOR) -> Refusal | None:
        return self._request(e.CancelRequested(number=PullRequestNumber(number), actor=actor))

    def restart(self, number: int) -> Refusal | None:
        return self._request(e.RestartRequested(number=PullRequestNumber(number)))

    def push(self, number: int) -> None:
        self.push_without_event(number)
        self.mark_dirty(number)

    def push_without_event(self, number: int) -> None:
        before = self._pull_request(number).head
        files = {**self.world.repository.commits[before].files, f"file{number}": f"pr{number} again"}
        head = self.world.repository.commit((before,), files, f"a push to {number}")
        self.change_without_event(number, head=head)

    def close(self, number: int) -> None:
        self._change(number, is_open=False)

    def draft(self, number: int) -> None:
        self._change(number, draft=True)

    def undraft(self, number: int) -> None:
        self._change(number, draft=False)

    def retarget(self, number: int, base: str) -> None:
        self._change(number, base_branch=base)

    def set_mergeability(self, number: int, value: Mergeability) -> None:
        self._change(number, mergeability=value)

    def change_without_event(self, number: int, **changes: object) -> None:
        """Changes the pull request on the Git host without an event for the queue."""
        self.world.host.pull_requests[PullRequestNumber(number)] = replace(self._pull_request(number), **changes)

    def mark_dirty(self, number: int) -> None:
        """The event that the pull request has changed."""
        self._apply(e.PullRequestDirty(number=PullRequestNumber(number)))

    # The target branch.

    def tip(self) -> Sha:
        return self.world.host.tip

    def target_files(self) -> dict[str, str]:
        return dict(self.world.repository.commits[self.tip()].files)

    def external_push(self, files: dict[str, str] | None = None) -> None:
        self.external_push_without_event(files)
        self._apply(e.TargetBranchDirty())

    def external_push_without_event(self, files: dict[str, str] | None = None) -> None:
        self.world.push_to_target_branch(files or {"elsewhere": f"on {self.tip()}"})

    def rewind(self, to: Sha) -> None:
        self.world.repository.refs[TARGET_BRANCH] = to
        self._apply(e.TargetBranchDirty())

    def delete_target_branch(self) -> None:
        """The branch is deleted; `rewind` restores it."""
        self._apply(
            e.TargetBranchObserved(
                tip=None,
                observed_at_revision=self.queue.counters.revision,
                required_statuses=self.world.host.required_statuses,
            )
        )

    def merge_by_hand(self, number: int) -> None:
        head, tip = self._pull_request(number).head, self.tip()
        files = self.world.repository.merge_files(tip, head)
        self.world.repository.refs[TARGET_BRANCH] = self.world.repository.commit((tip, head), files, "merged by hand")
        self.change_without_event(number, is_open=False, merged_into=TARGET_BRANCH)
        self._apply(e.PullRequestDirty(number=PullRequestNumber(number)), e.TargetBranchDirty())

    def repository_requires(self, *statuses: str) -> None:
        """Required statuses of the repository, used when the queue's settings name none."""
        self.world.host.required_statuses = RequiredStatuses(statuses)
        self._apply(e.TargetBranchDirty())

    def break_configuration(self, message: str) -> None:
        """The configuration in the repository becomes invalid."""
        self.world.host.required_statuses = RequiredStatuses(config_error=message)
        self._apply(e.TargetBranchDirty())

    # Results of CI.

    def tests_pass(self, *tested: int, stack: Numbers | None = None) -> None:
        """The run is found by the pull requests that it tests or by its whole stack; without either, the base run."""
        self._report([self._in_progress(tested, stack)], CheckState.PASSED)

    def tests_fail(self, *tested: int, stack: Numbers | None = None) -> None:
        self._report([self._in_progress(tested, stack)], CheckState.FAILED)

    def all_tests_pass(self) -> None:
        """Every run in progress, in one decision."""
        self._report(self.world.runs_in_progress(), CheckState.PASSED)

    def tests_pass_until_the_end(self) -> None:
        for _ in range(MAX_STEPS):
            if not self.world.runs_in_progress():
                return
            self.all_tests_pass()
        raise AssertionError(f"runs never end: {self.queue_text()}")

    def run_of(self, *tested: int) -> Run:
        """The run in progress that tests these pull requests."""
        return self._in_progress(tested, None)

    def late_result(self, run: Run, state: CheckState) -> None:
        """CI reports on a run that may have ended."""
        self._report([run], state)

    def checks_pass_on_head(self, number: int, *names: str) -> None:
        self.world.checks.results[self._pull_request(number).head] = dict.fromkeys(
            names or ("unit",), CheckState.PASSED
        )

    def check(self, name: str, state: CheckState, *tested: int) -> None:
        """One check of a run."""
        run = self.run_of(*tested)
        self.world.checks.results.setdefault(run.tip, {})[name] = state
        self._apply(self.world.host.read_checks(run.id, self.queue.counters.revision))

    def pass_checks_without_event(self, *tested: int) -> None:
        """All checks of a run pass without an event for the queue."""
        run = self.run_of(*tested)
        self.world.checks.results[run.tip] = dict.fromkeys(run.required_statuses, CheckState.PASSED)

    # Actions of operators.

    def pause(self) -> None:
        self._apply(e.StateRequested(state=QueueState.PAUSED))

    def drain(self) -> None:
        self._apply(e.StateRequested(state=QueueState.DRAINING))

    def resume(self) -> None:
        self._apply(e.StateRequested(state=QueueState.RUNNING))

    def settings(self, **changes: Unpack[StorySettings]) -> Refusal | None:
        return self._request(e.SettingsSaved(config=_with_settings(self.queue.config, changes)))

    # Time and the Git host.

    def pass_minutes(self, minutes: int) -> None:
        self.world.advance_time(minutes * MINUTE)
        self.perform_pending_tasks()

    def pass_hours(self, hours: int) -> None:
        self.pass_minutes(60 * hours)

    def wake_at(self) -> Instant | None:
        """When the queue must decide again."""
        return decide(self.queue, (), self.world.now).wake_at

    def pass_until(self, instant: Instant) -> None:
        self.world.advance_time(instant - self.world.now)
        self.perform_pending_tasks()

    def lose_host(self) -> None:
        self._apply(e.HostUnreachable())

    def regain_host(self) -> None:
        self._apply(e.HostReachable())

    def refuse_to_merge(self, number: int) -> None:
        self.world.host.refused_numbers.add(PullRequestNumber(number))

    def refuse_push(self, message: str) -> None:
        """The withheld push of the landing is refused, and no pull request is the cause."""
        self._apply(e.LandingRefused(landing=self._landing_number(), detail=message))

    def delete_test_branch(self, *tested: int) -> None:
        """The test branch of the run that verified the landing is deleted."""
        for run in self.queue.runs.values():
            if _numbers(run.tested_members) == tested:
                self.world.repository.refs.pop(run.id, None)

    # Tasks.

    def withhold(self, *kinds: type[t.Task]) -> None:
        """From now on tasks of these kinds are not performed."""
        self._withheld = kinds

    def withhold_landings(self) -> None:
        self.withhold(t.ReadPullRequests, t.RebaseLanding, t.Land)

    def perform_pending_tasks(self) -> None:
        """Performs pending tasks until none is left or none changes the queue."""
        for _ in range(MAX_STEPS):
            if not any(self._perform(task) for task in self._pending_tasks()):
                return
        raise AssertionError(f"pending tasks never end: {self.queue_text()}")

    def stop_withholding(self) -> None:
        self._withheld = ()
        self.perform_pending_tasks()

    def perform_and_lose_result(self, kind: type[t.Task]) -> None:
        """The task is performed on the Git host, but its result is lost: a crash or a lost connection."""
        self._do_at_host(next(task for task in pending_tasks(self.queue) if isinstance(task, kind)))

    def count_pending(self, kind: type[t.Task]) -> int:
        return sum(isinstance(task, kind) for task in pending_tasks(self.queue))

    # State.

    @property
    def queue(self) -> Queue:
        return self.world.queue

    def queue_text(self) -> str:
        return render_text(self.queue)

    def queue_state(self) -> str:
        return self.queue.state

    def state(self, number: int) -> str:
        return self.submission(number).state

    def states(self, *numbers: int) -> tuple[str, ...]:
        return tuple(self.state(number) for number in numbers)

    def reason(self, number: int) -> str:
        """The reason of its current state."""
        return self.submission(number).reason

    def detail(self, number: int) -> str:
        return self.submission(number).detail

    def failed_on(self, number: int) -> Numbers:
        """The pull requests it was stacked on when it failed."""
        return self.submission(number).stacked_on

    def wait_reason(self, number: int) -> str:
        return self._wait_reason(number).reason

    def waiting_for(self, number: int) -> Numbers:
        return self._wait_reason(number).prs

    def missing_checks(self, number: int) -> tuple[str, ...]:
        return self._wait_reason(number).checks

    def state_history(self, number: int) -> tuple[str, ...]:
        """All its states, oldest first."""
        return tuple(entry.to for entry in self.world.journal if entry.number == number)

    def reasons(self, number: int) -> tuple[str, ...]:
        """The reasons of all its state changes, oldest first."""
        return tuple(entry.reason for entry in self.world.journal if entry.number == number)

    def causes(self, number: int, reason: str) -> tuple[Cause, ...]:
        """The pull requests that the last change of this one for this reason names."""
        entries = [each for each in self.world.journal if (each.number, each.reason) == (number, reason)]
        return entries[-1].causes

    def runs(self) -> tuple[Numbers, ...]:
        """The stacks of the batch runs in progress, in the order in which they started."""
        return self._stacks(RunKind.BATCH)

    def batches(self) -> tuple[Numbers, ...]:
        """The active batches, in order."""
        return tuple(
            tuple(int(self.queue.submissions[submission_id].number) for submission_id in batch.submission_ids)
            for batch in self.queue.active.batches
        )

    def prs_ahead(self, number: int) -> Numbers:
        """The pull requests ahead in the stack of the run that tests it."""
        return _numbers(self.run_of(number).prs_ahead)

    def bisection_runs(self) -> tuple[Numbers, ...]:
        """The stacks of the bisection runs in progress."""
        return self._stacks(RunKind.BISECTION)

    def base_runs(self) -> int:
        return len(self._stacks(RunKind.BASE))

    def shows_base_run(self, number: int) -> bool:
        """Whether the run displayed for it is a base run."""
        shown = displayed_run(self.queue, self.submission(number))
        return shown is not None and self.queue.runs[shown].kind is RunKind.BASE

    def merged_prs(self) -> Numbers:
        """Merged pull requests, in landing order."""
        return tuple(entry.number for entry in self.world.journal if entry.to == "merged")

    def landings(self) -> tuple[Numbers, ...]:
        """The pull requests of each push of the queue to the target branch."""
        return tuple(self._updates)

    def submission(self, number: int) -> Submission:
        live = self.queue.submission_of(PullRequestNumber(number))
        return live if live is not None else self.world.concluded_submissions[PullRequestNumber(number)]

    # Helpers.

    def _wait_reason(self, number: int) -> WaitReason:
        return wait_reason(
            self.queue,
            self.queue.submissions[self.queue.submission_by_number[PullRequestNumber(number)]],
            self.world.now,
        )

    def _pull_request(self, number: int) -> PullRequest:
        return self.world.host.pull_requests[PullRequestNumber(number)]

    def _change(self, number: int, **changes: object) -> None:
        self.change_without_event(number, **changes)
        self.mark_dirty(number)

    def _apply(self, *events: e.Event) -> Decision:
        """Advances the clock by a second, so that no two events have the same time."""
        self.world.now = Instant(self.world.now + SECOND)
        decision = self.world.apply(*events)
        self.perform_pending_tasks()
        return decision

    def _request(self, request: e.Event) -> Refusal | None:
        return self._apply(request).refusals.get(0)

    def _report(self, runs: Collection[Run], state: CheckState) -> None:
        for run in runs:
            self.world.checks.results[run.tip] = dict.fromkeys(run.required_statuses, state)
        revision = self.queue.counters.revision
        self._apply(*(self.world.host.read_checks(run.id, revision) for run in runs))

    def _in_progress(self, tested: Numbers, stack: Numbers | None) -> Run:
        matching = [
            run
            for run in self.world.runs_in_progress()
            if (_numbers(run.tested_members) == tested if stack is None else _numbers(run.stack) == stack)
        ]
        assert len(matching) == 1, f"{len(matching)} runs of {tested or stack}: {self.queue_text()}"
        return matching[0]

    def _stacks(self, kind: RunKind) -> tuple[Numbers, ...]:
        return tuple(_numbers(run.stack) for run in self.world.runs_in_progress() if run.kind is kind)

    def _landing_number(self) -> int:
        assert self.queue.landing is not None
        return self.queue.landing.number

    def _pending_tasks(self) -> list[t.Task]:
        return [task for task in pending_tasks(self.queue) if not isinstance(task, self._withheld)]

    def _perform(self, task: t.Task) -> bool:
        """Whether the queue changed."""
        before = self.queue
        self.world.apply(self._do_at_host(task))
        return self.queue is not before

    def _do_at_host(self, task: t.Task) -> e.Event:
        tip = self.tip()
        event = self.world.host.perform_task(task, self.queue.counters.revision)
        if isinstance(task, t.Land) and self.tip() != tip:
            self._record_update(task, event)
        return event

    def _check_invariants(self, *_: object) -> None:
        again = decide(self.queue, (), self.world.now)
        assert again.queue is self.queue, "deciding again without an event changed the queue"
        for submission in self.queue.submissions.values():
            waiting = wait_reason(self.queue, submission, self.world.now)
            assert waiting.prs or waiting.reason not in REASONS_THAT_NAME_PRS, (
                f"pull request {submission.number} waits for others but names none"
            )

    def _record_update(self, task: t.Land, event: e.Event) -> None:
        numbers = tuple(int(member.number) for member in task.members)
        if task.landing_method is LandingMethod.TESTED_COMMIT:
            self._updates.append(numbers)
        elif isinstance(event, e.LandingSucceeded | e.LandingMissed | e.LandingRefused):
            self._updates.extend((number,) for number in numbers[: len(event.steps)])


def _with_settings(config: Config, settings: StorySettings) -> Config:
    changes: dict[str, object] = {**settings}
    batch_size = changes.pop("batch", None)
    if batch_size is not None:
        changes.update(batch=True, batching_min_size=batch_size)
    return replace(config, **changes)


def _numbers(members: tuple[Member, ...]) -> Numbers:
    return tuple(int(member.number) for member in members)
