"""What pages show of a run: its checks, purpose, duration and progress."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import REASON_MESSAGES, CheckState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import estimates
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.runs import RunView, RunWithStatuses
from mergeyard.service.views import format_numbers
from mergeyard.web.formats import check_output_url, format_duration, safe_external_url

BAR_LENGTH_FACTOR = 1.25
"""The whole bar stands for this multiple of the usual duration, so that a run of usual length does not fill it."""


class RunDuration(Struct, frozen=True):
    elapsed_ms: int | None
    """None before the run starts."""
    usual_ms: int | None

    @property
    def is_late(self) -> bool:
        return self.usual_ms is not None and self.elapsed_ms is not None and self.elapsed_ms > self.usual_ms

    @property
    def typical(self) -> str:
        """To compare the elapsed time with."""
        return "no typical duration yet" if self.usual_ms is None else f"typically {format_duration(self.usual_ms)}"

    @property
    def elapsed_percent(self) -> int | None:
        """The filled part of the bar in percent; None as long as the usual duration is unknown."""
        return self._to_percent(self.elapsed_ms)

    @property
    def usual_percent(self) -> int | None:
        """The position of the usual duration in the bar, in percent."""
        return self._to_percent(self.usual_ms)

    def _to_percent(self, milliseconds: int | None) -> int | None:
        if not self.usual_ms or milliseconds is None:
            return None
        bar_length = max(self.usual_ms * BAR_LENGTH_FACTOR, self.elapsed_ms or 0)
        return round(100 * milliseconds / bar_length)


def measure_duration(run: Run, queue: Queue, now: Instant) -> RunDuration:
    elapsed = None if run.started_at is None else max(0, (run.decided_at or now) - run.started_at)
    return RunDuration(elapsed, estimates.median_run_duration_ms(queue))


class RunProgress(Struct, frozen=True):
    run: Run
    duration: RunDuration
    excluded: Sequence[PullRequestNumber]
    """Pull requests ahead that the run leaves out because they are expected to leave the queue."""

    @property
    def has_page(self) -> bool:
        """Whether the run has a page; a run that is still being built has none."""
        return self.run.status is not RunStatus.PREPARING

    @property
    def checks(self) -> list[CheckState]:
        """In the order of the required checks."""
        return [self.run.checks.get(name, CheckState.PENDING) for name in self.run.required_statuses]

    @property
    def done(self) -> int:
        return sum(check is not CheckState.PENDING for check in self.checks)

    @property
    def is_overdue(self) -> bool:
        return self.run.is_active and self.duration.is_late


def measure_progress(queue: Queue, run: Run, now: Instant) -> RunProgress:
    return RunProgress(run, measure_duration(run, queue, now), _list_excluded(run, queue))


def _list_excluded(run: Run, queue: Queue) -> list[PullRequestNumber]:
    excluded = sorted(run.excluded_submission_ids)
    return [queue.submissions[each].number for each in excluded if each in queue.submissions]


DONE_STATES = frozenset(StatusState) - {StatusState.PENDING}
STATE_BY_RESULT = {
    CheckState.PASSED: StatusState.SUCCESS,
    CheckState.NEUTRAL: StatusState.NEUTRAL,
    CheckState.FAILED: StatusState.FAILURE,
}


class CheckView(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    """A key of the check state labels: a `StatusState`, `missing`, `never` or `unfinished`."""
    link: str | None = None
    description: str = ""
    at: Instant | None = None
    after_ms: int | None = None
    """How long after the start of the run it reported its result."""

    @property
    def leads_outside(self) -> bool:
        return self.link is not None and not self.link.startswith("/")


class RunChecks(Struct, frozen=True):
    required: tuple[CheckView, ...]
    others: tuple[CheckView, ...]

    @property
    def done(self) -> int:
        return sum(check.state in DONE_STATES for check in self.required)

    @property
    def culprits(self) -> tuple[CheckView, ...]:
        """The checks because of which the run did not pass: those that failed, else those without a result."""
        failed = tuple(check for check in self.required if check.state in ("failure", "error"))
        return failed or tuple(check for check in self.required if check.state not in DONE_STATES)


def build_run_checks(reported: RunWithStatuses | RunView, source: ChecksFrom) -> RunChecks:
    run = reported.run
    by_name = {status.context: _build_check(run, status, source) for status in reported.statuses}
    return RunChecks(
        required=tuple(by_name.get(name) or _build_check_without_status(run, name) for name in run.required_statuses),
        others=tuple(check for name, check in by_name.items() if name not in run.required_statuses),
    )


def _build_check_without_status(run: Run, name: str) -> CheckView:
    """The run keeps the result of a required check longer than the store keeps what the check reported."""
    result = STATE_BY_RESULT.get(run.checks.get(name, CheckState.PENDING))
    return CheckView(name=name, state=result or ("missing" if run.is_active else "never"))


def _build_check(run: Run, status: Status, source: ChecksFrom) -> CheckView:
    """A check that Mergeyard runs itself links to the page with its output, any other one to the reported URL."""
    state = status.state if run.is_active else _final_state(run, status)
    is_result = state in DONE_STATES and state == status.state
    elapsed = None if run.started_at is None else status.at - run.started_at
    return CheckView(
        name=status.context,
        state=state,
        link=check_output_url(run.id, status.context) if source is ChecksFrom.RUN else safe_external_url(status.url),
        description=status.description if state == status.state else "",
        at=status.at,
        after_ms=elapsed if is_result and elapsed is not None and elapsed >= 0 else None,
    )


def _final_state(run: Run, status: Status) -> str:
    """What the run ended with: a check that is run again later reports to the same commit."""
    result = run.checks.get(status.context, CheckState.PENDING)
    if result is not CheckState.PENDING and result is not status.check_state:
        return STATE_BY_RESULT[result]
    return "unfinished" if status.check_state is CheckState.PENDING else status.state


def name_run(run: Run, target_branch: str) -> str:
    """`Test run for #10`; the page adds the id."""
    match run.kind:
        case RunKind.BATCH:
            return f"Test run for {_format_members(run.tested_members)}"
        case RunKind.BISECTION:
            return f"Bisection run for {_format_members(run.tested_members)}"
        case RunKind.BASE:
            return f"Baseline run for {target_branch}"
        case _:
            assert_never(run.kind)


def describe_purpose(run: Run, target_branch: str) -> str:
    tested = _format_members(run.tested_members)
    match run.kind:
        case RunKind.BATCH:
            return f"Tests {tested} on top of {_format_members(run.prs_ahead) or target_branch}."
        case RunKind.BISECTION:
            base = f" on top of {_format_members(run.prs_ahead)}" if run.prs_ahead else ""
            return f"Tests {tested}{base}, to find the culprit of a failed batch."
        case RunKind.BASE:
            return f"Tests {target_branch} alone, to find out whether it passes without the pull requests."
        case _:
            assert_never(run.kind)


def list_remarks(run: Run, queue: Queue) -> Iterator[str]:
    if run.attempt:
        yield f"Retry {run.attempt}: the run before it failed, and the queue tests again before it decides."
    if run.timed_out:
        yield f"Timed out: not every required check reported within {format_duration(run.timeout_ms)}."
    if run.restart_requested:
        yield "A user restarted the tests."
    if run.invalidated is not None:
        yield f"The result no longer counts. {REASON_MESSAGES[run.invalidated]}"
    elif run.status is RunStatus.CANCELLED:
        yield "Stopped, because the result would no longer count."
    if excluded := _list_excluded(run, queue):
        numbers = format_numbers(excluded)
        yield f"Does not contain {numbers}: its result does not count if one of these merges."


def _format_members(members: Iterable[Member]) -> str:
    return format_numbers([member.number for member in members])
