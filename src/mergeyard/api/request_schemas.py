"""The request bodies of the endpoints: the name, type and meaning of every member."""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, json, structs

from mergeyard.api import fields
from mergeyard.api.fields import CoerceWith, InvalidValueError
from mergeyard.domain import ids
from mergeyard.domain.config import LOWEST_PRIORITY, MAX_LABEL_LENGTH, PRIORITIES, SETTING_DESCRIPTIONS, Config
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.service.impacted_targets import EncodedTargets
from mergeyard.service.previews import Action

SCHEMA_OVERRIDE_KEY = "x-schema-override"
"""Key of the schema that `openapi` uses instead of the derived one, where JSON form and Python type differ."""
BRANCH_PATTERN = (
    r"^(?!-)(?!mergeyard(?:/|$))(?!HEAD$)(?!\.)(?!/)(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))"
    r"[^\u0000-\u0020\u007f~^:?*\[\\]+(?<![./])$"
)


def describe(text: str) -> Meta:
    return Meta(description=text)


def describe_with_schema(text: str, schema: dict[str, Any]) -> Meta:
    return Meta(description=text, extra_json_schema={SCHEMA_OVERRIDE_KEY: schema})


PrNumber = Annotated[
    int,
    Meta(ge=1, le=2**31 - 1),
    describe_with_schema(
        "The pull request's number, as an integer or a string of digits.",
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
            ]
        },
    ),
    CoerceWith(fields.coerce_number),
]
Cursor = Annotated[
    int,
    Meta(ge=0, le=10**18 - 1),
    describe_with_schema(
        "The `next` or a `cursor` of a response for the same queue: only later events are returned. "
        "Any other value starts with the oldest stored event.",
        {
            "anyOf": [
                {"type": "string", "pattern": "^[0-9]{1,18}$"},
                {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
            ]
        },
    ),
    CoerceWith(fields.coerce_number),
]
Priority = Annotated[
    Annotated[int, Meta(ge=0, le=LOWEST_PRIORITY)] | None,
    describe_with_schema(
        "0 is highest and needs the scope `priority`. `urgent` is 0, `high` 10, `medium` 100, `low` 200. "
        "`null` means the same as no priority.",
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LOWEST_PRIORITY},
                {"type": "string", "enum": list(PRIORITIES)},
                {"type": "null"},
            ]
        },
    ),
    CoerceWith(fields.coerce_priority),
]
WEB_URL_PATTERN = "^([hH][tT][tT][pP][sS]?://|$)"
"""Pages and clients link to it, so no other scheme is accepted; empty means no link."""
Sha = Annotated[
    ids.Sha,
    describe_with_schema("Full SHA of a commit.", {"type": "string", "pattern": f"^({ids.SHA_PATTERN})$"}),
    CoerceWith(fields.coerce_sha),
]
Time = Annotated[
    Instant,
    describe_with_schema("ISO 8601 with a UTC offset or Z.", {"type": "string", "format": "date-time"}),
    CoerceWith(fields.coerce_time),
]
TargetBranch = Annotated[
    str,
    describe_with_schema(
        "The branch that the merge queue targets.", {"type": "string", "maxLength": 255, "pattern": BRANCH_PATTERN}
    ),
    CoerceWith(fields.coerce_target_branch),
]
ImpactedTargets = Annotated[
    EncodedTargets,
    describe_with_schema(
        "Names of build or test targets, or `ALL`. Empty names are dropped; a list without names means that the pull "
        "request impacts nothing.",
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string", "maxLength": 1024}},
                {"type": "string", "enum": ["ALL", "IMPACTS_ALL"]},
            ]
        },
    ),
]
_PART = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^(?!-)(?!\.{1,2}$)[A-Za-z0-9._-]+$"}
_GROUP = r"(?![-.])(?![^/]*\.git(/|$))[A-Za-z0-9._-]{1,100}"
_OWNER = {
    "type": "string",
    "minLength": 1,
    "pattern": rf"^(?:(?!-)(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,100}}|{_GROUP}(/{_GROUP}){{1,20}})$",
}


