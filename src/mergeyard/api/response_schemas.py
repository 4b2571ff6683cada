"""The response bodies of the endpoints: the name, type and meaning of every member."""

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, defstruct, field

from mergeyard.api import request_schemas
from mergeyard.api.request_schemas import Repository, describe, describe_with_schema
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId
from mergeyard.domain.pull_requests import RequiredSource, StatusState
from mergeyard.domain.states import Mergeability, PullRequestState, QueueState, Reason, RunStatus
from mergeyard.service.previews import MergesBy
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


PrNumber = Annotated[int, describe("Number of the pull request.")]


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


class RuleRequirement(ResponseBody, frozen=True, kw_only=True):
    """Something that a rule of the Git host requires of a pull request."""

    code: Annotated[Reason, describe("The reason code while it is not met.")]
    message: Annotated[str, describe("What the pull request has or lacks, as a sentence.")]
    needed: Annotated[int, describe("How much the rule requires, such as two approvals.")]
    given: Annotated[int | None, describe("How much it has; null when the queue cannot read it.")]
    names: Annotated[tuple[str, ...], describe("Who or what it is about, or the permission to grant.")]
    met: Annotated[
        bool, describe("Whether it lets the pull request merge. Also true for an unknown rule that is ignored.")
    ]


class TimelineEntry(ResponseBody, frozen=True, kw_only=True):
    """One change of a pull request: of its state or, with the same state in `from` and `to`, by a person."""

    at: Annotated[Timestamp, describe("When it happened.")]
    source: Annotated[str | None, describe("The state before; null for the submission.")] = field(name="from")
    to: Annotated[str, describe("The state after.")]
    reason: Annotated[str, describe("The reason code.")]
    message: Annotated[str, describe("The reason as a sentence.")]
    actor: Annotated[str, describe("The token, user or component that caused the change.")]
    caused_by: Annotated[
        tuple[int, ...], describe("The pull requests because of which this one is tested again, if any.")
    ]
    test_run_id: Annotated[str | None, describe("The test run that the change belongs to, if any.")]


class EnqueuedPullRequest(ResponseBody, frozen=True, kw_only=True):
    """One submission of a pull request, as an entry of its queue."""

    id: Annotated[str, describe("Identifies this submission; submitting again after its end gives another.")]
    state: Annotated[PullRequestState, describe("State of the pull request in the queue.")]
    state_changed_at: Annotated[Timestamp, describe("When its state changed last.")]
    priority_value: Annotated[int, describe("0 is the highest.")]
    priority_name: Annotated[str, describe("The priority's name, or the number itself.")]
    used_default_priority_name: UsedDefaultPriorityName | UnsetType = UNSET
    skip_the_line: Annotated[bool, describe("Whether it is `urgent` and overtakes all others.")]
    no_batch: Annotated[bool, describe("Whether it is tested alone, even if the queue uses batches.")]
    pr_number: PrNumber
    pr_title: Annotated[str, describe("Title of the pull request.")]
    pr_sha: Annotated[str, describe("The head commit of this submission.")]
    pr_base_branch: Annotated[str, describe("The branch that the pull request targets.")]
    pr_author: Annotated[str, describe("The author's name on the Git host.")]
    test_run_id: Annotated[str | None, describe("The test run in progress, else the last one.")]
    position: Annotated[int | None, describe("From 1; null when not ready or concluded.")]
    reason: Annotated[ReasonDetails, describe("Why it is in its state, or what it waits for.")]
    requirements: Annotated[
        tuple[RuleRequirement, ...], describe("What the rules of the Git host require of it, also what is met.")
    ]
    estimated_merge_at: Annotated[Timestamp | None, describe("Median of the estimated time of its merge.")]
    estimated_merge_at_p90: Annotated[Timestamp | None, describe("The 90th percentile of the same estimate.")]
    estimate_note: Annotated[str | None, describe("Why there is no estimate; null with one, and after the end.")]
    bisection_note: Annotated[
        str | None, describe("What the bisection of a failed batch means for it, as a sentence; else null.")
    ]


