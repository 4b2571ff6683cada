"""Submissions and queues as responses and pages show them: the state, its reason in prose, and the estimates."""

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, PullRequestNumber, QueueId, QueueKey, RunId
from mergeyard.domain.journal import SYSTEM_ACTOR, Cause, PullRequestEntry, PullRequestUpdated
from mergeyard.domain.pull_requests import Requirement, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import (
    REASON_MESSAGES,
    REQUIREMENT_REASONS,
    TERMINAL_STATES,
    USER,
    USER_REASONS,
    PullRequestState,
    Reason,
)
from mergeyard.domain.timestamps import Instant, MergeEstimate, format_clock
from mergeyard.engine import entries, views
from mergeyard.engine.timetable import NoEstimate, Outlook, Timetable
from mergeyard.ports.external import EMPTY_FORECAST, Forecast
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.queue_overview import QueueOverview


class ReasonView(Struct, frozen=True):
    code: Reason
    message: str
    waiting_for: tuple[PullRequestNumber, ...] = ()


class RequirementView(Struct, frozen=True, kw_only=True):
    """Something that a rule of the Git host requires of a pull request."""

    code: Reason
    message: str
    needed: int
    given: int | None
    names: tuple[str, ...]
    met: bool


NO_ACTION = "No action is needed yet."


class BisectionNote(Struct, frozen=True):
    """What the bisection of a failed batch means for one of its pull requests."""

    id: BatchId
    message: str


class SubmissionView(Struct, frozen=True, kw_only=True):
    queue_id: QueueId
    target_branch: str
    is_parallel: bool
    has_impacted_targets: bool
    submission: Submission
    reason: ReasonView
    run_id: RunId | None
    position: int | None
    estimated_merge_at: Instant | None = None
    """The median estimate."""
    estimated_merge_at_p90: Instant | None = None
    """The 90th percentile of the estimate."""
    estimate_note: str = ""
    """Why there is no estimate; empty with one, and after the end."""
    bisection: BisectionNote | None = None

    @property
    def requirements(self) -> tuple[RequirementView, ...]:
        """Also those that are met."""
        required = self.submission.pull_request.requirements
        return tuple(
            RequirementView(
                code=each.reason,
                message=render_requirement(each),
                needed=each.needed,
                given=each.given,
                names=each.names,
                met=each.is_met,
            )
            for each in sorted(required, key=lambda each: REQUIREMENT_REASONS.index(each.reason))
        )

    @property
    def is_ready_while_not_running(self) -> bool:
        """It lacks nothing, and is admitted as soon as the queue runs."""
        return (
            self.submission.state is PullRequestState.NOT_READY
            and self.reason.code in views.NOT_RUNNING_REASONS.values()
        )


class ObstacleView(Struct, frozen=True):
    code: Reason
    message: str
    since: Instant
    number: PullRequestNumber | None
    """The only pull request that is concerned; None: the whole queue."""
    until: Instant | None = None
    """When it ends, if the Git host named a time."""


class NextMergeView(Struct, frozen=True):
    at: Instant | None
    note: str = ""
    """Why the time is not known, or what it says about the runs."""


