"""What a GitLab holds: people, projects, and what is in them. Everything here changes in place."""

from datetime import datetime

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from tests.support.repositories import Origin

DEVELOPER = 30
MAINTAINER = 40
DELETED = "deleted"
"""The state of an account of which nothing is left."""


class Person(Struct, frozen=True):
    id: int
    username: str
    state: str = "active"


class Token(Struct, frozen=True):
    person: Person
    scopes: tuple[str, ...] = ("api",)
    expires_at: str | None = None


class Reaction(Struct, frozen=True):
    person: Person
    name: str


class Note(Struct):
    id: int
    author: Person
    body: str
    created_at: datetime
    system: bool = False
    reactions: list[Reaction] = field(default_factory=list[Reaction])


class Reported(Struct, kw_only=True):
    """A status that somebody reported, or a job."""

    id: int
    author: Person
    sha: Sha
    name: str
    status: str
    pipeline: int
    created_at: datetime
    finished_at: datetime | None = None
    is_job: bool = False
    is_bridge: bool = False
    """A job that starts another pipeline."""
    allow_failure: bool = False
    target_url: str | None = None
    description: str | None = None
    outdated: bool = False


class Pipeline(Struct, kw_only=True):
    id: int
    sha: Sha
    ref: str
    source: str
    created_at: datetime
    empty_status: str = "created"
    """What it is as long as there are no jobs in it."""


class MergeRequest(Struct, kw_only=True):
    id: int
    iid: int
    title: str
    author: Person
    source_project: int
    source_branch: str
    target_branch: str
    head: Sha | None
    created_at: datetime
    updated_at: datetime
    state: str = "opened"
    description: str = ""
    labels: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    merge_commit: Sha | None = None
    squash_commit: Sha | None = None
    merge_error: str | None = None
    undecided: str | None = None
    """What GitLab is still busy with: `checking`, `preparing`, `approvals_syncing`."""
    approved: bool = True
    unresolved: bool = False

    @property
    def draft(self) -> bool:
        return self.title.lower().startswith("draft: ")


class Hook(Struct, kw_only=True):
    id: int
    url: str
    secret: str
    """One that begins with `whsec_` signs; any other is just sent along."""
    events: frozenset[str] = frozenset({"push", "merge_requests", "note", "pipeline", "job"})
    alert_status: str = "executable"


class Project(Struct, kw_only=True):
    id: int
    path: str
    origin: Origin
    members: dict[str, int] = field(default_factory=dict[str, int])
    merge_method: str = "merge"
    squash_option: str = "default_off"
    pipelines_must_succeed: bool = False
    skipped_is_fine: bool = False
    discussions_must_be_resolved: bool = False
    protected: dict[str, int] = field(default_factory=lambda: {"main": MAINTAINER})
    """Names or patterns of branches, each with the role that one needs to push or merge there."""
    mergers: dict[str, list[dict[str, int]]] = field(default_factory=dict[str, list[dict[str, int]]])
    """Of those names or patterns, who may merge there instead: `{"access_level": 30}`, `{"user_id": 7}`."""
    merge_requests: dict[int, MergeRequest] = field(default_factory=dict[int, MergeRequest])
    pipelines: list[Pipeline] = field(default_factory=list[Pipeline])
    reported: list[Reported] = field(default_factory=list[Reported])
    hooks: list[Hook] = field(default_factory=list[Hook])
