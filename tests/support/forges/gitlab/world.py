"""The state of the fake GitLab: users, tokens, projects and their contents. Objects are changed in place."""

from datetime import UTC, datetime, timedelta
from itertools import count

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import Clock
from tests.support.forges.git_server import GitRequest, GitServer
from tests.support.repositories import Origin

DEVELOPER = 30
MAINTAINER = 40
DELETED = "deleted"
"""State of a deleted account."""


class User(Struct, frozen=True):
    id: int
    username: str
    state: str = "active"


class Token(Struct, frozen=True):
    user: User
    scopes: tuple[str, ...] = ("api",)
    expires_at: str | None = None


class Reaction(Struct, frozen=True):
    user: User
    name: str


class Note(Struct):
    id: int
    author: User
    body: str
    created_at: datetime
    system: bool = False
    reactions: list[Reaction] = field(default_factory=list[Reaction])


class CommitStatus(Struct, kw_only=True):
    """A reported status or a job."""

    id: int
    author: User
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
    """Its status while it has no jobs."""


class MergeRequest(Struct, kw_only=True):
    id: int
    iid: int
    title: str
    author: User
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
    """Set by tests while GitLab has not determined the mergeability: `checking`, `preparing`, `approvals_syncing`."""
    approved: bool = True
    unresolved: bool = False

    @property
    def draft(self) -> bool:
        return self.title.lower().startswith("draft: ")


class Hook(Struct, kw_only=True):
    id: int
    url: str
    secret: str
    """A secret with the prefix `whsec_` signs; any other is sent as a header."""
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
    skipped_pipeline_passes: bool = False
    discussions_must_be_resolved: bool = False
    protected: dict[str, int] = field(default_factory=lambda: {"main": MAINTAINER})
    """Names or patterns of branches, each with the access level needed to push or merge."""
    merge_access: dict[str, list[dict[str, int]]] = field(default_factory=dict[str, list[dict[str, int]]])
    """Overrides who can merge, by name or pattern: `{"access_level": 30}`, `{"user_id": 7}`."""
    merge_requests: dict[int, MergeRequest] = field(default_factory=dict[int, MergeRequest])
    pipelines: list[Pipeline] = field(default_factory=list[Pipeline])
    statuses: list[CommitStatus] = field(default_factory=list[CommitStatus])
    hooks: list[Hook] = field(default_factory=list[Hook])


BOT = "mergeyard-bot"
TOKEN = "glpat-a-secret"
CLOCK_TICK = timedelta(milliseconds=1)


class World:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.projects: dict[str, Project] = {}
        self.groups: dict[int, list[str]] = {}
        """Members by group ID."""
        self.web_url = ""
        self._ids = count(101)
        self._last = self._read_clock()
        self.tokens[TOKEN] = Token(self.user(BOT))

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> datetime:
        """Never returns the same time twice."""
        self._last = max(self._read_clock(), self._last + CLOCK_TICK)
        return self._last

    def _read_clock(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now() / SECOND, UTC)

    def user(self, username: str) -> User:
        if username not in self.users:
            self.users[username] = User(self.next_id(), username)
        return self.users[username]

    def add_project(self, git_server: GitServer, path: str) -> Project:
        members = {BOT: MAINTAINER, "ada": DEVELOPER}
        project = Project(id=self.next_id(), path=path, origin=git_server.create(path), members=members)
        for username in members:
            self.user(username)
        self.projects[path] = project
        return project

    def find_project(self, name: str) -> Project | None:
        """By ID or by path; case is ignored."""
        found = (project for project in self.projects.values() if name.lower() in (str(project.id), project.path))
        return next(found, None)

    def project_url(self, project: Project) -> str:
        return f"{self.web_url}/{project.path}"

    def is_git_request_allowed(self, request: GitRequest) -> bool:
        """Whether the token has access to the repository."""
        token, project = self.tokens.get(request.password), self.projects.get(request.repository)
        if token is None or project is None:
            return False
        level = project.members.get(token.user.username, 0)
        return level >= DEVELOPER if request.is_write else level > 0
