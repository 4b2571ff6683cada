"""The response bodies of the endpoints: the name, type and meaning of every member."""

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, defstruct, field

from mergeyard.api import request_schemas
from mergeyard.api.request_schemas import RepoReference, describe, describe_with_schema
from mergeyard.domain.pull_requests import RequiredSource, StatusState
from mergeyard.domain.states import Mergeability, PullRequestState, QueueState, Reason, RunStatus
from mergeyard.service.webhooks.events import WebhookEvent

Timestamp = Annotated[str, describe_with_schema("ISO 8601 in UTC.", {"type": "string", "format": "date-time"})]
UsedDefaultPriorityName = Annotated[str, describe("Present when the request named no priority.")]
PublicRunStatus = Annotated[
    RunStatus,
    describe_with_schema(
        "Status of the test run.",
        {"type": "string", "enum": [status.value for status in RunStatus if status is not RunStatus.PREPARING]},
    ),
]


class ResponseBody(Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Readiness(ResponseBody, frozen=True, kw_only=True):
    requires_impacted_targets: Annotated[bool, describe("Whether it needs impacted targets before it can be tested.")]
    does_base_branch_match: Annotated[bool, describe("Whether its base branch is the queue's target branch.")]
    has_impacted_targets: Annotated[bool, describe("Whether its impacted targets were uploaded.")]


class ReasonDetails(ResponseBody, frozen=True, kw_only=True):
    code: Annotated[Reason, describe("The reason code.")]
    message: Annotated[str, describe("The reason as a sentence.")]
    waiting_for: Annotated[tuple[int, ...], describe("Numbers of the pull requests that it waits for.")] = ()


class TimelineEntry(ResponseBody, frozen=True, kw_only=True):
    """One entry of a timeline."""

    at: Timestamp
    source: str | None = field(name="from")
    to: str
    reason: str
    message: str
    actor: Annotated[str, describe("The token, user or component that caused the change.")]
    test_run_id: str | None


class SubmittedPullRequest(ResponseBody, frozen=True, kw_only=True):
    id: Annotated[str, describe("Identifies this submission; submitting again after its end gives another.")]
    state: PullRequestState
    state_changed_at: Timestamp
    priority_value: Annotated[int, describe("0 is the highest.")]
    priority_name: Annotated[str, describe("The priority's name, or the number itself.")]
    used_default_priority_name: UsedDefaultPriorityName | UnsetType = UNSET
    skip_the_line: Annotated[bool, describe("Whether it is `urgent` and overtakes all others.")]
    force_enqueued: Annotated[bool, describe("Whether it was submitted with `force`.")]
    is_currently_submitted_to_queue: Annotated[bool, describe("Whether its state is not final.")]
    pr_number: int
    pr_title: str
    pr_sha: Annotated[str, describe("The head commit of this submission.")]
    pr_base_branch: str
    pr_author: str
    readiness: Readiness
    no_batch: bool
    mergeability: Mergeability
    test_run_id: Annotated[str | None, describe("The test run in progress, else the last one.")]
    verified_by_test_run: Annotated[str | None, describe("The test run that verified its merge.")]
    position: Annotated[int | None, describe("From 1; null when not ready or concluded.")]
    reason: ReasonDetails
    estimated_merge_at: Timestamp | None
    estimated_merge_at_p90: Timestamp | None
    submitted_at: Timestamp
    merged_sha: Annotated[str | None, describe("Its own commit on the target branch.")]
    timeline: (
        Annotated[tuple[TimelineEntry, ...], describe("Newest first; present with `includeTimeline`.")] | UnsetType
    ) = UNSET


class EnqueuedPullRequest(ResponseBody, frozen=True, kw_only=True):
    id: str
    state: PullRequestState
    state_changed_at: Timestamp
    priority_value: int
    priority_name: str
    used_default_priority_name: UsedDefaultPriorityName | UnsetType = UNSET
    skip_the_line: bool
    no_batch: bool
    pr_number: int
    pr_title: str
    pr_sha: str
    pr_base_branch: str
    pr_author: str
    test_run_id: str | None
    position: int | None
    reason: ReasonDetails


class CheckRun(ResponseBody, frozen=True, kw_only=True):
    name: str
    url: str
    status: str
    conclusion: str | None


class CheckSuite(ResponseBody, frozen=True, kw_only=True):
    check_runs: tuple[CheckRun, ...]


class StatusCheck(ResponseBody, frozen=True, kw_only=True):
    context: str
    url: str
    state: StatusState


class TestedPullRequest(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    pr_url: str
    title: str


class RunDetails(ResponseBody, frozen=True, kw_only=True):
    id: str
    required_statuses: Annotated[tuple[str, ...], describe("Checks that must all pass.")]
    required_statuses_source: RequiredSource
    test_branch: str
    test_branch_sha: str
    check_suites: tuple[CheckSuite, ...]
    status_checks: tuple[StatusCheck, ...]
    tested_pull_requests: tuple[TestedPullRequest, ...]
    status: PublicRunStatus
    created_at: Timestamp
    impacted_targets: Annotated[tuple[str, ...], describe("Of all pull requests in the test branch.")] | UnsetType = (
        UNSET
    )
    impacted_targets_for_tested_prs: (
        Annotated[tuple[str, ...], describe("Of the tested pull requests.")] | UnsetType
    ) = UNSET
    dependent_prs: Annotated[
        tuple[int, ...], describe("In the test branch, but not tested by this run; in merge order.")
    ]
    is_bisection: bool
    base_sha: Annotated[str, describe("The commit below the first pull request that it tests.")]


class QueueBase(ResponseBody, frozen=True, kw_only=True):
    """A queue without its settings; `QueueResponse` adds one member per setting."""

    state: QueueState
    state_reason: Annotated[
        str | None, describe("Why the queue is paused or draining, if a user or the queue itself gave a reason.")
    ]
    branch: str
    repo: RepoReference
    enqueued_pull_requests: tuple[EnqueuedPullRequest, ...] | UnsetType = UNSET


QueueResponse = defstruct(
    "Queue",
    request_schemas.SETTING_FIELDS,
    bases=(QueueBase,),
    module=__name__,
    frozen=True,
    kw_only=True,
    rename="camel",
)


class QueueDeleted(ResponseBody, frozen=True, kw_only=True):
    deleted: Literal[True] = True
    repo: RepoReference
    target_branch: str


class ImpactedTargetsStored(ResponseBody, frozen=True, kw_only=True):
    pr_number: int
    pr_sha: str
    impacted_targets: Annotated[Literal["ALL"] | int, describe("`ALL`, or how many there are.")]


class PullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    next_cursor: Annotated[str, describe("Present when there are more pages.")] | UnsetType = UNSET


class FoundPullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    not_found: Annotated[tuple[int, ...], describe("The numbers that were never submitted.")]


class TestingResult(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    test_run_id: str
    status: PublicRunStatus
    is_bisection: bool
    started_at: Timestamp
    finished_at: Timestamp
    duration_seconds: float


class TestingResults(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    testing_results: tuple[TestingResult, ...]
    total_items: int


Queues = defstruct(
    "Queues", [("queues", tuple[QueueResponse, ...])], bases=(ResponseBody,), frozen=True, kw_only=True, rename="camel"
)


class QueueEvent(WebhookEvent, frozen=True, kw_only=True):
    """Its members have the names of webhook data (snake case), so one program can read both."""

    timestamp: Timestamp
    cursor: Annotated[str, describe("Send it as `after` to read the events that follow this one.")]
    message: Annotated[str, describe("What happened, as a sentence.")]


class Events(ResponseBody, frozen=True, kw_only=True):
    events: Annotated[tuple[QueueEvent, ...], describe("Oldest first.")]
    next: Annotated[str, describe("Send it as `after` to read the next page.")]


class StatusAccepted(ResponseBody, frozen=True, kw_only=True):
    accepted: Literal[True] = True
