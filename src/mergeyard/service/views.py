"""Submissions and queues as responses and pages show them: the state, its reason in prose, and the estimates."""

from functools import cached_property

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, RunId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import REASON_MESSAGES, TERMINAL_STATES, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant, MergeEstimate
from mergeyard.engine import estimates, views
from mergeyard.engine.estimates import EtaModel
from mergeyard.ports.external import EMPTY_FORECAST, Forecast


class ReasonView(Struct, frozen=True):
    code: Reason
    message: str
    waiting_for: tuple[PullRequestNumber, ...] = ()


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
    return ReasonView(waiting.reason, render_reason(waiting.reason, detail, checks=waiting.checks), waiting.prs)


def render_reason(
    reason: Reason, detail: str = "", *, stacked_on: tuple[PullRequestNumber, ...] = (), checks: tuple[str, ...] = ()
) -> str:
    """The message of a reason. `checks` are those that have not reported."""
    message = REASON_MESSAGES[reason]
    parts = [f"{message.removesuffix('.')}: {', '.join(checks)}." if checks else message]
    if stacked_on:
        parts.append(f"Tested on top of {', '.join(f'#{number}' for number in stacked_on)}.")
    if detail:
        parts.append(detail)
    return " ".join(parts)
