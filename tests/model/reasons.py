"""The laws of reasons: what a reason says is true of the queue before and after the decision that set it."""

from collections.abc import Sequence

from mergeyard.domain.events import Event, RestartRequested
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.engine import entries, run_lifecycle, run_validity
from mergeyard.engine.views import WaitReason

Numbers = tuple[PullRequestNumber, ...]


def check_reason(before: Queue, events: Sequence[Event], entry: PullRequestChanged, decision: Decision) -> None:
    """For the reasons of pull requests that were tested before, and have to be tested again."""
    if entry.to is PullRequestState.PENDING and entry.submission_id in before.submissions:
        _Retest(before, events, entry, decision).check()


class _Retest:
    def __init__(self, before: Queue, events: Sequence[Event], entry: PullRequestChanged, decision: Decision) -> None:
        self.before = before
        self.after = decision.queue
        self.events = events
        self.entry = entry
        self.causes = tuple(cause.number for cause in entry.causes)
        batch = entries.batch_of(before, entry.submission_id)
        self.runs: tuple[Run, ...] = () if batch is None else before.runs_of(batch)
        """The runs of its batch before the decision."""

    def check(self) -> None:
        law = LAWS.get(self.entry.reason)
        if law is not None:
            problem = law(self)
            assert not problem, f"{self.entry.number} is told {self.entry.reason}, but {problem}"

    def ahead_in(self, queue: Queue) -> Numbers:
        batch = entries.batch_of(queue, self.entry.submission_id)
        if batch is None:
            return ()
        ahead = run_validity.submission_ids_ahead(queue, batch)
        return tuple(queue.submissions[each].number for each in ahead)

    def is_active_after(self) -> bool:
        return entries.batch_of(self.after, self.entry.submission_id) is not None

    def tested_ahead(self) -> set[PullRequestNumber]:
        return {member.number for run in self.runs for member in run.prs_ahead}

    def has_kept_its_batch(self, number: PullRequestNumber) -> bool:
        submission_id = self.before.submission_by_number[number]
        before, after = (entries.batch_of(queue, submission_id) for queue in (self.before, self.after))
        return before is not None and after is not None and before.id == after.id

    def no_urgent_one_overtook_it(self) -> str:
        for number in self.causes:
            other = self.after.submission_of(number)
            if other is None or not other.is_urgent:
                return f"{number} is not urgent"
            if number == self.entry.number or number in self.ahead_in(self.before):
                return f"{number} was ahead before"
            order = self.after.active.submission_ids
            if self.is_active_after() and order.index(other.id) > order.index(self.entry.submission_id):
                return f"{number} is not ahead"
        return "" if self.causes else "no urgent one is named"

    def it_is_not_urgent(self) -> str:
        own = self.after.submission_of(self.entry.number)
        return "it is not urgent" if own is not None and not own.is_urgent else ""

    def none_ahead_left(self) -> str:
        if not self.tested_ahead():
            return "it had none ahead"
        stayed = [each for each in self.causes if self.has_kept_its_batch(each)]
        if stayed:
            return f"{stayed} did not leave"
        strangers = set(self.causes) - self.tested_ahead()
        if strangers:
            return f"{strangers} were not ahead"
        return "" if self.causes else "none that left is named"

    def the_order_is_the_same(self) -> str:
        before, after = self.ahead_in(self.before), self.ahead_in(self.after)
        # One that left its batch and came back was not tested where it is now.
        if self.is_active_after() and before == after and all(map(self.has_kept_its_batch, before)):
            return "those ahead are the same"
        gone = [each for each in before if each in self.causes and self.after.submission_of(each) is None]
        return f"{gone} left" if gone else ""

    def it_depends_on_the_same(self) -> str:
        before, after = set(self.ahead_in(self.before)), set(self.ahead_in(self.after))
        if self.is_active_after() and before == after:
            return "it depends on the same as before"
        # One that the deciding run left out was expected to leave, and its stack is the same without it.
        batch = entries.batch_of(self.before, self.entry.submission_id)
        deciding = None if batch is None else run_validity.current_run(self.before, batch)
        excluded = () if deciding is None else deciding.excluded_submission_ids
        gone = [each for each in before - after if self.after.submission_of(each) is None]
        landed = self.after.target_branch.landed_submission_ids
        known = {*landed, *excluded}
        left = [each for each in gone if self.before.submission_by_number[each] not in known]
        return f"{left} left" if left else ""

    def no_batchmate_left(self) -> str:
        if entries.bisection_of(self.before, self.entry.submission_id) is not None:
            return "" if self.causes else "none that left is named"
        mates = {member.number for run in self.runs for member in run.tested_members}
        strangers = set(self.causes) - mates
        if strangers or not self.causes:
            return f"{strangers or 'none'} were in its batch"
        batch = entries.batch_of(self.after, self.entry.submission_id)
        now = () if batch is None else batch.submission_ids
        stayed = [each for each in self.causes if self.after.submission_by_number.get(each) in now]
        return f"{stayed} are still in its batch" if stayed else ""

    def the_target_branch_is_the_same(self) -> str:
        target, removed = self.after.target_branch, self.before.target_branch.removed_commits
        if target.tip is None:
            return "the target branch is gone"
        moved = any(run.base != target.tip for run in self.runs) or target.removed_commits != removed
        return "" if moved else "the target branch is where it was"

    def the_target_branch_exists(self) -> str:
        return "" if self.after.target_branch.tip is None else "the target branch exists"

    def no_later_run_had_passed(self) -> str:
        behind = [
            run
            for run in self.before.runs.values()
            if run.status is RunStatus.SUCCEEDED
            and any(member.submission_id == self.entry.submission_id for member in run.prs_ahead)
        ]
        if not self.before.config.can_optimistically_merge or not behind:
            return "no later run had passed"
        return "" if self.after.config.can_optimistically_merge else "optimistic merging was turned off"

    def optimistic_merging_is_on(self) -> str:
        was_on, is_on = (each.config.can_optimistically_merge for each in (self.before, self.after))
        return "" if was_on and not is_on else "optimistic merging was not turned off"

    def no_user_restarted(self) -> str:
        return (
            "" if any(isinstance(event, RestartRequested) for event in self.events) else "no user restarted the tests"
        )

    def the_queue_was_not_resumed(self) -> str:
        return "" if self.before.is_paused and not self.after.is_paused else "the queue was not resumed"

    def the_mode_is_the_same(self) -> str:
        return "the mode is the same" if self.before.mode is self.after.mode else ""

    def the_checks_are_the_same(self) -> str:
        required = set(run_validity.required_statuses(self.after).statuses)
        same = all(required <= set(run.required_statuses) for run in self.runs)
        return "the required checks are the same" if self.runs and same else ""

    def some_check_is_required(self) -> str:
        reason = run_validity.untestable_reason(self.after)
        return "" if reason is self.entry.reason else f"the required checks are {reason}"

    def it_names_none(self) -> str:
        return "" if self.causes else "it names no other pull request"


