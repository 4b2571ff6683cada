"""The page of a pull request: where it is and why, its requirements, test runs and timeline."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR, PullRequestChanged, PullRequestEntry, PullRequestUpdated
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import (
    REASON_MESSAGES,
    TERMINAL_STATES,
    Mergeability,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
)
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine import run_validity
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.previews import explain_merge
from mergeyard.service.pull_request_details import PullRequestDetails
from mergeyard.service.runs import TEST_FAILURES
from mergeyard.service.views import (
    MAX_NUMBERS_LISTED,
    NO_ACTION,
    RequirementView,
    SubmissionView,
    format_numbers,
    render_entry,
)
from mergeyard.web import run_progress
from mergeyard.web.formats import (
    REQUIREMENT_LABELS,
    format_duration,
    page_not_found,
    parse_integer,
    parse_number,
    parse_repo,
    pluralize,
    shorten_id,
)
from mergeyard.web.rendering import PageRequest

STEPS = ("Submitted", "Queued", "Testing", "Passed", "Merged")
REACHED_STEP = {
    PullRequestState.NOT_READY: 0,
    PullRequestState.PENDING: 1,
    PullRequestState.TESTING: 2,
    PullRequestState.PENDING_FAILURE: 2,
    PullRequestState.TESTS_PASSED: 3,
    PullRequestState.MERGED: 4,
}
EXIT_LABELS = {PullRequestState.FAILED: "Failed", PullRequestState.CANCELLED: "Removed"}


class ProgressStep(Struct, frozen=True):
    name: str
    stage: str
    """`passed`, `here`, `ahead`, or `off` for a pull request that left without merging. Also the CSS class."""


def build_progress_steps(state: PullRequestState, timeline: Sequence[PullRequestEntry]) -> tuple[ProgressStep, ...]:
    """The timeline is newest first: for a pull request that left, its first entry has the last state before."""
    if state in EXIT_LABELS:
        changes = [entry for entry in timeline if isinstance(entry, PullRequestChanged)]
        before = changes[0].source if changes else None
        reached = 0 if before is None else REACHED_STEP[before]
        return (*_passed_steps(reached + 1), ProgressStep(EXIT_LABELS[state], "off"))
    reached = REACHED_STEP[state]
    here = ProgressStep(STEPS[reached], "passed" if state in TERMINAL_STATES else "here")
    return (*_passed_steps(reached), here, *(ProgressStep(name, "ahead") for name in STEPS[reached + 1 :]))


def _passed_steps(count: int) -> tuple[ProgressStep, ...]:
    return tuple(ProgressStep(name, "passed") for name in STEPS[:count])


def describe_situation(queue: Queue, view: SubmissionView) -> str:
    """Why the pull request is in its state. More specific than the message of the reason, which every pull request with
    this reason has in common."""
    state, waiting_for = view.submission.state, view.reason.waiting_for
    match view.reason.code:
        case Reason.WAITING_FOR_SLOT:
            message = f"Waiting for a free test slot ({_describe_position(view)})."
        case Reason.WAITING_FOR_PRS_AHEAD if waiting_for:
            names = format_numbers(waiting_for)
            count = len(waiting_for)
            ahead = names if count <= MAX_NUMBERS_LISTED else pluralize(count, "pull request")
            message = f"Waiting for {ahead} ahead."
        case Reason.WAITING_FOR_BATCH if queue.config.batch_size > 1:
            wait = format_duration(queue.config.batching_max_wait_time_minutes * MINUTE)
            message = f"Waiting for more pull requests: a batch starts with {queue.config.batch_size}, or after {wait}."
        case Reason.NO_REQUIRED_STATUSES if state is PullRequestState.NOT_READY:
            message = f"The queue has no required checks, so it tests and merges nothing. {CONFIGURE_CHECKS}"
        case _:
            message = view.reason.message
    if view.is_ready_while_not_running:
        return f"The pull request is ready, and is queued when the queue runs again. {message}"
    if state is PullRequestState.TESTS_PASSED and view.reason.code is Reason.WAITING_FOR_PRS_AHEAD:
        return f"The tests passed. {message}"
    if state is PullRequestState.PENDING_FAILURE:
        return f"The tests failed, and the cause is not confirmed. {message} {NO_ACTION}"
    return message


def _describe_position(view: SubmissionView) -> str:
    """In parallel mode the pull requests ahead in the order need not be in its way."""
    position = view.position or 0
    others = "" if view.is_parallel or position < 2 else f", {pluralize(position - 1, 'pull request')} ahead"
    return f"position {position}{others}"


def name_tab(view: SubmissionView) -> str:
    """The title of the browser tab: a mark for the state and the position, because a tab shows only the start."""
    submission = view.submission
    mark = {PullRequestState.MERGED: "✓", PullRequestState.FAILED: "✗", PullRequestState.CANCELLED: "–"}
    position = f"position {view.position} · " if view.position else ""
    return f"{mark.get(submission.state, '●')} #{submission.number} · {position}{submission.pull_request.title}"


class ItemStatus(StrEnum):
    MET = "met"
    MISSING = "missing"
    AWAITED = "awaited"
    """Will be known without any action of the user."""
    UNKNOWN = "unknown"
    """The queue cannot read it, and goes on without it."""


class ChecklistItem(Struct, frozen=True):
    status: ItemStatus
    label: str
    advice: str = ""


MERGEABILITY = {
    Mergeability.MERGEABLE: ChecklistItem(ItemStatus.MET, "No conflicts"),
    Mergeability.NOT_MERGEABLE: ChecklistItem(
        ItemStatus.MISSING, "Conflicts", "Resolve its conflicts with the target branch, and push."
    ),
    Mergeability.UNKNOWN: ChecklistItem(
        ItemStatus.AWAITED, "Checking for conflicts", "The queue is asking the Git host. There is nothing to do."
    ),
    Mergeability.CHECKING: ChecklistItem(
        ItemStatus.AWAITED, "Checking for conflicts", "The Git host is checking it. There is nothing to do."
    ),
}
QUEUE_STATE_ITEMS = {
    QueueState.RUNNING: ChecklistItem(ItemStatus.MET, "Queue is running"),
    QueueState.PAUSED: ChecklistItem(ItemStatus.MISSING, "Queue is paused", "An administrator has to resume it."),
    QueueState.DRAINING: ChecklistItem(
        ItemStatus.MISSING, "Queue is draining", "The queue admits nothing new until an administrator resumes it."
    ),
    QueueState.SWITCHING_MODES: ChecklistItem(
        ItemStatus.AWAITED,
        "Queue is switching modes",
        "The queue admits pull requests again when the current runs have ended.",
    ),
}
CONFIGURE_CHECKS = "An administrator has to configure at least one, in the settings of the queue or in .mergeyard.toml."


def build_checklist(view: SubmissionView, queue: Queue) -> tuple[ChecklistItem, ...]:
    impacted_targets = (_check_impacted_targets(view),) if view.is_parallel else ()
    return (
        _check_base_branch(view),
        _check_draft(view),
        *_check_guarded_paths(view),
        *_check_host_rules(view),
        *impacted_targets,
        _check_required_checks(queue),
        _check_queue_state(queue),
    )


def _check_required_checks(queue: Queue) -> ChecklistItem:
    if queue.target_branch.tip is None:
        advice = REASON_MESSAGES[Reason.TARGET_BRANCH_MISSING]
        return ChecklistItem(ItemStatus.MISSING, "Target branch does not exist", advice)
    match run_validity.untestable_reason(queue):
        case None:
            return ChecklistItem(ItemStatus.MET, "Queue has required checks")
        case Reason.NO_REQUIRED_STATUSES:
            return ChecklistItem(ItemStatus.MISSING, "Queue has no required checks", CONFIGURE_CHECKS)
        case reason:
            return ChecklistItem(ItemStatus.MISSING, "Required checks are unknown", REASON_MESSAGES[reason])


def _check_queue_state(queue: Queue) -> ChecklistItem:
    item = QUEUE_STATE_ITEMS[queue.state]
    if not queue.state_reason or queue.state not in (QueueState.PAUSED, QueueState.DRAINING):
        return item
    return replace(item, advice=f"{item.advice} Reason: {queue.state_reason}")


def _check_base_branch(view: SubmissionView) -> ChecklistItem:
    base_branch = view.submission.pull_request.base_branch
    if base_branch == view.target_branch:
        return ChecklistItem(ItemStatus.MET, f"Targets {view.target_branch}")
    advice = f"Change its base branch to {view.target_branch}, or add it to the queue of {base_branch} instead."
    return ChecklistItem(ItemStatus.MISSING, f"Targets {base_branch}", advice)


def _check_draft(view: SubmissionView) -> ChecklistItem:
    if view.submission.pull_request.draft:
        return ChecklistItem(ItemStatus.MISSING, "Draft", "Mark it as ready for review.")
    return ChecklistItem(ItemStatus.MET, "Not a draft")


def _check_guarded_paths(view: SubmissionView) -> tuple[ChecklistItem, ...]:
    submission = view.submission
    if not (submission.pull_request.fork and submission.pull_request.guarded_paths):
        return ()
    paths = ", ".join(submission.pull_request.guarded_paths)
    if submission.by_maintainer:
        return (
            ChecklistItem(ItemStatus.MET, "Changes guarded paths, and a maintainer submitted it", f"Changed: {paths}"),
        )
    advice = f"Changed: {paths}. A maintainer has to review its head {submission.pull_request.head} and submit it."
    return (ChecklistItem(ItemStatus.MISSING, "Changes guarded paths", advice),)


def _check_host_rules(view: SubmissionView) -> tuple[ChecklistItem, ...]:
    """Conflicts, and what the rules of the Git host require."""
    pull_request = view.submission.pull_request
    if view.submission.forced and not pull_request.is_mergeable:
        advice = "The pull request was submitted with force. It is still tested."
        return (ChecklistItem(ItemStatus.MET, "Conflicts and rules of the Git host ignored", advice),)
    return (MERGEABILITY[pull_request.mergeability], *map(_check_requirement, view.requirements))


def _check_requirement(requirement: RequirementView) -> ChecklistItem:
    status = ItemStatus.MET if requirement.met else ItemStatus.MISSING
    if requirement.met and requirement.given is None:
        status = ItemStatus.UNKNOWN
    return ChecklistItem(status, REQUIREMENT_LABELS[requirement.code], requirement.message)


def _check_impacted_targets(view: SubmissionView) -> ChecklistItem:
    if view.has_impacted_targets:
        return ChecklistItem(ItemStatus.MET, "Impacted targets uploaded")
    if view.submission.state is not PullRequestState.NOT_READY:
        return ChecklistItem(
            ItemStatus.MET,
            "Impacted targets not required",
            "The pull request was queued before the queue had lanes, and counts as impacting ALL.",
        )
    head = shorten_id(view.submission.pull_request.head)
    advice = f"Upload them for commit {head}: mergeyard targets set, or setImpactedTargets."
    return ChecklistItem(ItemStatus.MISSING, "Impacted targets missing", advice)


MAX_TIMELINE_ENTRIES = 200
MAX_COUNT = 10**18 - 1
"""So that every id and count fits into a signed 64-bit integer of the database."""
RESTARTABLE_STATES = frozenset(
    {PullRequestState.TESTING, PullRequestState.PENDING_FAILURE, PullRequestState.TESTS_PASSED}
)


class RunSummary(Struct, frozen=True):
    run: Run
    name: str
    purpose: str
    checks: run_progress.RunChecks
    duration: run_progress.RunDuration


async def show(page: PageRequest) -> Response:
    """Without `branch`, finds the queue that has the pull request now, or had it last."""
    details = page.service.pull_request_details
    repo = page.service.repositories.canonical_repo(parse_repo(page.path_parameter("repo")), page.user.token)
    if not page.user.token.can_access(repo):
        raise _queue_not_found(repo)
    number = parse_number(page.path_parameter("number"))
    if number is None:
        raise page_not_found()
    branch = page.query.get("branch")
    try:
        key = QueueKey(repo, branch) if branch else await details.find_queue_key(repo, number)
        if key is None:
            return await _render_not_submitted(page, repo, number, branch)
        submission_id = parse_integer(page.query.get("submission", ""), 0, MAX_COUNT)
        latest_or_chosen = None if submission_id is None else SubmissionId(submission_id)
        return _render_submission(page, await details.read(key, number, latest_or_chosen))
    except RequestRefused as refused:
        if refused.code is not Code.PR_NOT_SUBMITTED:
            raise
        return await _render_not_submitted(page, repo, number, branch)


def _render_submission(page: PageRequest, details: PullRequestDetails) -> Response:
    submission, queue, now = details.view.submission, details.queue, page.service.clock.now()
    live = submission.state not in TERMINAL_STATES
    runs = _summarize_runs(page, details, now)
    run = None if details.view.run_id is None else queue.runs.get(details.view.run_id)
    is_latest = submission.id == details.submissions[0].id
    shown, earlier, later = select_timeline(
        build_timeline(details.timeline), parse_integer(page.query.get("first", ""), 0, MAX_COUNT)
    )
    return page.render(
        "pull_request.html",
        details=details,
        tab_title=name_tab(details.view),
        live=live,
        is_latest=is_latest,
        can_restart=submission.state in RESTARTABLE_STATES,
        can_submit_again=is_latest and submission.state in EXIT_LABELS,
        submitted_by=format_actor(details.timeline[-1]) if details.timeline else "",
        priority_set_by=_name_person(submission.priority_set_by),
        forced_by=_name_person(submission.forced_by),
        steps=build_progress_steps(submission.state, details.timeline),
        situation=describe_situation(queue, details.view),
        merge_explanation=explain_merge(queue.config, submission.pull_request, run)[1] if live else "",
        bisection=details.view.bisection,
        earlier_failure=find_earlier_failure(details.submissions, submission),
        checklist=build_checklist(details.view, queue) if live else (),
        runs=runs,
        current_run=next((each for each in runs if each.run.is_active), None),
        failed_run=find_failed_run(submission, runs, details.deciding_run),
        timeline=shown,
        earlier=earlier,
        later=later,
    )


def _summarize_runs(page: PageRequest, details: PullRequestDetails, now: Instant) -> list[RunSummary]:
    source, branch = page.service.repositories.get_host(details.key.repo.host).checks_from, details.key.branch
    return [
        RunSummary(
            each.run,
            run_progress.name_run(each.run, branch),
            run_progress.describe_purpose(each.run, branch),
            run_progress.build_run_checks(each, source),
            run_progress.measure_duration(each.run, details.queue, now),
        )
        for each in details.runs
    ]


def find_failed_run(
    submission: Submission, runs: Sequence[RunSummary], deciding_run: RunId | None
) -> RunSummary | None:
    """None unless a test made the pull request fail: an earlier failed run does not explain a conflict."""
    if submission.state is not PullRequestState.FAILED or submission.reason not in TEST_FAILURES:
        return None
    failed = [each for each in runs if each.run.status is RunStatus.FAILED]
    return next((each for each in failed if each.run.id == deciding_run), next(iter(failed), None))


def find_earlier_failure(submissions: Sequence[Submission], submission: Submission) -> Submission | None:
    """The submission before this one, if it failed. `submissions` are the newest first."""
    before = next((each for each in submissions if each.id < submission.id), None)
    return before if before is not None and before.state is PullRequestState.FAILED else None


class TimelineEntry(Struct, frozen=True):
    entry: PullRequestEntry
    message: str
    actor: str
    after_ms: int | None
    """Since the entry before it; None for the oldest that is known."""

    @property
    def state(self) -> PullRequestState:
        return self.entry.to if isinstance(self.entry, PullRequestChanged) else self.entry.state

    @property
    def run(self) -> RunId | None:
        return self.entry.run if isinstance(self.entry, PullRequestChanged) else None

    @property
    def is_update(self) -> bool:
        """A person changed something, and the state stayed the same."""
        return isinstance(self.entry, PullRequestUpdated)

    @property
    def is_first(self) -> bool:
        return isinstance(self.entry, PullRequestChanged) and self.entry.source is None


def build_timeline(timeline: Sequence[PullRequestEntry]) -> list[TimelineEntry]:
    """Newest first, as `timeline` is."""
    return [
        TimelineEntry(
            entry,
            render_entry(entry),
            format_actor(entry),
            None if before is None else entry.at - before.at,
        )
        for entry, before in zip_longest(timeline, timeline[1:])
    ]


Entry = TypeVar("Entry")


def select_timeline(timeline: Sequence[Entry], first: int | None) -> tuple[Sequence[Entry], int, int]:
    """The last part of the oldest `first` entries, and the numbers of entries before and after it. Counted from the
    oldest, so a link to a part keeps showing the same entries when new ones are added."""
    later = 0 if first is None else max(0, len(timeline) - first)
    part = timeline[later : later + MAX_TIMELINE_ENTRIES]
    return part, len(timeline) - later - len(part), later


def _name_person(actor: str) -> str:
    """Empty: it is not known who chose this."""
    return "" if actor == SYSTEM_ACTOR else decode_actor_name(actor)


def format_actor(entry: PullRequestEntry) -> str:
    return "the queue" if entry.actor == SYSTEM_ACTOR else decode_actor_name(entry.actor)


async def _render_not_submitted(
    page: PageRequest, repo: Repo, number: PullRequestNumber, branch: str | None
) -> Response:
    """Follows the queue of the branch, else the first one, and becomes the page of the pull request when that one is
    submitted."""
    details = page.service.pull_request_details
    queues, submitted_to = await details.list_queue_keys(repo), await details.find_queue_key(repo, number)
    if not queues:
        raise _queue_not_found(repo)
    host_url = page.service.repositories.get_host(repo.host).pull_request_url(repo, number)
    followed = next((key for key in queues if key.branch == branch), queues[0])
    values = {"queues": queues, "followed": followed, "submitted_to": submitted_to, "branch": branch}
    values |= {"repo": repo, "number": number, "host_url": host_url}
    return page.render("pull_request_not_submitted.html", 404, **values)


def _queue_not_found(repo: Repo) -> RequestRefused:
    return RequestRefused(
        Code.QUEUE_NOT_FOUND, f"No branch of {repo} has a queue. The queues page lists all queues you can see."
    )
