"""The state of the fake GitLab: users, tokens, projects and their contents. Objects are changed in place."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import Clock
from tests.support.forges.git_server import GitServer
from tests.support.repositories import Origin

DEVELOPER = 30
MAINTAINER = 40
DELETED = "deleted"
"""State of a deleted account: GitLab shows the ghost user as the author of what it wrote."""
NEWEST = (19, 4)
"""The release that the fake behaves as, unless a test chooses an older one: `(16, 5)`."""
TOUCH_INTERVAL = timedelta(minutes=1)
LIST_CACHE_TIME = timedelta(hours=8)


class User(Struct, frozen=True):
    id: int
    username: str
    state: str = "active"
    public_email: str | None = None
    commit_email: str = ""
    """Empty: the private address that GitLab gives every account."""

    @property
    def name(self) -> str:
        return self.username.title()

    def private_address(self, web_url: str) -> str:
        return f"{self.id}-{self.username}@users.noreply.{urlsplit(web_url).hostname}"


class SshKey(Struct, frozen=True):
    key: str
    usage_type: str = "auth_and_signing"


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
    updated_at: datetime | None = None
    """When it was last edited, resolved or got an emoji; None: not since it was created."""
    system: bool = False
    is_hidden: bool = False
    """The account of the token cannot read it, for example because it mentions a confidential issue."""
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
    stale_status: str | None = None
    """Its status until GitLab recomputes it from its jobs."""
    merge_request: int | None = None
    """The ID of the merge request that started it."""
    source_sha: Sha | None = None
    """The head of the merge request, if it is a merged results pipeline: `sha` is then an internal merge commit."""


class ApprovalRule(Struct, kw_only=True):
    """Of a Premium project. Accounts in `users` and `groups` are its approvers."""

    name: str
    needed: int = 1
    rule_type: str = "regular"
    """`regular`, `any_approver` (each member with the role Developer), `code_owner` or `report_approver`."""
    users: tuple[str, ...] = ()
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Members by full path."""


class MergeRequest(Struct, kw_only=True):
    id: int
    iid: int
    title: str
    author: User
    source_project: int | None
    """None: the fork was deleted."""
    source_branch: str
    target_branch: str
    head: Sha | None
    """The head of the diff that GitLab recorded last."""
    created_at: datetime
    updated_at: datetime
    fork: "Project | None" = None
    """The project of the source branch, if that is another one. Its pipelines are there too."""
    wants_collaboration: bool = True
    """Its own setting *Allow commits from members who can merge to the target branch*, for a fork."""
    has_empty_diff: bool = False
    """Whether the head changed nothing when its diff was recorded, for example because the target branch had it."""
    unrecorded_head: Sha | None = None
    """The source branch was pushed, and GitLab has not recorded the diff yet."""
    reads_until_recorded: int = 0
    state: str = "opened"
    squash: bool = False
    """Its own setting *Squash commits*, which the settings of the project can overrule."""
    force_remove_source_branch: bool = False
    """Its own setting *Delete source branch*. Only a merge by GitLab itself deletes the branch."""
    description: str = ""
    labels: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    merge_commit: Sha | None = None
    squash_commit: Sha | None = None
    merge_error: str | None = None
    undecided: str | None = None
    """Set by tests while GitLab has not determined the mergeability: `checking`, `preparing`, `approvals_syncing`."""
    approvals: list[str] = field(default_factory=list[str])
    """The accounts that have approved it, in order."""
    changes_requested_by: list[str] = field(default_factory=list[str])
    unresolved: int = 0
    """The number of unresolved threads."""
    external_checks: dict[str, str] = field(default_factory=dict[str, str])
    """States by name: `pending`, `passed`, `failed`."""
    obstacle: str | None = None
    """Another rule that blocks it, as GitLab calls it: `merge_time`."""

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
    version: tuple[int, int] = NEWEST
    """The release of the server."""
    visibility: str = "private"
    """`private`, `internal` or `public`."""
    archived: bool = False
    """Everything can be read, nothing can be written."""
    members: dict[str, int] = field(default_factory=dict[str, int])
    invited: dict[str, int] = field(default_factory=dict[str, int])
    """Members of a group that was invited to the project."""
    premium: bool = False
    """The free edition has neither approval rules nor push rules, and a request for changes does not block."""
    approval_rules: list[ApprovalRule] = field(default_factory=list[ApprovalRule])
    resets_approvals_on_push: bool = True
    push_rule: dict[str, str | bool] | None = None
    """The members of a push rule that differ from their defaults."""
    merge_method: str = "merge"
    squash_option: str = "default_off"
    """`never`, `always`, `default_on` or `default_off`: the last two only say what new merge requests start with."""
    branch_squash_options: dict[str, str] = field(default_factory=dict[str, str])
    """Overrides `squash_option` for protected target branches, by name. Premium only."""
    has_ci: bool = True
    """False: CI/CD is switched off. Commit statuses stay readable, because another system can report them."""
    merge_pipelines_enabled: bool = False
    """Pipelines of merge requests test the merged result. Premium only."""
    busy_statuses: int = 0
    """How many of the next reports of a commit status meet another one in progress."""
    blocks_urls: bool = False
    """An administrator denied requests to other hosts, so that commit statuses cannot have a `target_url`."""
    pipelines_must_succeed: bool = False
    skipped_pipeline_passes: bool = False
    discussions_must_be_resolved: bool = False
    protected: dict[str, int] = field(default_factory=lambda: {"main": MAINTAINER})
    """Names or patterns of branches, each with the access level needed to push or merge."""
    merge_access: dict[str, list[dict[str, int]]] = field(default_factory=dict[str, list[dict[str, int]]])
    """Overrides who can merge, by name or pattern: `{"access_level": 30}`, `{"user_id": 7}`."""
    push_access: dict[str, list[dict[str, int]]] = field(default_factory=dict[str, list[dict[str, int]]])
    """Overrides who can push and merge, by name or pattern."""
    force_pushable: set[str] = field(default_factory=set[str])
    """The rules of protected branches that allow to force a push."""
    merge_requests: dict[int, MergeRequest] = field(default_factory=dict[int, MergeRequest])
    pipelines: list[Pipeline] = field(default_factory=list[Pipeline])
    statuses: list[CommitStatus] = field(default_factory=list[CommitStatus])
    hooks: list[Hook] = field(default_factory=list[Hook])

    def level(self, username: str) -> int:
        return max(self.members.get(username, 0), self.invited.get(username, 0))

    def is_visible_to(self, username: str) -> bool:
        return self.visibility != "private" or self.level(username) > 0


