"""The page of a pull request: progress, readiness, test runs and timeline."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR, PullRequestChanged
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL_STATES, Mergeability, PullRequestState, QueueState, RunStatus
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.pull_request_details import PullRequestDetails
from mergeyard.service.views import SubmissionView, render_reason
from mergeyard.web import run_progress
from mergeyard.web.formats import page_not_found, parse_integer, parse_number, parse_repo, shorten_id
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


def build_progress_steps(state: PullRequestState, timeline: Sequence[PullRequestChanged]) -> tuple[ProgressStep, ...]:
    """The timeline is newest first: for a pull request that left, its first entry has the last state before."""
    if state in EXIT_LABELS:
        before = timeline[0].source if timeline else None
        reached = 0 if before is None else REACHED_STEP[before]
        return (*_passed_steps(reached + 1), ProgressStep(EXIT_LABELS[state], "off"))
    reached = REACHED_STEP[state]
    here = ProgressStep(STEPS[reached], "passed" if state in TERMINAL_STATES else "here")
    return (*_passed_steps(reached), here, *(ProgressStep(name, "ahead") for name in STEPS[reached + 1 :]))


def _passed_steps(count: int) -> tuple[ProgressStep, ...]:
    return tuple(ProgressStep(name, "passed") for name in STEPS[:count])


class ItemStatus(StrEnum):
    MET = "met"
    MISSING = "missing"
    AWAITED = "awaited"
    """Will be known without any action of the user."""


class ChecklistItem(Struct, frozen=True):
    status: ItemStatus
    label: str
    advice: str = ""


MERGEABILITY = {
    Mergeability.MERGEABLE: ChecklistItem(ItemStatus.MET, "Can be merged"),
    Mergeability.NOT_MERGEABLE: ChecklistItem(
        ItemStatus.MISSING,
        "Cannot be merged",
        "Resolve its conflicts with the target branch, or meet the rules that protect the branch.",
    ),
    Mergeability.UNKNOWN: ChecklistItem(
        ItemStatus.AWAITED, "Mergeability unknown", "The queue is asking the Git host. There is nothing to do."
    ),
    Mergeability.CHECKING: ChecklistItem(
        ItemStatus.AWAITED, "Mergeability unknown", "The Git host is checking it. There is nothing to do."
    ),
}
QUEUE_STATE_ITEMS = {
    QueueState.RUNNING: ChecklistItem(ItemStatus.MET, "The queue is running"),
    QueueState.PAUSED: ChecklistItem(ItemStatus.MISSING, "The queue is paused", "An administrator has to resume it."),
    QueueState.DRAINING: ChecklistItem(
        ItemStatus.MISSING, "The queue is draining", "It admits nothing new until an administrator resumes it."
    ),
    QueueState.SWITCHING_MODES: ChecklistItem(
        ItemStatus.AWAITED,
        "The queue is switching modes",
        "It admits pull requests again when the current runs have ended.",
    ),
}


def build_checklist(view: SubmissionView, state: QueueState) -> tuple[ChecklistItem, ...]:
    impacted_targets = (_check_impacted_targets(view),) if view.is_parallel else ()
    return (
        _check_base_branch(view),
        _check_draft(view),
        *_check_guarded_paths(view),
        _check_mergeability(view),
        *impacted_targets,
        QUEUE_STATE_ITEMS[state],
    )


def _check_base_branch(view: SubmissionView) -> ChecklistItem:
    base_branch = view.submission.pull_request.base_branch
    if base_branch == view.target_branch:
        return ChecklistItem(ItemStatus.MET, f"Base branch is {view.target_branch}")
    advice = f"Change it to {view.target_branch}, or submit the pull request to the queue of {base_branch} instead."
    return ChecklistItem(ItemStatus.MISSING, f"Base branch is {base_branch}", advice)


def _check_draft(view: SubmissionView) -> ChecklistItem:
    if view.submission.pull_request.draft:
        return ChecklistItem(ItemStatus.MISSING, "Is a draft", "Mark it as ready for review.")
    return ChecklistItem(ItemStatus.MET, "Is not a draft")


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


def _check_mergeability(view: SubmissionView) -> ChecklistItem:
    if view.submission.forced and view.submission.pull_request.mergeability is not Mergeability.MERGEABLE:
        return ChecklistItem(
            ItemStatus.MET,
            "Mergeability is not required",
            "The pull request was submitted with force. It is still tested.",
        )
    return MERGEABILITY[view.submission.pull_request.mergeability]


def _check_impacted_targets(view: SubmissionView) -> ChecklistItem:
    if view.has_impacted_targets:
        return ChecklistItem(ItemStatus.MET, "Impacted targets are known")
    if view.submission.state is not PullRequestState.NOT_READY:
        return ChecklistItem(
            ItemStatus.MET,
            "Impacted targets are not required",
            "It was admitted before the queue had lanes, and counts as impacting ALL.",
        )
    head = shorten_id(view.submission.pull_request.head)
    advice = f"Upload them for its current head {head}: mergeyard targets set, or setImpactedTargets."
    return ChecklistItem(ItemStatus.MISSING, "Impacted targets are unknown", advice)


MAX_TIMELINE_ENTRIES = 200
MAX_COUNT = 10**18 - 1
"""So that every id and count fits into a signed 64-bit integer of the database."""
RESTARTABLE_STATES = frozenset(
    {PullRequestState.TESTING, PullRequestState.PENDING_FAILURE, PullRequestState.TESTS_PASSED}
)


class RunSummary(Struct, frozen=True):
    run: Run
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
            return await _render_not_submitted(page, repo, number)
        submission_id = parse_integer(page.query.get("submission", ""), 0, MAX_COUNT)
        latest_or_chosen = None if submission_id is None else SubmissionId(submission_id)
        return _render_submission(page, await details.read(key, number, latest_or_chosen))
    except RequestRefused as refused:
        if refused.code is not Code.PR_NOT_SUBMITTED or page.is_htmx:
            raise
        return await _render_not_submitted(page, repo, number)


def _render_submission(page: PageRequest, details: PullRequestDetails) -> Response:
    submission, timeline, now = details.view.submission, details.timeline, page.service.clock.now()
    source = page.service.repositories.get_host(details.key.repo.host).checks_from
    runs = [
        RunSummary(
            each.run,
            run_progress.describe_purpose(each.run, details.key.branch),
            run_progress.build_run_checks(each, source),
            run_progress.measure_duration(each.run, details.queue, now),
        )
        for each in details.runs
    ]
    has_failed = submission.state is PullRequestState.FAILED
    is_latest = submission.id == details.submissions[0].id
    live = submission.state not in TERMINAL_STATES
    entries, earlier, later = select_timeline(timeline, parse_integer(page.query.get("first", ""), 0, MAX_COUNT))
    return page.render(
        "pull_request.html",
        details=details,
        live=live,
        is_latest=is_latest,
        can_restart=submission.state in RESTARTABLE_STATES,
        can_submit_again=is_latest and submission.state in EXIT_LABELS,
        submitted_by=format_actor(timeline[-1]) if timeline else "",
        steps=build_progress_steps(submission.state, timeline),
        checklist=build_checklist(details.view, details.queue.state) if live else (),
        runs=runs,
        current_run=next((each for each in runs if each.run.is_active), None),
        failed_run=next((each for each in runs if has_failed and each.run.status is RunStatus.FAILED), None),
        timeline=[
            (entry, render_reason(entry.reason, entry.detail, stacked_on=entry.stacked_on), format_actor(entry))
            for entry in entries
        ],
        earlier=earlier,
        later=later,
    )


def select_timeline(
    entries: Sequence[PullRequestChanged], first: int | None
) -> tuple[Sequence[PullRequestChanged], int, int]:
    """The last part of the oldest `first` entries, and the numbers of entries before and after it. Counted from the
    oldest, so a link to a part keeps showing the same entries when new ones are added."""
    later = 0 if first is None else max(0, len(entries) - first)
    part = entries[later : later + MAX_TIMELINE_ENTRIES]
    return part, len(entries) - later - len(part), later


def format_actor(entry: PullRequestChanged) -> str:
    return "the queue" if entry.actor == SYSTEM_ACTOR else decode_actor_name(entry.actor)


async def _render_not_submitted(page: PageRequest, repo: Repo, number: PullRequestNumber) -> Response:
    queues = await page.service.pull_request_details.list_queue_keys(repo)
    if not queues:
        raise _queue_not_found(repo)
    host_url = page.service.repositories.get_host(repo.host).pull_request_url(repo, number)
    values = {"queues": queues, "repo": repo, "number": number, "host_url": host_url}
    return page.render("pull_request_not_submitted.html", 404, **values)


def _queue_not_found(repo: Repo) -> RequestRefused:
    return RequestRefused(
        Code.QUEUE_NOT_FOUND, f"No branch of {repo} has a queue. The queues page lists all queues you can see."
    )
