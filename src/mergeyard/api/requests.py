"""What each endpoint is asked: the members of its request, by name, type and meaning."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from mergeyard.api import queue_settings, wire
from mergeyard.api.wire import RepoReference, says
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState

Take = Annotated[int, Meta(ge=1, le=100, description="How many at most.")]
NonEmpty = Annotated[str, Meta(min_length=1)]


class Request(Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class OfQueue(Request, frozen=True, kw_only=True):
    """Which queue is meant."""

    repo: RepoReference
    target_branch: wire.TargetBranch

    @property
    def key(self) -> QueueKey:
        return QueueKey(self.repo.repo, self.target_branch)


class GetQueue(OfQueue, frozen=True, kw_only=True):
    pass


class DeleteQueue(OfQueue, frozen=True, kw_only=True):
    pass


class Numbered(Struct, frozen=True):
    number: wire.PrNumber


class Pinned(Struct, frozen=True, kw_only=True):
    number: wire.PrNumber
    sha: wire.Sha | UnsetType = UNSET


class Reviewed(Struct, frozen=True, kw_only=True):
    number: wire.PrNumber
    sha: (
        Annotated[wire.Sha, says("The full SHA of the head that was reviewed; required for pull requests from forks.")]
        | UnsetType
    ) = UNSET


class NumberOrBranch(Struct, frozen=True, kw_only=True):
    number: wire.PrNumber | UnsetType = UNSET
    branch: Annotated[NonEmpty, says("Its head branch; where the number is given too, that counts.")] | UnsetType = (
        UNSET
    )

    def __post_init__(self) -> None:
        if self.number is UNSET and self.branch is UNSET:
            raise ValueError("Object missing required field `number`")


class CancelPullRequest(OfQueue, frozen=True, kw_only=True):
    pr: Numbered


class RestartTestsOnPullRequest(OfQueue, frozen=True, kw_only=True):
    pr: Numbered


class SubmitPullRequest(OfQueue, frozen=True, kw_only=True):
    """Members that are not given stay as they are when the pull request is already queued."""

    pr: Reviewed
    priority: wire.Priority | UnsetType = UNSET
    no_batch: Annotated[bool, says("Test it alone, also where batches are on.")] | UnsetType = UNSET
    force: Annotated[bool, says("Do not wait for mergeability; needs the scope `priority`.")] | UnsetType = UNSET


class GetSubmittedPullRequest(OfQueue, frozen=True, kw_only=True):
    pr: Annotated[
        NumberOrBranch, Meta(extra_json_schema={"anyOf": [{"required": ["number"]}, {"required": ["branch"]}]})
    ]
    include_timeline: Annotated[bool, says("Also tell what happened to it.")] = False


class SetImpactedTargets(OfQueue, frozen=True, kw_only=True):
    pr: Pinned
    impacted_targets: wire.ImpactedTargets


class GetMergeQueueTestingDetails(OfQueue, frozen=True, kw_only=True):
    test_run_id: Annotated[str, says("Which run; its branch's ending `-bisection` may follow.")]


class ListPullRequests(OfQueue, frozen=True, kw_only=True):
    state: PrState | UnsetType = UNSET
    since: wire.Time | UnsetType = UNSET
    until: wire.Time | UnsetType = UNSET
    cursor: Annotated[NonEmpty, says("Where the page before ended: its `nextCursor`.")] | UnsetType = UNSET
    take: Take = 50


class GetSubmittedPullRequests(OfQueue, frozen=True, kw_only=True):
    prs: Annotated[list[Numbered], Meta(max_length=50)]


class ListMergeQueueTestingResults(OfQueue, frozen=True, kw_only=True):
    since: wire.Time
    until: wire.Time | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**31 - 1, description="How many to skip.")] = 0
    take: Take = 50


class ListQueues(Request, frozen=True, kw_only=True):
    pass


class ListEvents(OfQueue, frozen=True, kw_only=True):
    after: wire.Cursor = 0
    take: Take = 50
    wait_seconds: Annotated[int, Meta(ge=0, le=30, description="How long to wait until there is something.")] = 0


class ReportedState(StrEnum):
    """What a client may report: `skipped` and `neutral` come from Git hosts alone."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


class ReportCommitStatus(Request, frozen=True, kw_only=True):
    repo: RepoReference
    sha: wire.Sha
    context: Annotated[str, Meta(min_length=1, max_length=255, description="The name of the status.")]
    state: ReportedState
    url: (
        Annotated[
            str,
            Meta(
                max_length=4096, pattern=wire.WEB_ADDRESS, description="Where to read more: an http or https address."
            ),
        ]
        | UnsetType
    ) = UNSET
    description: Annotated[str, Meta(max_length=4096, description="In a few words.")] | UnsetType = UNSET


class Settling(OfQueue, frozen=True, kw_only=True):
    """A request that names settings."""

    @property
    def given(self) -> dict[str, Any]:
        """Those that were named, checked, under the names of the domain."""
        named = {name: getattr(self, name) for name in queue_settings.NAMES}
        return {name: value for name, value in named.items() if value is not UNSET}


class Updating(Settling, frozen=True, kw_only=True):
    state: Annotated[Literal["RUNNING", "PAUSED", "DRAINING"], says("What the queue should do.")] | UnsetType = UNSET
    delete_required_statuses: Annotated[bool, says("Drop the override; the repository chooses again.")] = False

    def __post_init__(self) -> None:
        if self.delete_required_statuses and super().given.get("required_statuses") is not None:
            raise ValueError("`requiredStatuses` and `deleteRequiredStatuses` contradict each other")

    @property
    def given(self) -> dict[str, Any]:
        dropped = {"required_statuses": None} if self.delete_required_statuses else {}
        return super().given | dropped


CreateQueue = defstruct(
    "CreateQueue",
    queue_settings.GIVEN,
    bases=(Settling,),
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
)
UpdateQueue = defstruct(
    "UpdateQueue",
    queue_settings.GIVEN,
    bases=(Updating,),
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
)


class GetMergeQueueMetrics(Request, frozen=True, kw_only=True):
    repo: Annotated[str, says("Only this repository, as `owner/name`; needs `repoHost`.")] | UnsetType = UNSET
    repo_host: Annotated[str, says("The host of `repo`.")] | UnsetType = UNSET

    @property
    def only(self) -> Repo | None:
        """The repository to which the figures are restricted."""
        if self.repo is UNSET or self.repo_host is UNSET:
            return None
        owner, _, name = self.repo.rpartition("/")
        return Repo(self.repo_host.lower(), owner, name)
