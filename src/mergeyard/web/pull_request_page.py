"""The page of a pull request: progress, readiness, test runs and timeline."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR, PullRequestChanged
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL_STATES, Mergeability, PullRequestState, QueueState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import estimates
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.pull_request_details import PullRequestDetails
from mergeyard.service.views import SubmissionView, render_reason
from mergeyard.web import run_progress
from mergeyard.web.formats import TargetList, list_targets, page_not_found, parse_repo, shorten_id
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser

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


class TimelineEntry(Struct, frozen=True):
    entry: PullRequestChanged
    message: str
    actor: str


class Timeline(Struct, frozen=True):
    entries: tuple[TimelineEntry, ...]
    earlier: int
    """The number of older entries; as `first`, it selects the next part."""
    later: int


def build_timeline(entries: Sequence[PullRequestChanged], first: int | None) -> Timeline:
    """The last part of the oldest `first` entries. Counted from the oldest, so a link to a part keeps showing the same
    entries when new ones are added."""
    later = 0 if first is None else max(0, len(entries) - first)
    part = entries[later : later + MAX_TIMELINE_ENTRIES]
    return Timeline(tuple(map(_build_entry, part)), len(entries) - later - len(part), later)


def format_actor(entry: PullRequestChanged) -> str:
    return "the queue" if entry.actor == SYSTEM_ACTOR else decode_actor_name(entry.actor)


def _build_entry(entry: PullRequestChanged) -> TimelineEntry:
    return TimelineEntry(
        entry, render_reason(entry.reason, entry.detail, stacked_on=entry.stacked_on), format_actor(entry)
    )


MAX_SHARED_TARGETS = 5


class RunSummary(Struct, frozen=True):
    run: Run
    purpose: str
    checks: run_progress.RunChecks
    duration: run_progress.RunDuration


class Failure(Struct, frozen=True):
    """Why the pull request failed: the run, the checks that failed in it, and the pull requests it was stacked on."""

    summary: RunSummary
    culprits: tuple[run_progress.CheckView, ...]
    stacked_on: tuple[PullRequestNumber, ...]


class OverlappingPullRequest(Struct, frozen=True):
    number: PullRequestNumber
    title: str
    state: PullRequestState
    shared: TargetList


class PullRequestPageView(Struct, frozen=True, kw_only=True):
    details: PullRequestDetails
    live: bool
    submitted_by: str
    steps: tuple[ProgressStep, ...]
    checklist: tuple[ChecklistItem, ...]
    failure: Failure | None
    runs: tuple[RunSummary, ...]
    timeline: Timeline
    impacted_targets: TargetList | None
    overlapping: tuple[OverlappingPullRequest, ...]

    @property
    def current_run(self) -> RunSummary | None:
        return next((summary for summary in self.runs if summary.run.is_active), None)

    @property
    def is_latest(self) -> bool:
        """Whether the page shows the latest submission of the pull request."""
        return self.details.view.submission.id == self.details.submissions[0].id

    @property
    def can_restart(self) -> bool:
        return self.details.view.submission.state in (
            PullRequestState.TESTING,
            PullRequestState.PENDING_FAILURE,
            PullRequestState.TESTS_PASSED,
        )

    @property
    def can_submit_again(self) -> bool:
        return self.is_latest and self.details.view.submission.state in (
            PullRequestState.FAILED,
            PullRequestState.CANCELLED,
        )


def build_pull_request_view(
    details: PullRequestDetails, source: ChecksFrom, now: Instant, first: int | None
) -> PullRequestPageView:
    """`first` limits the timeline to so many entries, counted from the oldest."""
    submission = details.view.submission
    live = submission.state not in TERMINAL_STATES
    usual = estimates.median_run_duration_ms(details.queue)
    runs = tuple(
        RunSummary(
            each.run,
            run_progress.describe_purpose(each.run, details.key.branch),
            run_progress.build_run_checks(each, source),
            run_progress.measure_duration(each.run, usual, now),
        )
        for each in details.runs
    )
    return PullRequestPageView(
        details=details,
        live=live,
        submitted_by=format_actor(details.timeline[-1]) if details.timeline else "",
        steps=build_progress_steps(submission.state, details.timeline),
        checklist=build_checklist(details.view, details.queue.state) if live else (),
        failure=_find_failure(details, runs) if submission.state is PullRequestState.FAILED else None,
        runs=runs,
        timeline=build_timeline(details.timeline, first),
        impacted_targets=None if submission.impacted_targets is None else list_targets(submission.impacted_targets),
        overlapping=tuple(
            OverlappingPullRequest(
                other.number, other.title, other.state, list_targets(other.shared_targets, MAX_SHARED_TARGETS)
            )
            for other in details.overlaps
        ),
    )


def _find_failure(details: PullRequestDetails, runs: Sequence[RunSummary]) -> Failure | None:
    last = next((summary for summary in runs if summary.run.status is RunStatus.FAILED), None)
    if last is None:
        return None
    prs_ahead = tuple(member.number for member in last.run.prs_ahead)
    return Failure(last, last.checks.culprits, details.view.submission.stacked_on or prs_ahead)


MAX_NUMBER = 2**31 - 1
MAX_DIGITS = 18
"""So that every id and count fits into a signed 64-bit integer of the database."""


class PullRequestPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._service = context.service

    def routes(self) -> Sequence[Route]:
        return (Route("/pulls/{repo:path}/{number}", self.show),)

    async def show(self, request: Request) -> Response:
        """Without `branch`, finds the queue that has the pull request now, or had it last."""
        user = await self._context.authenticate(request)
        repo = self._resolve_repo(user, request.path_params["repo"])
        number = _parse_number(request.path_params["number"])
        branch = request.query_params.get("branch")
        try:
            key = (
                QueueKey(repo, branch)
                if branch
                else await self._service.pull_request_details.find_queue_key(repo, number)
            )
            if key is None:
                return await self._render_not_submitted(request, user, repo, number)
            return await self._render_submission(request, user, key, number)
        except RequestRefused as refused:
            if refused.code is not Code.PR_NOT_SUBMITTED or "hx-request" in request.headers:
                raise
            return await self._render_not_submitted(request, user, repo, number)

    async def _render_submission(
        self, request: Request, user: CurrentUser, key: QueueKey, number: PullRequestNumber
    ) -> Response:
        query = request.query_params
        details = await self._service.pull_request_details.read(
            key, number, _parse_submission_id(query.get("submission", ""))
        )
        source = self._service.repositories.get_host(key.repo.host).checks_from
        view = build_pull_request_view(details, source, self._service.clock.now(), _parse_count(query.get("first", "")))
        return self._context.render_page(request, "pull_request.html", user, view=view)

    async def _render_not_submitted(
        self, request: Request, user: CurrentUser, repo: Repo, number: PullRequestNumber
    ) -> Response:
        queues = await self._service.pull_request_details.list_queue_keys(repo)
        if not queues:
            raise _queue_not_found(repo)
        host_url = self._service.repositories.get_host(repo.host).pull_request_url(repo, number)
        values = {"queues": queues, "repo": repo, "number": number, "host_url": host_url}
        return self._context.render(request, "pull_request_not_submitted.html", 404, user=user, **values)

    def _resolve_repo(self, user: CurrentUser, text: str) -> Repo:
        repo = self._service.repositories.canonical_repo(parse_repo(text), user.token)
        if not user.token.can_access(repo):
            raise _queue_not_found(repo)
        return repo


def _parse_number(text: str) -> PullRequestNumber:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_NUMBER)) and 0 < int(text) <= MAX_NUMBER):
        raise page_not_found()
    return PullRequestNumber(int(text))


def _parse_submission_id(text: str) -> SubmissionId | None:
    """None means the latest submission."""
    submission_id = _parse_count(text)
    return None if submission_id is None else SubmissionId(submission_id)


def _parse_count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def _queue_not_found(repo: Repo) -> RequestRefused:
    return RequestRefused(
        Code.QUEUE_NOT_FOUND, f"No branch of {repo} has a queue. The queues page lists all queues you can see."
    )
