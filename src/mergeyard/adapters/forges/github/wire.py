"""GitHub's JSON, with the members that we read."""

from datetime import datetime

from msgspec import Struct, field

from mergeyard.adapters.forges.host import User


class RepositoryName(Struct, frozen=True):
    full_name: str


class Label(Struct, frozen=True):
    name: str


class PullRequestBranch(Struct, frozen=True):
    """The head or base branch of a pull request. `repo` is None when the repository was deleted."""

    ref: str
    sha: str
    repo: RepositoryName | None = None


class PullRequestPayload(Struct, frozen=True, kw_only=True):
    number: int
    state: str
    title: str
    head: PullRequestBranch
    base: PullRequestBranch
    updated_at: datetime
    user: User | None = None
    draft: bool = False
    labels: tuple[Label, ...] = ()
    merged_at: str | None = None
    mergeable: bool | None = None
    mergeable_state: str = "unknown"
    merge_commit_sha: str | None = None

    @property
    def is_fork(self) -> bool:
        """A head whose repository was deleted came from a fork."""
        return self.head.repo is None or self.base.repo is None or self.head.repo != self.base.repo


class MergeResult(Struct, frozen=True):
    sha: str


class GitObject(Struct, frozen=True):
    sha: str


class GitRef(Struct, frozen=True):
    object: GitObject


class Review(Struct, frozen=True):
    state: str
    user: User | None = None


class CommitStatus(Struct, frozen=True):
    context: str
    state: str
    updated_at: datetime
    target_url: str | None = None
    description: str | None = None
    avatar_url: str | None = None
    """Contains the id of the app that reported it, which no other member does."""


class CombinedStatus(Struct, frozen=True):
    statuses: tuple[CommitStatus, ...]


class CheckApp(Struct, frozen=True):
    id: int = 0
    name: str = ""


class CheckSuite(Struct, frozen=True):
    id: int


class CheckOutput(Struct, frozen=True):
    title: str | None = None


class CheckRun(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    status: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    details_url: str | None = None
    html_url: str | None = None
    app: CheckApp | None = None
    check_suite: CheckSuite | None = None
    output: CheckOutput = CheckOutput()


class CheckRuns(Struct, frozen=True):
    check_runs: tuple[CheckRun, ...]


class Role(Struct, frozen=True):
    permission: str
    """`admin`, `write`, `read` or `none`; newer roles are mapped to the nearest of these."""
    role_name: str = ""

    @property
    def can_write(self) -> bool:
        return self.permission in ("admin", "write")

    @property
    def can_maintain(self) -> bool:
        return self.permission == "admin" or self.role_name == "maintain"


class Repository(Struct, frozen=True, kw_only=True):
    default_branch: str
    permissions: dict[str, bool] = field(default_factory=dict[str, bool])
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True


class AppDetails(Struct, frozen=True, kw_only=True):
    id: int
    slug: str = ""
    name: str = ""
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    events: tuple[str, ...] = ()


class Installation(Struct, frozen=True, kw_only=True):
    id: int
    permissions: dict[str, str] = field(default_factory=dict[str, str])
    suspended_at: str | None = None


class InstallationToken(Struct, frozen=True):
    token: str
    expires_at: datetime


class HookConfig(Struct, frozen=True):
    url: str = ""
    content_type: str = ""


class Hook(Struct, frozen=True):
    events: tuple[str, ...]
    active: bool = True
    config: HookConfig = HookConfig()