class Repository(Struct, frozen=True):
    """Names a repository."""

    host: Annotated[str, describe("Host name of the Git host."), CoerceWith(fields.coerce_host)]
    owner: Annotated[
        str,
        describe_with_schema("Owner or organization, or nested groups: `acme/tools`.", _OWNER),
        CoerceWith(fields.coerce_owner),
    ]
    name: Annotated[
        str, describe_with_schema("Name of the repository.", _PART), CoerceWith(fields.coerce_repository_name)
    ]

    @classmethod
    def from_repo(cls, repo: Repo) -> "Repository":
        return cls(repo.host, repo.owner, repo.name)

    @property
    def repo(self) -> Repo:
        return Repo(self.host, self.owner, self.name)


SETTING_NAMES = tuple(field.name for field in structs.fields(Config))
REQUIRED_STATUSES_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}, {"type": "null"}]
}


MAX_LIST_ITEMS = 100
MAX_LIST_BYTES = 16 * 1024
"""Every decision stores all settings again, so a list without effect must stay small."""


def _list_without_effect(item_type: type, item_schema_type: str) -> tuple[dict[str, Any], CoerceWith]:
    """Schema and coercer of a setting that is a list in requests and responses, and its JSON text in `Config`."""

    def coerce(value: Any) -> str:
        if not isinstance(value, list):
            raise InvalidValueError("expected a list")
        items = cast(list[Any], value)
        for at, item in enumerate(items):
            if not isinstance(item, item_type):
                raise InvalidValueError(f"expected a value of the type {item_schema_type}", pointer=f"/{at}")
        try:
            text = json.encode(items)
        except RecursionError:
            raise InvalidValueError("expected values that are not nested so deeply") from None
        if len(items) > MAX_LIST_ITEMS or len(text) > MAX_LIST_BYTES:
            raise InvalidValueError(f"expected at most {MAX_LIST_ITEMS} items and {MAX_LIST_BYTES:,} bytes of JSON")
        return text.decode()

    schema = {"type": "array", "maxItems": MAX_LIST_ITEMS, "items": {"type": item_schema_type}}
    return schema, CoerceWith(coerce)


SETTINGS_WITH_OWN_SCHEMA: dict[str, tuple[dict[str, Any], CoerceWith]] = {
    "required_statuses": (REQUIRED_STATUSES_SCHEMA, CoerceWith(fields.coerce_required_statuses)),
    "allowed_bot_submitters": _list_without_effect(str, "string"),
    "batching_rules": _list_without_effect(dict, "object"),
    "squash_template": (fields.TEMPLATE_SCHEMA, CoerceWith(fields.coerce_template)),
}
"""Settings whose form in JSON differs from that in `Config`, or that have a rule of their own."""


def _annotate(name: str, field_type: Any) -> Any:
    if name in SETTINGS_WITH_OWN_SCHEMA:
        schema, coercer = SETTINGS_WITH_OWN_SCHEMA[name]
        return Annotated[field_type, describe_with_schema(SETTING_DESCRIPTIONS[name], schema), coercer]
    if field_type is str:
        field_type = Annotated[field_type, Meta(min_length=1, max_length=MAX_LABEL_LENGTH)]
    return Annotated[field_type, describe(SETTING_DESCRIPTIONS[name])]


SETTING_FIELDS: list[tuple[str, Any]] = [
    (field.name, _annotate(field.name, field.type)) for field in structs.fields(Config)
]
"""Name and type of every setting."""


Take = Annotated[int, Meta(ge=1, le=100, description="How many at most.")]
NonEmpty = Annotated[str, Meta(min_length=1)]


