"""Responses of the API as structs."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from mergeyard.client.transport import QueueName, RepoName, ResponseBody


class Readiness(ResponseBody, frozen=True, kw_only=True):
    requires_impacted_targets: bool
    does_base_branch_match: bool
    has_impacted_targets: bool


class Reason(ResponseBody, frozen=True, kw_only=True):
    """Why a pull request is in its state, or what it waits for: a code, and the same as a sentence."""

    code: str
    message: str
    waiting_for: tuple[int, ...]


class RuleRequirement(ResponseBody, frozen=True, kw_only=True):
    """Something that a rule of the Git host requires of a pull request, and how much of it the pull request has."""

    code: str
    message: str
    needed: int
    given: int | None
    names: tuple[str, ...]
    met: bool


class TimelineEntry(ResponseBody, frozen=True, kw_only=True):
    at: datetime
    source: str | None = field(name="from")
    to: str
    reason: str
    message: str
    actor: str
    test_run_id: str | None
    caused_by: tuple[int, ...]
    """The pull requests because of which this one is tested again."""


class EnqueuedPullRequest(ResponseBody, frozen=True, kw_only=True):
    """A pull request as an entry of its queue."""

    id: str
    state: str
    state_changed_at: datetime
    priority_value: int
    priority_name: str
    used_default_priority_name: str | None = None
    skip_the_line: bool
    no_batch: bool
    pr_number: int
    pr_title: str
    pr_sha: str
    pr_base_branch: str
    pr_author: str
    test_run_id: str | None
    position: int | None
    reason: Reason
    requirements: tuple[RuleRequirement, ...]
    estimated_merge_at: datetime | None
    estimated_merge_at_p90: datetime | None
    estimate_note: str | None
    """Why there is no estimate."""
    bisection_note: str | None
    """What the bisection of a failed batch means for it."""


class SubmittedPullRequest(EnqueuedPullRequest, frozen=True, kw_only=True):
    """One submission of a pull request to a queue."""

    force_enqueued: bool
    is_currently_submitted_to_queue: bool
    readiness: Readiness
    mergeability: str
    verified_by_test_run: str | None
    submitted_at: datetime
    merged_sha: str | None
    timeline: tuple[TimelineEntry, ...] | None = None

    @property
    def is_concluded(self) -> bool:
        """Merged, failed or cancelled: the submission no longer changes."""
        return not self.is_currently_submitted_to_queue


class PullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    next_cursor: str | None = None


class OpenPullRequest(ResponseBody, frozen=True, kw_only=True):
    """An open pull request on the Git host, submitted or not."""

    pr_number: int
    pr_title: str
    pr_author: str
    pr_sha: str
    head_branch: str
    is_draft: bool


class OpenPullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: tuple[OpenPullRequest, ...]


class FoundPullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    not_found: tuple[int, ...]


class Provenance(ResponseBody, frozen=True, kw_only=True):
    sha: str
    envelope: dict[str, Any]
    """A DSSE envelope with an in-toto statement."""


class ImpactedTargetsResult(ResponseBody, frozen=True, kw_only=True):
    pr_number: int
    pr_sha: str
    impacted_targets: str | int


class QueueObstacle(ResponseBody, frozen=True, kw_only=True):
    """What keeps a queue from working with its Git host."""

    code: str
    message: str
    since: datetime
    pr_number: int | None = None
    """The pull request, if only one is concerned."""
    until: datetime | None = None
    """When the Git host accepts requests again, if it limits them."""


class PullRequestCounts(ResponseBody, frozen=True, kw_only=True):
    queued: int
    testing: int
    """A part of `queued`."""
    not_ready: int


class NextMerge(ResponseBody, frozen=True, kw_only=True):
    at: datetime | None
    note: str | None
    """Why the time is not known, or what to know about it."""


class Queue(ResponseBody, frozen=True, kw_only=True):
    state: str
    state_reason: str | None
    """Why a user or the queue itself paused or drained it, if a reason is known."""
    branch: str
    repo: RepoName
    mode: str
    concurrency: int
    bisection_concurrency: int
    batch: bool
    batching_min_size: int
    batching_max_wait_time_minutes: int
    can_optimistically_merge: bool
    pending_failure_depth: int
    optimization_mode: str
    speculation: str
    testing_timeout_minutes: int
    test_retries: int
    required_statuses: tuple[str, ...] | None
    merge_method: str
    landing: str
    move_head_branches: bool
    head_branch_fallback: str
    delete_head_branches: bool
    squash_template: str
    direct_merge_mode: str
    create_prs_for_testing_branches: bool
    comments_enabled: bool
    commands_enabled: bool
    status_check_enabled: bool
    not_ready_timeout_hours: int
    label_commands_enabled: bool
    enqueueing_label: str
    extension_enabled: bool
    state_labels_enabled: bool
    allowed_bot_submitters: tuple[str, ...]
    batching_rules: tuple[dict[str, Any], ...]
    test_branch_construction_mode: str
    obstacle: QueueObstacle | None = None
    """None: nothing, as far as the queue knows."""
    problems: tuple[str, ...] | None = None
    """Why an administrator should look at it, in addition to its state."""
    pull_request_counts: PullRequestCounts | None = None
    next_merge: NextMerge | None = None
    enqueued_pull_requests: tuple[EnqueuedPullRequest, ...] | None = None

    @property
    def queue_name(self) -> QueueName:
        return QueueName(self.repo, self.branch)


class Queues(ResponseBody, frozen=True, kw_only=True):
    queues: tuple[Queue, ...]


class QueueDeleted(ResponseBody, frozen=True, kw_only=True):
    deleted: bool
    repo: RepoName
    target_branch: str


class CheckRun(ResponseBody, frozen=True, kw_only=True):
    name: str
    url: str
    status: str
    conclusion: str | None
    duration_seconds: float | None = None


class CheckSuite(ResponseBody, frozen=True, kw_only=True):
    check_runs: tuple[CheckRun, ...]


class StatusCheck(ResponseBody, frozen=True, kw_only=True):
    context: str
    url: str
    state: str
    duration_seconds: float | None = None


class Check(Struct, frozen=True, kw_only=True):
    """A check as a run has it, whether the Git host reports it as a status or as part of a suite."""

    name: str
    state: str
    """`pending` until it has a result."""
    url: str
    duration_seconds: float | None


class TestedPullRequest(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    pr_url: str
    title: str


class Run(ResponseBody, frozen=True, kw_only=True):
    """One test run of a batch on top of its stack."""

    id: str
    required_statuses: tuple[str, ...]
    required_statuses_source: str
    test_branch: str
    test_branch_sha: str
    check_suites: tuple[CheckSuite, ...]
    status_checks: tuple[StatusCheck, ...]
    tested_pull_requests: tuple[TestedPullRequest, ...]
    status: str
    created_at: datetime
    impacted_targets: tuple[str, ...] | None = None
    impacted_targets_for_tested_prs: tuple[str, ...] | None = None
    dependent_prs: tuple[int, ...]
    is_bisection: bool
    base_sha: str

    @property
    def checks(self) -> dict[str, Check]:
        """Every check that was reported so far, by name."""
        runs = [(run.name, run.conclusion or "pending", run) for suite in self.check_suites for run in suite.check_runs]
        statuses = [(each.context, each.state, each) for each in self.status_checks]
        return {
            name: Check(name=name, state=state, url=each.url, duration_seconds=each.duration_seconds)
            for name, state, each in (*runs, *statuses)
        }


class TestingResult(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    test_run_id: str
    status: str
    is_bisection: bool
    started_at: datetime
    finished_at: datetime
    duration_seconds: float


class TestingResults(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    testing_results: tuple[TestingResult, ...]
    total_items: int


class StatusAccepted(ResponseBody, frozen=True, kw_only=True):
    accepted: bool


class Event(Struct, frozen=True, kw_only=True):
    type: str
    timestamp: datetime
    repository: str | None
    target_branch: str | None
    pr_number: int | None
    author: str | None
    state: str | None
    reason: str | None
    test_run_id: str | None
    test_branch: str | None
    test_branch_sha: str | None
    batched: bool
    is_bisection: bool
    details_url: str
    cursor: str
    message: str
    actor: str | None
    """Who caused the event; None: the queue itself."""
    caused_by: tuple[int, ...]
    """The pull requests because of which this one is tested again."""


class Events(ResponseBody, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    next: str


class VerifiedLanding(ResponseBody, frozen=True, kw_only=True):
    pr_number: int
    merged_sha: str | None
    verified_by_test_run: str | None
    landed_at: datetime
    form: str
    verdict: str


class LandingMismatch(ResponseBody, frozen=True, kw_only=True):
    kind: str
    pr_number: int
    sha: str | None
    message: str


class VerifiedLandings(ResponseBody, frozen=True, kw_only=True):
    target_sha: str | None
    landings: tuple[VerifiedLanding, ...]
    mismatches: tuple[LandingMismatch, ...]
    notes: tuple[str, ...]


class ReplayMetrics(ResponseBody, frozen=True, kw_only=True):
    merged: int
    failed: int
    left: int
    p50_seconds: float | None
    p95_seconds: float | None
    runs: int
    runs_per_merge: float | None
    ci_minutes: float


class ReplayChange(ResponseBody, frozen=True, kw_only=True):
    setting: str
    now: bool | int | str
    proposed: bool | int | str


class ReplayAssumption(ResponseBody, frozen=True, kw_only=True):
    about: str
    count: int
    of: int
    message: str


class QueueReplay(ResponseBody, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    pull_requests: int
    limited_to: int | None
    changes: tuple[ReplayChange, ...]
    actual: ReplayMetrics
    baseline: ReplayMetrics | None
    proposed: ReplayMetrics | None
    proposed_min: ReplayMetrics | None
    proposed_max: ReplayMetrics | None
    confidence: str
    reasons: tuple[str, ...]
    assumptions: tuple[ReplayAssumption, ...]


class WebhookTopic(ResponseBody, frozen=True, kw_only=True):
    """One queue; without a target branch, all queues of the repository."""

    repo: RepoName
    target_branch: str | None = None


class WebhookDisabled(ResponseBody, frozen=True, kw_only=True):
    at: datetime
    reason: str
    message: str


class Webhook(ResponseBody, frozen=True, kw_only=True):
    id: str
    kind: str
    url: str
    events: tuple[str, ...]
    queues: tuple[WebhookTopic, ...]
    description: str
    enabled: bool
    disabled: WebhookDisabled | None
    created_at: datetime
    secret: str | None = None


class Webhooks(ResponseBody, frozen=True, kw_only=True):
    webhooks: tuple[Webhook, ...]


class WebhookDeleted(ResponseBody, frozen=True, kw_only=True):
    deleted: bool
    id: str


class WebhookDelivery(ResponseBody, frozen=True, kw_only=True):
    event_id: str
    type: str
    at: datetime
    attempt: int
    delivered: bool
    status: int | None
    message: str


class WebhookDeliveries(ResponseBody, frozen=True, kw_only=True):
    deliveries: tuple[WebhookDelivery, ...]


class TokenBase(ResponseBody, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: tuple[str, ...]
    repositories: tuple[RepoName, ...]
    """Empty: all repositories."""
    expires_at: datetime | None


class CurrentToken(TokenBase, frozen=True, kw_only=True):
    server_version: str


class ApiToken(TokenBase, frozen=True, kw_only=True):
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    last_used_from: str | None
    secret: str | None = None


class ApiTokens(ResponseBody, frozen=True, kw_only=True):
    tokens: tuple[ApiToken, ...]


class CommitMessagePreview(ResponseBody, frozen=True, kw_only=True):
    pr_number: int
    pr_sha: str
    merge_method: str
    merges_by: str
    explanation: str
    commit_messages: tuple[str, ...]


class StoppedTestRun(ResponseBody, frozen=True, kw_only=True):
    test_run_id: str
    pr_numbers: tuple[int, ...]
    elapsed_seconds: float


class ActionPreview(ResponseBody, frozen=True, kw_only=True):
    """What an action would stop."""

    stopped_test_runs: tuple[StoppedTestRun, ...]
    retested_pr_numbers: tuple[int, ...]
    lost_ci_seconds: float
    is_upper_bound: bool