class QueueView(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    submissions: tuple[SubmissionView, ...] = ()
    next_merge: NextMergeView | None = None
    """None where it was not asked for."""
    overview: QueueOverview | None = None
    """None where it was not asked for."""


def view_submission(
    queue: Queue, submission: Submission, now: Instant, forecast: Forecast = EMPTY_FORECAST
) -> SubmissionView:
    return SubmissionViewBuilder(queue, now, forecast).build(submission)


def view_obstacle(queue: Queue) -> ObstacleView | None:
    """What keeps the queue from working with its Git host."""
    obstacle = queue.obstacle
    if obstacle is None:
        return None
    detail = _describe_obstacle(obstacle.detail, obstacle.until)
    if obstacle.only_waiting:
        detail = f"{detail} What is under test goes on."
    message = render_reason(obstacle.reason, detail)
    return ObstacleView(obstacle.reason, message, obstacle.since, obstacle.number, obstacle.until)


def _describe_obstacle(host_text: str, until: Instant | None) -> str:
    if until is not None:
        return f"It accepts them again at {format_clock(until)}."
    if host_text:
        return _render_host_text(host_text)
    return ""


def _render_host_text(text: str) -> str:
    return f"Its message: {text}"


def view_queue(key: QueueKey, queue: Queue, now: Instant, forecast: Forecast = EMPTY_FORECAST) -> QueueView:
    """With all submissions that have not ended. Positions are counted once for all of them."""
    builder = SubmissionViewBuilder(queue, now, forecast)
    submissions = tuple(
        builder.build_live(submission, None if submission.state is PullRequestState.NOT_READY else position)
        for position, submission in enumerate(views.enqueued_submissions(queue, now), start=1)
    )
    return QueueView(key=key, queue=queue, submissions=submissions, next_merge=builder.view_next_merge())


class SubmissionViewBuilder:
    """Builds the views of several submissions of one queue and computes the estimates of the queue only once."""

    def __init__(self, queue: Queue, now: Instant, forecast: Forecast = EMPTY_FORECAST) -> None:
        self._queue = queue
        self._now = now
        self._forecast = forecast

    @cached_property
    def _timetable(self) -> Timetable:
        return Timetable(self._queue, self._now, self._forecast)

    def build(self, submission: Submission) -> SubmissionView:
        if submission.state not in TERMINAL_STATES:
            return self.build_live(submission, views.position(self._queue, submission, self._now))
        return self._build(submission, ReasonView(submission.reason, render_last_change(submission)), submission.run)

    def build_live(self, submission: Submission, position: int | None) -> SubmissionView:
        reason, run_id = _wait_reason(self._queue, submission, self._now), views.displayed_run(self._queue, submission)
        return self._build(submission, reason, run_id, position)

    def _build(
        self, submission: Submission, reason: ReasonView, run_id: RunId | None, position: int | None = None
    ) -> SubmissionView:
        outlook = self._find_outlook(submission, position)
        estimate = outlook if isinstance(outlook, MergeEstimate) else None
        note = ESTIMATE_NOTES[outlook] if isinstance(outlook, NoEstimate) else ""
        return SubmissionView(
            queue_id=self._queue.id,
            target_branch=self._queue.target_branch.name,
            is_parallel=self._queue.config.mode is Mode.PARALLEL,
            has_impacted_targets=submission.impacted_targets is not None,
            submission=submission,
            reason=reason,
            run_id=run_id,
            position=position,
            estimated_merge_at=None if estimate is None else estimate.median,
            estimated_merge_at_p90=None if estimate is None else estimate.p90,
            estimate_note=note,
            bisection=describe_bisection(self._queue, submission),
        )

    def _find_outlook(self, submission: Submission, position: int | None) -> Outlook | None:
        if submission.state in TERMINAL_STATES:
            return None
        return self._timetable.look_up(submission, position)

    def view_next_merge(self) -> NextMergeView:
        found = self._timetable.find_next_merge()
        if isinstance(found.outlook, NoEstimate):
            return NextMergeView(None, ESTIMATE_NOTES[found.outlook])
        return NextMergeView(found.outlook.median, LATE_NOTE if found.is_late else "")


def describe_bisection(queue: Queue, submission: Submission) -> BisectionNote | None:
    bisection = entries.bisection_of(queue, submission.id)
    if bisection is None:
        return None
    if bisection.is_searching:
        return BisectionNote(
            bisection.id, f"Bisecting the failed batch: this pull request is a possible culprit. {NO_ACTION}"
        )
    unmerged = [
        queue.submissions[each].number
        for each in bisection.prefix
        if each in queue.submissions and each not in bisection.merged_submission_ids
    ]
    if unmerged:
        verb = "merges" if len(unmerged) == 1 else "merge"
        next_step = f"The queue tests it again after {format_numbers(unmerged)} {verb}."
    else:
        next_step = "The queue tests it again before it decides."
    message = f"Bisecting the failed batch: this pull request is the likely culprit. {next_step} {NO_ACTION}"
    return BisectionNote(bisection.id, message)


MAX_NUMBERS_LISTED = 6


def format_numbers(numbers: Sequence[PullRequestNumber]) -> str:
    """#1, #2 and #3; after the first few only a count."""
    names = [f"#{number}" for number in numbers]
    if len(names) > MAX_NUMBERS_LISTED:
        names = [*names[:MAX_NUMBERS_LISTED], f"{len(names) - MAX_NUMBERS_LISTED} more"]
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


ESTIMATE_NOTES = {
    NoEstimate.NOT_QUEUED: "it is not queued yet",
    NoEstimate.QUEUE_PAUSED: "the queue is paused",
    NoEstimate.SWITCHING_MODES: "the queue is switching modes",
    NoEstimate.HOST_UNREACHABLE: "the queue cannot reach the repository",
    NoEstimate.HOST_LIMITS: "the Git host limits how many requests it accepts",
    NoEstimate.HOST_REFUSES: "the Git host refuses what the queue asks of it",
    NoEstimate.SERVER_FAILING: "the server of the queue fails",
    NoEstimate.TARGET_BRANCH_MISSING: "the target branch does not exist",
    NoEstimate.CHECKS_UNKNOWN: "no required checks are known",
    NoEstimate.NO_RUN_PASSED: "no run has passed yet",
    NoEstimate.HELD: "it cannot be tested yet",
    NoEstimate.CAUSE_NOT_CONFIRMED: "the queue has not confirmed which pull request is the culprit",
    NoEstimate.UNCERTAIN: "it is too uncertain whether it will merge",
    NoEstimate.FIRST_UNKNOWN: "the first pull request has none either",
    NoEstimate.NOTHING_QUEUED: "nothing is queued",
}
"""They follow "No estimate:", or stand for the time of the next merge."""
LATE_NOTE = "running longer than usual"


def _wait_reason(queue: Queue, submission: Submission, now: Instant) -> ReasonView:
    waiting = views.wait_reason(queue, submission, now)
    is_stopped = waiting.reason in (Reason.QUEUE_PAUSED, Reason.QUEUE_DRAINING)
    detail = f"Reason: {queue.state_reason}" if is_stopped and queue.state_reason else ""
    if waiting.detail or waiting.until is not None:
        detail = _describe_obstacle(waiting.detail, waiting.until)
    if waiting.paths:
        paths = ", ".join(waiting.paths)
        detail = f"Changed: {paths}. Head to review and submit: {submission.pull_request.head}."
    if waiting.requirements:
        messages = list(map(render_requirement, waiting.requirements[:MAX_REQUIREMENTS]))
        hidden = len(waiting.requirements) - MAX_REQUIREMENTS
        more = [f"Further rules that are not met: {hidden}."] if hidden > 0 else []
        return ReasonView(waiting.reason, " ".join(messages + more))
    if submission.state is PullRequestState.PENDING and submission.causes:
        detail = render_last_change(submission)
    return ReasonView(waiting.reason, render_reason(waiting.reason, detail, checks=waiting.checks), waiting.prs)


MAX_CAUSES = 5
MAX_REQUIREMENTS = 10
MAX_NAMES = 5
"""In one message; the API has all of them."""
MET_MESSAGES = {
    Reason.CHANGES_REQUESTED: "No reviewer requests changes.",
    Reason.WAITING_FOR_CODE_OWNER: "The code owners of the changed files approved.",
    Reason.WAITING_FOR_LAST_PUSH_APPROVAL: "The last push is approved.",
    Reason.WAITING_FOR_CONVERSATIONS: "All review conversations are resolved.",
    Reason.HEAD_CHECKS_FAILED: "No required check of the pull request itself failed.",
    Reason.WAITING_FOR_HEAD_CHECKS: "The required checks of the pull request itself passed.",
    Reason.WAITING_FOR_DEPLOYMENTS: "The head is deployed as required.",
    Reason.BLOCKED_BY_HOST_RULE: "The rule of the Git host allows the merge.",
    Reason.COMMITS_UNSIGNED: "The commits are signed as the Git host requires.",
    Reason.SIGNING_KEY_NOT_ACCEPTED: "The Git host accepts the signing key of the queue.",
    Reason.HOST_RULE_UNREADABLE: "The queue can read the rules of the Git host.",
}


def render_requirement(requirement: Requirement) -> str:
    """What the pull request has or lacks of one rule, with the names that the Git host shows."""
    shown = ", ".join(requirement.names[:MAX_NAMES])
    names = f"{shown} and others" if len(requirement.names) > MAX_NAMES else shown
    if requirement.given is None:
        return _render_unknown(requirement, names)
    given = f"{requirement.given} of {requirement.needed} approvals"
    if requirement.given > requirement.needed:
        given = f"{requirement.given} approvals, {requirement.needed} required"
    if requirement.is_met:
        return MET_MESSAGES.get(requirement.reason, f"{given}.")
    match requirement.reason:
        case Reason.WAITING_FOR_REVIEW:
            return f"Waiting for a review from {names} ({given})." if names else f"Waiting for a review ({given})."
        case Reason.CHANGES_REQUESTED if names:
            return f"Changes were requested by {names}. Make them, and ask for another review."
        case Reason.WAITING_FOR_CODE_OWNER if names:
            return f"Waiting for a review from a code owner: {names}."
        case Reason.WAITING_FOR_LAST_PUSH_APPROVAL if names:
            return f"Waiting for an approval of the last push, by another person than {names}."
        case Reason.WAITING_FOR_CONVERSATIONS:
            return f"Unresolved review conversations: {requirement.needed - requirement.given}. Resolve them."
        case Reason.WAITING_FOR_HEAD_CHECKS if names:
            return f"Required checks of the pull request itself are running or have not reported: {names}."
        case Reason.HEAD_CHECKS_FAILED if names:
            return f"Required checks of the pull request itself failed: {names}. Fix or rerun them."
        case Reason.WAITING_FOR_DEPLOYMENTS if names:
            return f"Waiting for a deployment of the head to: {names}."
        case Reason.BLOCKED_BY_HOST_RULE if names:
            return f"A rule of the Git host blocks the pull request: {names}. Satisfy or change the rule."
        case Reason.COMMITS_UNSIGNED if names:
            return f"The Git host requires signed commits and does not accept {names}. Sign them, then push."
        case Reason.SIGNING_KEY_NOT_ACCEPTED if names:
            return f"The Git host requires signed commits: {names}. An administrator has to set or register the key."
        case _:
            return REASON_MESSAGES[requirement.reason]


def _render_unknown(requirement: Requirement, names: str) -> str:
    """For a rule that cannot be read, `names` are permissions, else the rules that the queue cannot check."""
    effect, verb = (", and goes on without it", "can") if requirement.is_met else ("", "has to")
    if requirement.reason is Reason.HOST_RULE_UNREADABLE:
        permission = f": {names}" if names else " the permission"
        return f"The queue cannot read a rule of the Git host{effect}. An administrator {verb} grant{permission}."
    rule = f": {names}" if names else ""
    next_step = "" if requirement.is_met else " An administrator has to change it, or set unreadable_rules to unknown."
    return f"The queue cannot check a rule of the Git host{effect}{rule}.{next_step}"


CAUSE_MESSAGES = {
    Reason.SKIP_THE_LINE_INTERRUPTED: "{who} went ahead. This one is tested again on top of {it}.",
    Reason.PREREQUISITE_REMOVED: "{who} {is_} no longer ahead. This one is tested again without {it}.",
    Reason.BATCHMATE_REMOVED: "{who} left the batch. The others are tested again.",
    Reason.ORDER_CHANGED: "{who} changed the order of the pull requests ahead. This one is tested again.",
    Reason.MERGED_WITH_ANOTHER: "The queue merged {who}, which contains all commits of this one.",
}
"""The messages of reasons that name other pull requests."""
ACTS = {Reason.CANCELLED_BY_USER: "removed", Reason.MADE_URGENT: "made urgent"}


def render_entry(entry: PullRequestEntry) -> str:
    """The message of an entry of the timeline."""
    if isinstance(entry, PullRequestUpdated):
        return render_reason(entry.reason, entry.detail, actor=entry.actor)
    stacked_on, causes = entry.stacked_on, entry.causes
    return render_reason(entry.reason, entry.detail, stacked_on=stacked_on, causes=causes, actor=entry.actor)


def render_last_change(submission: Submission, number_prefix: str = "#") -> str:
    """Why the submission is in its state."""
    return render_reason(
        submission.reason,
        submission.detail,
        stacked_on=submission.stacked_on,
        causes=submission.causes,
        actor=submission.changed_by,
        number_prefix=number_prefix,
    )


def render_reason(
    reason: Reason,
    detail: str = "",
    *,
    stacked_on: tuple[PullRequestNumber, ...] = (),
    causes: tuple[Cause, ...] = (),
    actor: str = SYSTEM_ACTOR,
    checks: tuple[str, ...] = (),
    number_prefix: str = "#",
) -> str:
    """The message of a reason. `checks` are those that have not reported, `actor` is who caused the change."""
    message = REASON_MESSAGES[reason]
    if actor != SYSTEM_ACTOR and reason in USER_REASONS:
        message = message.replace(USER, decode_actor_name(actor), 1)
    if causes and reason in CAUSE_MESSAGES:
        message = _render_causes(CAUSE_MESSAGES[reason], causes, number_prefix)
    parts = [f"{message.removesuffix('.')}: {', '.join(checks)}." if checks else message]
    if stacked_on:
        parts.append(f"Tested on top of {', '.join(f'{number_prefix}{number}' for number in stacked_on)}.")
    if detail:
        parts.append(detail)
    return " ".join(parts)


def _render_causes(message: str, causes: Sequence[Cause], number_prefix: str) -> str:
    """`#1, #2 and #3`; after the first few only a count."""
    names = [_render_cause(cause, number_prefix) for cause in causes[:MAX_CAUSES]]
    hidden = len(causes) - MAX_CAUSES
    if hidden > 0:
        names.append(f"{hidden} more")
    if len(names) == 1:
        return message.format(who=names[0], is_="is", it="it")
    *others, last = names
    # One with a subordinate clause ends with a comma of its own.
    listed = ", ".join(name.removesuffix(",") for name in others)
    comma = "," if others[-1].endswith(",") else ""
    return message.format(who=f"{listed}{comma} and {last}", is_="are", it="them")


def _render_cause(cause: Cause, number_prefix: str) -> str:
    number = f"{number_prefix}{cause.number}"
    if cause.act is None:
        return number
    if cause.actor == SYSTEM_ACTOR:
        return f"{number}, which was {ACTS[cause.act]},"
    return f"{number}, which {decode_actor_name(cause.actor)} {ACTS[cause.act]},"
