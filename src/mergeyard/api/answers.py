"""What each endpoint answers: the members of its answer, by name, type and meaning."""

from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Struct, UnsetType, defstruct, field
from msgspec.structs import asdict

from mergeyard.api import queue_settings
from mergeyard.api.wire import RepoReference, says, shown
from mergeyard.domain.config import Config
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import RequiredSource
from mergeyard.domain.states import Mergeability, PrState, QueueState, RunStatus
from mergeyard.domain.statuses import StatusState
from mergeyard.service.telling.events import Event

At = Annotated[str, shown("ISO 8601 in UTC.", {"type": "string", "format": "date-time"})]
ShownStatus = Annotated[
    RunStatus,
    shown(
        "How far the run is.",
        {"type": "string", "enum": [status.value for status in RunStatus if status is not RunStatus.PREPARING]},
    ),
]


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Readiness(Answer, frozen=True, kw_only=True):
    requires_impacted_targets: Annotated[bool, says("Whether it needs impacted targets before it is tested.")]
    does_base_branch_match: Annotated[bool, says("Whether its base is the queue's target branch.")]
    has_impacted_targets: Annotated[bool, says("Whether its impacted targets are known.")]


class Why(Answer, frozen=True, kw_only=True):
    code: Annotated[Reason, says("Why it is in this state, in one word.")]
    message: Annotated[str, says("The same for people.")]
    waiting_for: Annotated[tuple[int, ...], says("The pull requests that it waits for.")] = ()


class Moment(Answer, frozen=True, kw_only=True):
    """One entry of a timeline."""

    at: At
    source: str | None = field(name="from")
    to: str
    reason: str
    message: str
    actor: Annotated[str, says("Who or what caused it.")]
    test_run_id: str | None


class SubmittedPullRequest(Answer, frozen=True, kw_only=True):
    id: Annotated[str, says("One stay in the queue; a later stay has another.")]
    state: PrState
    state_changed_at: At
    priority_value: Annotated[int, says("0 is the highest.")]
    priority_name: Annotated[str, says("The priority's name, or the number itself.")]
    used_default_priority_name: Annotated[str, says("Only there when no priority was asked for.")] | UnsetType = UNSET
    skip_the_line: Annotated[bool, says("Whether it goes before everybody.")]
    force_enqueued: Annotated[bool, says("Whether it was submitted with `force`.")]
    is_currently_submitted_to_queue: Annotated[bool, says("Whether its state is not final.")]
    pr_number: int
    pr_title: str
    pr_sha: Annotated[str, says("The head of this stay.")]
    pr_base_branch: str
    pr_author: str
    readiness: Readiness
    no_batch: bool
    mergeability: Mergeability
    test_run_id: Annotated[str | None, says("The run that tests it, else its last.")]
    verified_by_test_run: Annotated[str | None, says("The run that verified its merge.")]
    position: Annotated[int | None, says("Its place, from 1; null when not ready or over.")]
    reason: Why
    estimated_merge_at: At | None
    estimated_merge_at_p90: At | None
    submitted_at: At
    merged_sha: Annotated[str | None, says("Its own commit on the target.")]
    timeline: Annotated[tuple[Moment, ...], says("Newest first; only when asked for.")] | UnsetType = UNSET


class EnqueuedPullRequest(Answer, frozen=True, kw_only=True):
    id: str
    state: PrState
    state_changed_at: At
    priority_value: int
    priority_name: str
    skip_the_line: bool
    no_batch: bool
    pr_number: int
    pr_title: str
    pr_sha: str
    pr_base_branch: str
    pr_author: str
    test_run_id: str | None
    position: int | None
    reason: Why


class CheckRun(Answer, frozen=True, kw_only=True):
    name: str
    url: str
    status: str
    conclusion: str | None


class CheckSuite(Answer, frozen=True, kw_only=True):
    check_runs: tuple[CheckRun, ...]


class StatusCheck(Answer, frozen=True, kw_only=True):
    context: str
    url: str
    state: StatusState


class TestedPullRequest(Answer, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    pr_url: str
    title: str


class RunDetails(Answer, frozen=True, kw_only=True):
    id: str
    required_statuses: Annotated[tuple[str, ...], says("All of them must pass.")]
    required_statuses_source: RequiredSource
    test_branch: str
    test_branch_sha: str
    check_suites: tuple[CheckSuite, ...]
    status_checks: tuple[StatusCheck, ...]
    tested_pull_requests: tuple[TestedPullRequest, ...]
    status: ShownStatus
    created_at: At
    impacted_targets: Annotated[tuple[str, ...], says("Of everything in the test branch.")] | UnsetType = UNSET
    impacted_targets_for_tested_prs: Annotated[tuple[str, ...], says("Of those that it tests.")] | UnsetType = UNSET
    dependent_prs: Annotated[tuple[int, ...], says("In the branch, but not tested by this run; in merge order.")]
    is_bisection: bool
    base_sha: Annotated[str, says("The commit under the first pull request that it tests.")]


class Queue(Answer, frozen=True, kw_only=True):
    """What all answers about a queue have; its settings follow."""

    state: QueueState
    branch: str
    repo: RepoReference
    enqueued_pull_requests: tuple[EnqueuedPullRequest, ...] | UnsetType = UNSET


WholeQueue = defstruct(
    "Queue", queue_settings.SHOWN, bases=(Queue,), module=__name__, frozen=True, kw_only=True, rename="camel"
)


def queue(
    config: Config,
    *,
    state: QueueState,
    branch: str,
    repo: RepoReference,
    enqueued: tuple[EnqueuedPullRequest, ...] | UnsetType = UNSET,
) -> Queue:
    settings: dict[str, Any] = asdict(config)
    whole = WholeQueue(state=state, branch=branch, repo=repo, enqueued_pull_requests=enqueued, **settings)
    return cast(Queue, whole)


class QueueDeleted(Answer, frozen=True, kw_only=True):
    deleted: Literal[True] = True
    repo: RepoReference
    target_branch: str


class TargetsKept(Answer, frozen=True, kw_only=True):
    pr_number: int
    pr_sha: str
    impacted_targets: Annotated[Literal["ALL"] | int, says("`ALL`, or how many there are.")]


class PullRequests(Answer, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    next_cursor: Annotated[str, says("Only there when more follow.")] | UnsetType = UNSET


class FoundPullRequests(Answer, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    not_found: Annotated[tuple[int, ...], says("The numbers that were never submitted.")]


class TestingResult(Answer, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    test_run_id: str
    status: ShownStatus
    is_bisection: bool
    started_at: At
    finished_at: At
    duration_seconds: float


class TestingResults(Answer, frozen=True, kw_only=True):
    __test__ = False
    testing_results: tuple[TestingResult, ...]
    total_items: int


Queues = defstruct(
    "Queues", [("queues", tuple[WholeQueue, ...])], bases=(Answer,), frozen=True, kw_only=True, rename="camel"
)


class QueueEvent(Event, frozen=True, kw_only=True):
    """Its members are named as in a webhook's data, so that one program reads both."""

    timestamp: At
    cursor: Annotated[str, says("Its place; `after` it comes the next.")]
    message: Annotated[str, says("What happened, for people.")]


class Events(Answer, frozen=True, kw_only=True):
    events: Annotated[tuple[QueueEvent, ...], says("Oldest first.")]
    next: Annotated[str, says("Send it as `after` to read on.")]


class StatusAccepted(Answer, frozen=True, kw_only=True):
    accepted: Literal[True] = True