class RateLimits(Struct):
    """Requests per minute and account. GitLab counts in minutes of the clock, not in the last 60 seconds."""

    by_route: dict[str, int] = field(
        default_factory=lambda: {
            "POST /projects/:id/merge_requests/:iid/notes": 300,
            "GET /projects/:id/members/all": 200,
        }
    )
    """Limits of single endpoints, with the defaults of a new server; gitlab.com allows 60 new notes. A refusal has no
    `RateLimit-*`."""
    has_retry_after: bool = True
    """Whether a refusal by the limit of one endpoint has `Retry-After`. Version 16.5 does not send it."""
    general: int | None = None
    """For all requests together; a refusal says when to try again. A new server has no such limit."""
    counts: dict[tuple[str, str, int], int] = field(default_factory=dict[tuple[str, str, int], int])

    def count(self, name: str, account: str, minute: int) -> int:
        """Counts one more request, and returns how many there were in this minute."""
        key = (name, account, minute)
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]


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
        self.external_url: str | None = None
        """The address in `Link` headers, if it is not the one that clients use."""
        self.limits = RateLimits()
        self.moved: dict[str, Project] = {}
        """Projects by an earlier path."""
        self.listed: dict[tuple[object, ...], tuple[datetime, dict[str, Any]]] = {}
        """Entries of lists of merge requests, each with the time until which GitLab repeats it."""
        self.reads_before_recording = 0
        """GitLab records a pushed head in the background: after this many reads of the merge request."""
        self.ssh_keys: dict[str, list[SshKey]] = {}
        """By account."""
        self.gpg_keys: dict[str, list[str]] = {}
        self._ids = count(101)
        self._last = self.read_clock()
        self.tokens[TOKEN] = Token(self.user(BOT))

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> datetime:
        """Never returns the same time twice."""
        self._last = max(self.read_clock(), self._last + CLOCK_TICK)
        return self._last

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

    def add_fork(self, git_server: GitServer, project: Project, path: str, owner: str) -> Project:
        """A project of another account, with all branches of the first one. Our account is not a member of it."""
        origin = git_server.create(path)
        origin.run("fetch", "--quiet", project.origin.url, "+refs/heads/*:refs/heads/*")
        members = {owner: MAINTAINER}
        fork = Project(id=self.next_id(), path=path, origin=origin, members=members, visibility=project.visibility)
        self.user(owner)
        self.projects[path] = fork
        return fork

    def read_clock(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now() / SECOND, UTC)

    def touch(self, request: MergeRequest) -> None:
        """Records that something about it changed. GitLab ignores that within a minute of the last update."""
        if self.read_clock() - request.updated_at > TOUCH_INTERVAL:
            request.updated_at = self.now()

    def rename(self, project: Project, path: str) -> None:
        """The repository is served at the old path too, as GitLab does it for git over HTTP. A path that a project
        takes no longer leads to another one."""
        old = project.origin.path
        new = old.parents[project.path.count("/")] / f"{path}.git"
        new.parent.mkdir(parents=True, exist_ok=True)
        if self.moved.pop(path, None) is not None:
            new.unlink()
        old.rename(new)
        old.symlink_to(new)
        self.moved[project.path] = self.projects[path] = self.projects.pop(project.path)
        project.path, project.origin = path, Origin(new)

    def find_project(self, name: str) -> Project | None:
        """By ID or by path; case is ignored."""
        found = (project for project in self.projects.values() if name.lower() in (str(project.id), project.path))
        return next(found, None)

    def project_url(self, project: Project) -> str:
        return f"{self.web_url}/{project.path}"

    def addresses_of(self, person: User) -> set[str]:
        """All that GitLab verified."""
        return {person.private_address(self.web_url), person.commit_email, person.public_email or ""} - {""}

    def stored_at(self, path: str) -> Project | None:
        """By the path, or by an earlier one."""
        return self.projects.get(path) or self.moved.get(path)
