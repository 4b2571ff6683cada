"""GitHub's JSON, with the members that we read."""

import re
from datetime import datetime
from urllib.parse import quote

from msgspec import Struct, field

from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.ports.forge import HostUnavailable


class User(Struct, frozen=True):
    login: str


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


OWNER_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
NAME_PATTERN = re.compile(r"(?!\.{1,2}\Z)(?!.*\.git\Z)[A-Za-z0-9._-]{1,100}")
PULL_REF_PATTERN = re.compile(r"refs/pull/([1-9][0-9]{0,17})/(?:head|meta)")
HEAD_REF_PATTERN = "refs/pull/*/head"


def is_valid_name(repo: Repo) -> bool:
    return OWNER_PATTERN.fullmatch(repo.owner) is not None and NAME_PATTERN.fullmatch(repo.name) is not None


def repo_api_path(repo: Repo) -> str:
    """The API path of a repository."""
    if not is_valid_name(repo):
        raise HostUnavailable(f"{repo} is not a valid repository name on GitHub")
    return f"/repos/{repo.owner}/{repo.name}"


def quote_segment(text: str) -> str:
    """Quotes untrusted text as a single path segment."""
    if text in ("", ".", ".."):
        raise HostUnavailable(f"{text!r} is not a valid name on GitHub")
    return quote(text, safe="")


def canonical_repo(repo: Repo) -> Repo:
    return Repo(repo.host, repo.owner.lower(), repo.name.lower())


def head_ref(number: PullRequestNumber) -> str:
    return f"refs/pull/{number}/head"


def meta_ref(number: PullRequestNumber) -> str:
    """Not a git ref. `read_refs` reports a digest under this name that changes with the pull request's metadata."""
    return f"refs/pull/{number}/meta"


def pull_request_number_of(ref: str) -> PullRequestNumber | None:
    match = PULL_REF_PATTERN.fullmatch(ref)
    return PullRequestNumber(int(match[1])) if match else None


async def ensure_repository_visible(client: ForgeClient, repo: Repo) -> None:
    """Called after a 404 inside the repository: raises if the repository itself is not visible either."""
    if await client.get_urgent(repo_api_path(repo), Repository) is None:
        raise build_not_visible_error(repo)


def build_not_visible_error(repo: Repo) -> HostUnavailable:
    return HostUnavailable(f"{repo} is not visible to us: give the app or the token access to it again")
