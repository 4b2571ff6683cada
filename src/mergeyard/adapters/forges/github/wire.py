"""What GitHub answers, as far as we read it."""

from datetime import datetime

from msgspec import Struct, field


class User(Struct, frozen=True):
    login: str


class RepositoryName(Struct, frozen=True):
    full_name: str


class Label(Struct, frozen=True):
    name: str


class Side(Struct, frozen=True):
    """One end of a pull request: a branch of a repository, if that is still there."""

    ref: str
    sha: str
    repo: RepositoryName | None = None


class Pull(Struct, frozen=True, kw_only=True):
    number: int
    state: str
    title: str
    head: Side
    base: Side
    updated_at: datetime
    user: User | None = None
    draft: bool = False
    labels: tuple[Label, ...] = ()
    merged_at: str | None = None
    mergeable: bool | None = None
    mergeable_state: str = "unknown"
    merge_commit_sha: str | None = None

    @property
    def fork(self) -> bool:
        """A head whose repository is gone was in another one."""
        return self.head.repo is None or self.base.repo is None or self.head.repo != self.base.repo


class MergeResult(Struct, frozen=True):
    sha: str


class Target(Struct, frozen=True):
    sha: str


class Ref(Struct, frozen=True):
    object: Target


class Review(Struct, frozen=True):
    state: str
    user: User | None = None


class Comment(Struct, frozen=True):
    id: int
    created_at: datetime
    body: str = ""
    user: User | None = None


class CommitStatus(Struct, frozen=True):
    context: str
    state: str
    updated_at: datetime
    target_url: str | None = None
    description: str | None = None
    avatar_url: str | None = None
    """The only trace of who reported it."""


class CombinedStatus(Struct, frozen=True):
    statuses: tuple[CommitStatus, ...]


class AppName(Struct, frozen=True):
    id: int = 0
    name: str = ""


class Suite(Struct, frozen=True):
    id: int


class Output(Struct, frozen=True):
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
    app: AppName | None = None
    check_suite: Suite | None = None
    output: Output = Output()


class CheckRuns(Struct, frozen=True):
    check_runs: tuple[CheckRun, ...]


class Role(Struct, frozen=True):
    permission: str
    """The nearest of those that GitHub began with."""
    role_name: str = ""


class Repository(Struct, frozen=True, kw_only=True):
    default_branch: str
    permissions: dict[str, bool] = field(default_factory=dict[str, bool])
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True


class AppPage(Struct, frozen=True, kw_only=True):
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
