"""Submissions and queues as responses and pages show them: the state, its reason in prose, and the estimates."""

from functools import cached_property

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId
from mergeyard.domain.pull_requests import Requirement, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import REASON_MESSAGES, REQUIREMENT_REASONS, TERMINAL_STATES, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant, MergeEstimate
from mergeyard.engine import estimates, views
from mergeyard.engine.estimates import EtaModel
from mergeyard.ports.external import EMPTY_FORECAST, Forecast


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


class QueueView(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    submissions: tuple[SubmissionView, ...] = ()


def view_submission(
    queue: Queue, submission: Submission, now: Instant, forecast: Forecast = EMPTY_FORECAST
) -> SubmissionView:
    return SubmissionViewBuilder(queue, now, forecast).build(submission)


def view_queue(key: QueueKey, queue: Queue, now: Instant, forecast: Forecast = EMPTY_FORECAST) -> QueueView:
    """With all submissions that have not ended. Positions are counted once for all of them."""
    builder = SubmissionViewBuilder(queue, now, forecast)
    submissions = tuple(
        builder.build_live(submission, None if submission.state is PullRequestState.NOT_READY else position)
        for position, submission in enumerate(views.enqueued_submissions(queue, now), start=1)
    )
    return QueueView(key=key, queue=queue, submissions=submissions)


class SubmissionViewBuilder:
    """Builds the views of several submissions of one queue and computes the estimates of the queue only once."""

    def __init__(self, queue: Queue, now: Instant, forecast: Forecast = EMPTY_FORECAST) -> None:
        self._queue = queue
        self._now = now
        self._forecast = forecast

    @cached_property
    def _eta_model(self) -> EtaModel | None:
        return estimates.build_eta_model(self._queue, self._now)

    @cached_property
    def _is_front_estimated(self) -> bool:
        """In single mode all others merge after the first batch: without an estimate for it they have none either."""
        batches = self._queue.active.batches
        if self._queue.mode is Mode.PARALLEL or not batches:
            return True
        return self._estimate(self._queue.submissions[batches[0].submission_ids[0]], 1) is not None

    def build(self, submission: Submission) -> SubmissionView:
        if submission.state not in TERMINAL_STATES:
            return self.build_live(submission, views.position(self._queue, submission, self._now))
        message = render_reason(submission.reason, submission.detail, stacked_on=submission.stacked_on)
        return self._build(submission, ReasonView(submission.reason, message), submission.run)

    def build_live(self, submission: Submission, position: int | None) -> SubmissionView:
        reason, run_id = _wait_reason(self._queue, submission, self._now), views.displayed_run(self._queue, submission)
        return self._build(submission, reason, run_id, position)

    def _build(
        self, submission: Submission, reason: ReasonView, run_id: RunId | None, position: int | None = None
    ) -> SubmissionView:
        estimate = self._estimate(submission, position) if position and self._is_front_estimated else None
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
        )

    def _estimate(self, submission: Submission, position: int) -> MergeEstimate | None:
        """From the last forecast, however old, else from the ETA model. A forecast does not apply while the queue
        starts no runs."""
        if submission.id not in self._forecast or not self._queue.can_start_runs:
            return None if self._eta_model is None else self._eta_model.estimate(submission, position)
        forecast = self._forecast[submission.id]
        return forecast and MergeEstimate(max(self._now, forecast.median), max(self._now, forecast.p90))


def _wait_reason(queue: Queue, submission: Submission, now: Instant) -> ReasonView:
    waiting = views.wait_reason(queue, submission, now)
    is_stopped = waiting.reason in (Reason.QUEUE_PAUSED, Reason.QUEUE_DRAINING)
    detail = f"Reason: {queue.state_reason}" if is_stopped and queue.state_reason else ""
    if waiting.paths:
        paths = ", ".join(waiting.paths)
        detail = f"Changed: {paths}. Head to review and submit: {submission.pull_request.head}."
    if waiting.requirements:
        messages = list(map(render_requirement, waiting.requirements[:MAX_REQUIREMENTS]))
        hidden = len(waiting.requirements) - MAX_REQUIREMENTS
        more = [f"Further rules that are not met: {hidden}."] if hidden > 0 else []
        return ReasonView(waiting.reason, " ".join(messages + more))
    return ReasonView(waiting.reason, render_reason(waiting.reason, detail, checks=waiting.checks), waiting.prs)


MAX_REQUIREMENTS = 10
MAX_NAMES = 5
"""In one message; the API has all of them."""
MET_MESSAGES = {
    Reason.CHANGES_REQUESTED: "No reviewer requests changes.",
    Reason.WAITING_FOR_CODE_OWNER: "The code owners of the changed files approved.",
    Reason.WAITING_FOR_LAST_PUSH_APPROVAL: "The last push is approved.",
    Reason.WAITING_FOR_CONVERSATIONS: "All review conversations are resolved.",
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
            return f"Required checks of the pull request itself have not passed: {names}. Fix or rerun failed ones."
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


def render_reason(
    reason: Reason,
    detail: str = "",
    *,
    stacked_on: tuple[PullRequestNumber, ...] = (),
    checks: tuple[str, ...] = (),
    number_prefix: str = "#",
) -> str:
    """The message of a reason. `checks` are those that have not reported."""
    message = REASON_MESSAGES[reason]
    parts = [f"{message.removesuffix('.')}: {', '.join(checks)}." if checks else message]
    if stacked_on:
        parts.append(f"Tested on top of {', '.join(f'{number_prefix}{number}' for number in stacked_on)}.")
    if detail:
        parts.append(detail)
    return " ".join(parts)