LAWS = {
    Reason.SKIP_THE_LINE_INTERRUPTED: _Retest.no_urgent_one_overtook_it,
    Reason.MADE_URGENT: _Retest.it_is_not_urgent,
    Reason.PREREQUISITE_REMOVED: _Retest.none_ahead_left,
    Reason.ORDER_CHANGED: _Retest.the_order_is_the_same,
    Reason.DEPENDENCIES_CHANGED: _Retest.it_depends_on_the_same,
    Reason.CONTAINS_WAITING_PR: _Retest.it_names_none,
    Reason.CONFLICTS_WITH_PR_AHEAD: _Retest.it_names_none,
    Reason.BATCHMATE_REMOVED: _Retest.no_batchmate_left,
    Reason.TARGET_BRANCH_MOVED: _Retest.the_target_branch_is_the_same,
    Reason.TARGET_BRANCH_MISSING: _Retest.the_target_branch_exists,
    Reason.CLEARANCE_WITHDRAWN: _Retest.no_later_run_had_passed,
    Reason.OPTIMISTIC_MERGING_OFF: _Retest.optimistic_merging_is_on,
    Reason.TESTS_RESTARTED: _Retest.no_user_restarted,
    Reason.QUEUE_RESUMED: _Retest.the_queue_was_not_resumed,
    Reason.MODE_SWITCHED: _Retest.the_mode_is_the_same,
    Reason.REQUIRED_STATUSES_CHANGED: _Retest.the_checks_are_the_same,
    Reason.NO_REQUIRED_STATUSES: _Retest.some_check_is_required,
    Reason.CONFIG_INVALID: _Retest.some_check_is_required,
}
"""For each reason, what would make it false."""


def check_wait_reason(queue: Queue, submission: Submission, waiting: WaitReason) -> None:
    """A pull request that waits for a slot has none to take, and one that waits for others names them."""
    name = f"{submission.number} ({submission.state}) waits for {waiting.reason}"
    match waiting.reason:
        case Reason.WAITING_FOR_SLOT:
            free = run_lifecycle.free_slots(queue)
            if entries.bisection_of(queue, submission.id) is not None:
                free = run_lifecycle.free_bisection_slots(queue)
            assert not free, f"{name}, and {free} are free"
        case Reason.WAITING_FOR_PRS_AHEAD | Reason.WAITING_FOR_PRS_BEHIND | Reason.CONFLICTS_WITH_PR_AHEAD:
            assert waiting.prs, f"{name} and names none"
        case Reason.WAITING_FOR_BATCH:
            assert queue.config.batch, f"{name} in a queue without batches"
        case Reason.WAITING_FOR_CHECKS:
            active = [run for run in queue.runs.values() if run.is_active]
            tested = {member.submission_id for run in active for member in run.stack}
            assert submission.id in tested, f"{name}, and no run tests it"
        case _:
            pass