class SubmittedPullRequest(EnqueuedPullRequest, frozen=True, kw_only=True):
    """One submission of a pull request."""

    force_enqueued: Annotated[bool, describe("Whether it was submitted with `force`.")]
    is_currently_submitted_to_queue: Annotated[bool, describe("Whether its state is not final.")]
    readiness: Annotated[Readiness, describe("What it needs before it can be tested.")]
    mergeability: Annotated[Mergeability, describe("Whether it merges without conflicts.")]
    verified_by_test_run: Annotated[str | None, describe("The test run that verified its merge.")]
    submitted_at: Annotated[Timestamp, describe("When it was submitted.")]
    merged_sha: Annotated[str | None, describe("Its own commit on the target branch.")]
    timeline: (
        Annotated[tuple[TimelineEntry, ...], describe("Newest first; present with `includeTimeline`.")] | UnsetType
    ) = UNSET


class OpenPullRequest(ResponseBody, frozen=True, kw_only=True):
    """An open pull request on the Git host, submitted or not."""

    pr_number: PrNumber
    pr_title: Annotated[str, describe("Title of the pull request.")]
    pr_author: Annotated[str, describe("The author's name on the Git host.")]
    pr_sha: Annotated[str, describe("The head commit of the pull request.")]
    head_branch: Annotated[str, describe("Its head branch; a fork can have a branch of the same name.")]
    is_draft: Annotated[bool, describe("Whether it is a draft.")]


class OpenPullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: Annotated[
        tuple[OpenPullRequest, ...], describe("At most 100, newest first; up to some seconds old.")
    ]


class ProvenanceSignature(ResponseBody, frozen=True, kw_only=True):
    keyid: Annotated[str, describe("Fingerprint of the public key.")]
    sig: Annotated[str, describe("The signature in Base64.")]


class ProvenanceEnvelope(ResponseBody, frozen=True, kw_only=True):
    payload_type: Annotated[str, describe("Always `application/vnd.in-toto+json`.")]
    payload: Annotated[str, describe("An in-toto statement in Base64.")]
    signatures: Annotated[tuple[ProvenanceSignature, ...], describe("By the signing key of the Git host.")]


class Provenance(ResponseBody, frozen=True, kw_only=True):
    sha: Annotated[str, describe("The merged commit.")]
    envelope: Annotated[ProvenanceEnvelope, describe("The DSSE envelope, as it is in the git note of the commit.")]


class StoppedTestRun(ResponseBody, frozen=True, kw_only=True):
    test_run_id: Annotated[str, describe("Id of the test run.")]
    pr_numbers: Annotated[tuple[int, ...], describe("Numbers of the pull requests that it tests.")]
    elapsed_seconds: Annotated[float, describe("How long it has been running.")]


class ActionPreview(ResponseBody, frozen=True, kw_only=True):
    """What an action would stop. An action that the queue would refuse stops nothing."""

    stopped_test_runs: Annotated[tuple[StoppedTestRun, ...], describe("The running test runs that would stop.")]
    retested_pr_numbers: Annotated[
        tuple[int, ...], describe("Numbers of the other pull requests that would be tested again.")
    ]
    lost_ci_seconds: Annotated[float, describe("Sum of `elapsedSeconds` of the stopped test runs.")]
    is_upper_bound: Annotated[
        bool, describe("Whether less may stop, because the impacted targets of the pull request are not known yet.")
    ]


class CommitMessagePreview(ResponseBody, frozen=True, kw_only=True):
    """With which words, and how, a pull request would merge now."""

    pr_number: PrNumber
    pr_sha: Annotated[str, describe("The head commit of the pull request.")]
    merge_method: Annotated[MergeMethod, describe("How the pull request becomes commits.")]
    merges_by: Annotated[
        MergesBy,
        describe("`close`: the queue pushes the tested commit, and closes the pull request."),
    ]
    explanation: Annotated[str, describe("The same in sentences, with the reason.")]
    commit_messages: Annotated[
        tuple[str, ...], describe("Of the commits that it becomes, oldest first; several only with `rebase`.")
    ]


class CheckRun(ResponseBody, frozen=True, kw_only=True):
    name: Annotated[str, describe("Name of the check.")]
    url: Annotated[str, describe("Its page.")]
    status: Annotated[Literal["in_progress", "completed"], describe("Whether it is finished.")]
    conclusion: Annotated[StatusState | None, describe("Its result; null while it is in progress.")]


class CheckSuite(ResponseBody, frozen=True, kw_only=True):
    """Checks that one app reports together."""

    check_runs: Annotated[tuple[CheckRun, ...], describe("The checks of the suite.")]