class Request(Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class QueueRequest(Request, frozen=True, kw_only=True):
    """Names a queue by its repository and target branch."""

    repo: Annotated[Repository, describe("The repository.")]
    target_branch: TargetBranch

    @property
    def key(self) -> QueueKey:
        return QueueKey(self.repo.repo, self.target_branch)


class GetQueue(QueueRequest, frozen=True, kw_only=True):
    pass


class ListOpenPullRequests(QueueRequest, frozen=True, kw_only=True):
    pass


class DeleteQueue(QueueRequest, frozen=True, kw_only=True):
    pass


class PullRequestRef(Struct, frozen=True):
    number: PrNumber


class PullRequestHeadRef(Struct, frozen=True, kw_only=True):
    number: PrNumber
    sha: Annotated[Sha, describe("Full SHA of a commit; default: the current head.")] | UnsetType = UNSET


class ReviewedPullRequestRef(Struct, frozen=True, kw_only=True):
    number: PrNumber
    sha: (
        Annotated[Sha, describe("Full SHA of the reviewed head commit; required for pull requests from forks.")]
        | UnsetType
    ) = UNSET


class PullRequestLookup(Struct, frozen=True, kw_only=True):
    number: PrNumber | UnsetType = UNSET
    branch: Annotated[NonEmpty, describe("Its head branch; ignored when `number` is given.")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.number is UNSET and self.branch is UNSET:
            raise ValueError("Object missing required field `number`")


class MergedPullRequestLookup(Struct, frozen=True, kw_only=True, rename="camel"):
    number: PrNumber | UnsetType = UNSET
    merged_sha: Annotated[Sha, describe("Its merged commit; ignored when `number` is given.")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.number is UNSET and self.merged_sha is UNSET:
            raise ValueError("Object missing required field `number`")


PullRequest = Annotated[PullRequestRef, describe("The pull request.")]


class CancelPullRequest(QueueRequest, frozen=True, kw_only=True):
    pr: PullRequest


class RestartTestsOnPullRequest(QueueRequest, frozen=True, kw_only=True):
    pr: PullRequest


class PreviewPullRequestAction(QueueRequest, frozen=True, kw_only=True):
    pr: PullRequest
    action: Annotated[Action, describe("What the user wants to do; `priority` gives it another priority.")]
    priority: (
        Annotated[Priority, describe("The priority that `submit` or `priority` would set; default: `medium`.")]
        | UnsetType
    ) = UNSET


class PreviewCommitMessage(QueueRequest, frozen=True, kw_only=True):
    pr: PullRequest


class SubmitPullRequest(QueueRequest, frozen=True, kw_only=True):
    """If the pull request is already queued, only the given members change."""

    pr: Annotated[ReviewedPullRequestRef, describe("The pull request.")]
    priority: Priority | UnsetType = UNSET
    no_batch: Annotated[bool, describe("Test it alone, even if the queue uses batches.")] | UnsetType = UNSET
    force: (
        Annotated[
            bool,
            describe(
                "Do not wait for the rules of the Git host; needs the scope `priority`. Send the reviewed head as "
                "`pr.sha`, too: without it, `force` is for the head that the server reads."
            ),
        ]
        | UnsetType
    ) = UNSET


class GetSubmittedPullRequest(QueueRequest, frozen=True, kw_only=True):
    pr: Annotated[
        PullRequestLookup,
        describe("The pull request."),
        Meta(extra_json_schema={"anyOf": [{"required": ["number"]}, {"required": ["branch"]}]}),
    ]
    include_timeline: Annotated[bool, describe("Include the `timeline`.")] = False


class GetProvenance(QueueRequest, frozen=True, kw_only=True):
    """Only a merge by the queue has it, and only at a Git host with a signing key."""

    pr: Annotated[
        MergedPullRequestLookup,
        describe("The merged pull request."),
        Meta(extra_json_schema={"anyOf": [{"required": ["number"]}, {"required": ["mergedSha"]}]}),
    ]


class SetImpactedTargets(QueueRequest, frozen=True, kw_only=True):
    pr: Annotated[PullRequestHeadRef, describe("The pull request, and the commit that the targets belong to.")]
    impacted_targets: ImpactedTargets


class GetMergeQueueTestingDetails(QueueRequest, frozen=True, kw_only=True):
    test_run_id: Annotated[str, describe("Id of the test run; the suffix `-bisection` of its branch is ignored.")]


class ListPullRequests(QueueRequest, frozen=True, kw_only=True):
    state: Annotated[PullRequestState, describe("Only those in this state.")] | UnsetType = UNSET
    since: Annotated[Time, describe("Only those that were submitted at this time or later.")] | UnsetType = UNSET
    until: Annotated[Time, describe("Only those that were submitted before this time.")] | UnsetType = UNSET
    concluded_since: Annotated[Time, describe("Only those that ended at this time or later.")] | UnsetType = UNSET
    cursor: Annotated[NonEmpty, describe("The `nextCursor` of the previous page.")] | UnsetType = UNSET
    take: Take = 50


class GetSubmittedPullRequests(QueueRequest, frozen=True, kw_only=True):
    prs: Annotated[list[PullRequestRef], Meta(max_length=50, description="The pull requests.")]


class ListMergeQueueTestingResults(QueueRequest, frozen=True, kw_only=True):
    since: Annotated[Time, describe("Only those that finished at this time or later.")]
    until: Annotated[Time, describe("Only those that finished before this time.")] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**31 - 1, description="How many to skip.")] = 0
    take: Take = 50


class ListQueues(Request, frozen=True, kw_only=True):
    pass


class ListEvents(QueueRequest, frozen=True, kw_only=True):
    after: Cursor = 0
    take: Take = 50
    wait_seconds: Annotated[
        int, Meta(ge=0, le=30, description="How long to wait for the first event if there is none.")
    ] = 0


class ReportedState(StrEnum):
    """What a client can report; `skipped` and `neutral` come only from Git hosts."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


class ReportCommitStatus(Request, frozen=True, kw_only=True):
    repo: Annotated[Repository, describe("The repository.")]
    sha: Annotated[Sha, describe("Full SHA of the commit that was checked.")]
    context: Annotated[str, Meta(min_length=1, max_length=255, description="Name of the check.")]
    state: Annotated[ReportedState, describe("State of the check.")]
    url: (
        Annotated[
            str,
            Meta(max_length=4096, pattern=WEB_URL_PATTERN, description="Link to details: an http or https address."),
        ]
        | UnsetType
    ) = UNSET
    description: Annotated[str, Meta(max_length=4096, description="Short summary of the result.")] | UnsetType = UNSET


class QueueSettingsRequest(QueueRequest, frozen=True, kw_only=True):
    """A request with queue settings."""

    @property
    def given_settings(self) -> dict[str, Any]:
        """The settings that the request names, by their names in `Config`."""
        members = structs.asdict(self)
        return {name: members[name] for name in SETTING_NAMES if members.get(name, UNSET) is not UNSET}


class UpdateQueueBase(QueueSettingsRequest, frozen=True, kw_only=True):
    state: Annotated[Literal["RUNNING", "PAUSED", "DRAINING"], describe("New state of the queue.")] | UnsetType = UNSET
    state_reason: (
        Annotated[
            str, Meta(max_length=500, description="Why; shown to all users whose pull requests wait. Needs `state`.")
        ]
        | UnsetType
    ) = UNSET
    delete_required_statuses: Annotated[
        bool, describe("Remove the override: the repository's own required checks apply again.")
    ] = False

    def __post_init__(self) -> None:
        if self.delete_required_statuses and super().given_settings.get("required_statuses") is not None:
            raise ValueError("`requiredStatuses` and `deleteRequiredStatuses` exclude each other")
        if self.state_reason and self.state is UNSET:
            raise ValueError("`stateReason` needs `state`")

    @property
    def given_settings(self) -> dict[str, Any]:
        removed = {"required_statuses": None} if self.delete_required_statuses else {}
        return super().given_settings | removed


def define_with_settings(
    name: str, base: type[QueueSettingsRequest], settings: Collection[str] = SETTING_NAMES
) -> type[Struct]:
    """A request that can name any of these settings, and refuses unknown members."""
    members = [(setting, kind | UnsetType, UNSET) for setting, kind in SETTING_FIELDS if setting in settings]
    return defstruct(
        name, members, bases=(base,), frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
    )


CreateQueue = define_with_settings("CreateQueue", QueueSettingsRequest)
UpdateQueue = define_with_settings("UpdateQueue", UpdateQueueBase)


class GetMergeQueueMetrics(Request, frozen=True, kw_only=True):
    repo: Annotated[str, describe("Only this repository, as `owner/name`; needs `repoHost`.")] | UnsetType = UNSET
    repo_host: Annotated[str, describe("The Git host of `repo`; alone, all repositories of this host.")] | UnsetType = (
        UNSET
    )

    @property
    def host_filter(self) -> str | None:
        """The Git host that the metrics are restricted to."""
        return None if self.repo_host is UNSET else self.repo_host.lower()

    @property
    def repo_filter(self) -> Repo | None:
        """The repository that the metrics are restricted to."""
        if self.repo is UNSET or self.host_filter is None:
            return None
        owner, _, name = self.repo.rpartition("/")
        return Repo(self.host_filter, owner, name)