class StatusCheck(ResponseBody, frozen=True, kw_only=True):
    """A check that is reported as the status of a commit."""

    context: Annotated[str, describe("Name of the check.")]
    url: Annotated[str, describe("Its page.")]
    state: Annotated[StatusState, describe("Its last reported state.")]


class TestedPullRequest(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: PrNumber
    pr_url: Annotated[str, describe("Page of the pull request.")]
    title: Annotated[str, describe("Title of the pull request.")]


class TestRun(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    id: Annotated[str, describe("Id of the test run.")]
    required_statuses: Annotated[tuple[str, ...], describe("Checks that must all pass.")]
    required_statuses_source: Annotated[
        RequiredSource,
        describe("Where the required checks are configured: in the repository, at the Git host, or in the queue."),
    ]
    test_branch: Annotated[str, describe("The temporary branch that is tested.")]
    test_branch_sha: Annotated[str, describe("The tip of the test branch.")]
    check_suites: Annotated[tuple[CheckSuite, ...], describe("Checks that apps report, by suite.")]
    status_checks: Annotated[tuple[StatusCheck, ...], describe("Checks that are reported as the status of the tip.")]
    tested_pull_requests: Annotated[
        tuple[TestedPullRequest, ...], describe("Empty when the run tests the target branch itself.")
    ]
    status: PublicRunStatus
    created_at: Annotated[Timestamp, describe("When the test run started.")]
    impacted_targets: Annotated[tuple[str, ...], describe("Of all pull requests in the test branch.")] | UnsetType = (
        UNSET
    )
    impacted_targets_for_tested_prs: (
        Annotated[tuple[str, ...], describe("Of the tested pull requests.")] | UnsetType
    ) = UNSET
    dependent_prs: Annotated[
        tuple[int, ...], describe("In the test branch, but not tested by this run; in merge order.")
    ]
    is_bisection: Annotated[bool, describe("Whether the run belongs to the bisection of a failed batch.")]
    base_sha: Annotated[str, describe("The commit below the first pull request that it tests.")]


class QueueObstacle(ResponseBody, frozen=True, kw_only=True):
    """What keeps a queue from working with its Git host. It ends by itself when the cause is gone."""

    code: Annotated[Reason, describe("The reason code.")]
    message: Annotated[str, describe("What is wrong and who can repair it, with the message of the Git host.")]
    since: Annotated[Timestamp, describe("Since when.")]
    pr_number: Annotated[int | None, describe("The pull request, if only one is concerned.")]
    until: Annotated[Timestamp | None, describe("When the Git host accepts requests again, if it limits them.")]


class PullRequestCounts(ResponseBody, frozen=True, kw_only=True):
    queued: Annotated[int, describe("Also those that are ready and wait until the queue runs again.")]
    testing: Annotated[int, describe("In active batches and bisections; a part of `queued`.")]
    not_ready: Annotated[int, describe("Those that lack something.")]


class NextMerge(ResponseBody, frozen=True, kw_only=True):
    at: Annotated[Timestamp | None, describe("The earliest of the estimates; null when it is not known.")]
    note: Annotated[str | None, describe("Why it is not known, or what to know about it.")]


class QueueBase(ResponseBody, frozen=True, kw_only=True):
    """A queue without its settings; `QueueResponse` adds one member per setting."""

    state: Annotated[QueueState, describe("State of the queue.")]
    state_reason: Annotated[
        str | None, describe("Why the queue is paused or draining, if a user or the queue itself gave a reason.")
    ]
    branch: Annotated[str, describe("The branch that the queue merges into.")]
    repo: Annotated[Repository, describe("The repository.")]
    obstacle: (
        Annotated[QueueObstacle, describe("What keeps the queue from working with its Git host; absent: nothing.")]
        | UnsetType
    ) = UNSET
    problems: (
        Annotated[
            tuple[str, ...],
            describe("Why an administrator should look at it, next to its state; in `getQueue` and `listQueues`."),
        ]
        | UnsetType
    ) = UNSET
    pull_request_counts: (
        Annotated[PullRequestCounts, describe("How many it has; in `getQueue` and `listQueues`.")] | UnsetType
    ) = UNSET
    next_merge: Annotated[NextMerge, describe("When the next one merges; in `getQueue`.")] | UnsetType = UNSET
    enqueued_pull_requests: (
        Annotated[
            tuple[EnqueuedPullRequest, ...], describe("In order; only in responses of `getQueue` and `createQueue`.")
        ]
        | UnsetType
    ) = UNSET


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
    deleted: Annotated[Literal[True], describe("Always `true`.")] = True
    repo: Annotated[Repository, describe("The repository.")]
    target_branch: Annotated[str, describe("The branch that the queue merged into.")]


class ImpactedTargetsResult(ResponseBody, frozen=True, kw_only=True):
    pr_number: PrNumber
    pr_sha: Annotated[str, describe("The commit that the targets are stored for.")]
    impacted_targets: Annotated[Literal["ALL"] | int, describe("`ALL`, or how many there are.")]


class PullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: Annotated[tuple[SubmittedPullRequest, ...], describe("One per submission, newest first.")]
    next_cursor: Annotated[str, describe("Present when there are more pages.")] | UnsetType = UNSET


class FoundPullRequests(ResponseBody, frozen=True, kw_only=True):
    pull_requests: Annotated[
        tuple[SubmittedPullRequest, ...], describe("The last submission of each, in the order of the request.")
    ]
    not_found: Annotated[tuple[int, ...], describe("The numbers that were never submitted.")]


class TestingResult(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    pr_number: PrNumber
    test_run_id: Annotated[str, describe("Id of the test run.")]
    status: PublicRunStatus
    is_bisection: Annotated[bool, describe("Whether the run belongs to the bisection of a failed batch.")]
    started_at: Annotated[Timestamp, describe("When the test run started.")]
    finished_at: Annotated[Timestamp, describe("When its result was known, or it was stopped.")]
    duration_seconds: Annotated[float, describe("From its start to its end.")]


class TestingResults(ResponseBody, frozen=True, kw_only=True):
    __test__ = False
    testing_results: Annotated[tuple[TestingResult, ...], describe("One per pull request and test run, newest first.")]
    total_items: Annotated[int, describe("How many there are in the whole period.")]


Queues = defstruct(
    "Queues",
    [("queues", Annotated[tuple[QueueResponse, ...], describe("Without their pull requests.")])],
    bases=(ResponseBody,),
    frozen=True,
    kw_only=True,
    rename="camel",
)


class QueueEvent(WebhookEvent, frozen=True, kw_only=True):
    """Its members have the names of webhook data (snake case), so one program can read both."""

    type: Annotated[str, describe("The type of event.")]
    timestamp: Annotated[Timestamp, describe("When it happened.")]
    repository: Annotated[str | None, describe("The repository, as `host/owner/name`.")] = None
    target_branch: Annotated[str | None, describe("The branch that the queue merges into.")] = None
    pr_number: Annotated[PullRequestNumber | None, describe("Null for events of the queue itself.")] = None
    author: Annotated[str | None, describe("Author of the pull request.")] = None
    state: Annotated[str | None, describe("The new state of the pull request or of the queue.")] = None
    reason: Annotated[str | None, describe("The reason code.")] = None
    actor: Annotated[str | None, describe("Who caused the event; null: the queue itself.")] = None
    caused_by: Annotated[
        tuple[PullRequestNumber, ...], describe("The pull requests because of which this one is tested again, if any.")
    ] = ()
    test_run_id: Annotated[RunId | None, describe("The test run that the event belongs to, if any.")] = None
    test_branch: Annotated[str | None, describe("The branch of that test run.")] = None
    test_branch_sha: Annotated[str | None, describe("The tip of that branch.")] = None
    batched: Annotated[bool, describe("Whether that test run tests several pull requests.")] = False
    is_bisection: Annotated[bool, describe("Whether that test run belongs to a bisection.")] = False
    details_url: Annotated[str, describe("Page of the pull request or of the queue on this server.")]
    cursor: Annotated[str, describe("Send it as `after` to read the events that follow this one.")]
    message: Annotated[str, describe("What happened, as a sentence.")]


class Events(ResponseBody, frozen=True, kw_only=True):
    events: Annotated[tuple[QueueEvent, ...], describe("Oldest first.")]
    next: Annotated[str, describe("Send it as `after` to read the next page.")]


class StatusAccepted(ResponseBody, frozen=True, kw_only=True):
    accepted: Annotated[
        Literal[True], describe("Always `true`, also for a commit that no test run is interested in.")
    ] = True
