"""GitLab's JSON, with the members that we read."""

import re
from datetime import datetime
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.http import ForgeClient, Reply
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.ports.forge import HostRefused, HostUnavailable


class User(Struct, frozen=True):
    id: int
    username: str


class UserPermissions(Struct, frozen=True):
    """What our account is allowed to do with a merge request."""

    can_merge: bool = True


class MergeRequest(Struct, frozen=True, kw_only=True):
    iid: int
    title: str
    state: str
    author: User | None = None
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    """None: the fork was deleted."""
    target_project_id: int
    sha: str | None = None
    draft: bool = False
    labels: tuple[str, ...] = ()
    updated_at: str = ""
    user_notes_count: int = 0
    merge_status: str = ""
    detailed_merge_status: str = ""
    blocking_discussions_resolved: bool = True
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    merge_error: str | None = None
    """Why the last attempt to merge it failed."""
    user: UserPermissions = UserPermissions()


class Approvals(Struct, frozen=True):
    approved: bool = True


class Membership(Struct, frozen=True):
    access_level: int


class Permissions(Struct, frozen=True):
    """The roles of our account, in the project itself and through its group."""

    project_access: Membership | None = None
    group_access: Membership | None = None

    @property
    def level(self) -> int:
        return max((access.access_level for access in (self.project_access, self.group_access) if access), default=0)


class Project(Struct, frozen=True, kw_only=True):
    id: int
    default_branch: str | None = None
    merge_method: str = "merge"
    squash_option: str = "default_off"
    only_allow_merge_if_pipeline_succeeds: bool = False
    allow_merge_on_skipped_pipeline: bool | None = None
    permissions: Permissions = Permissions()


class BranchCommit(Struct, frozen=True):
    id: str


class Branch(Struct, frozen=True, kw_only=True):
    name: str
    commit: BranchCommit
    can_push: bool = False


class BranchAccess(Struct, frozen=True):
    """A permission on a protected branch, for one user, one group, one deploy key, or all members with a role."""

    access_level: int | None = None
    user_id: int | None = None
    group_id: int | None = None
    deploy_key_id: int | None = None


class ProtectedBranch(Struct, frozen=True):
    name: str
    """A branch name, or a pattern with `*`."""
    merge_access_levels: tuple[BranchAccess, ...] = ()
    push_access_levels: tuple[BranchAccess, ...] = ()

    def protects(self, branch: str) -> bool:
        """`*` matches any characters, including slashes; no other character is special."""
        first, *others = self.name.split("*")
        if not others or not branch.startswith(first):
            return branch == first
        position = len(first)
        for part in others[:-1]:
            found = branch.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return branch.endswith(others[-1]) and len(branch) - len(others[-1]) >= position


class CommitStatus(Struct, frozen=True, kw_only=True):
    """A status reported over the API, or a job of a pipeline."""

    id: int
    name: str
    status: str
    ref: str = ""
    allow_failure: bool = False
    target_url: str | None = None
    description: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    pipeline_id: int | None = None


class Job(Struct, frozen=True):
    """A job of a pipeline, or a bridge (a job that triggers another pipeline)."""

    id: int
    web_url: str = ""


class Pipeline(Struct, frozen=True, kw_only=True):
    id: int
    ref: str
    status: str
    web_url: str = ""
    created_at: datetime
    updated_at: datetime | None = None


class Note(Struct, frozen=True, kw_only=True):
    id: int
    body: str
    author: User | None = None
    created_at: datetime
    system: bool = False
    """Created by GitLab to record an event, not by a user."""


class Member(Struct, frozen=True, kw_only=True):
    id: int
    username: str
    state: str
    access_level: int


class Token(Struct, frozen=True, kw_only=True):
    name: str
    scopes: tuple[str, ...]
    expires_at: str | None = None


class Hook(Struct, frozen=True, kw_only=True):
    url: str
    push_events: bool = False
    merge_requests_events: bool = False
    note_events: bool = False
    pipeline_events: bool = False
    job_events: bool = False
    alert_status: str = "executable"


def get_username(user: User | None) -> str:
    """None for a deleted account."""
    return "" if user is None else user.username


HEAD_REF_PATTERN = "refs/merge-requests/*/head"
MAX_NUMBER = 2**31 - 1
MAX_GROUPS = 21
"""A group and the twenty levels of subgroups that GitLab allows."""
NAME_PATTERN = re.compile(r"(?!-|\.{1,2}\Z)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)", re.ASCII)
MERGE_REQUEST_REF_PATTERN = re.compile(r"refs/merge-requests/([1-9][0-9]{0,9})/(?:head|meta)", re.ASCII)


def canonical_repo(repo: Repo) -> Repo:
    return replace(repo, owner=repo.owner.lower(), name=repo.name.lower())


def is_valid_name(repo: Repo) -> bool:
    groups = repo.owner.split("/")
    return len(groups) <= MAX_GROUPS and all(NAME_PATTERN.fullmatch(part) for part in (*groups, repo.name))


def to_full_name(repo: Repo) -> str:
    """`group/subgroup/name`, as in web and git URLs."""
    if not is_valid_name(repo):
        raise HostUnavailable(f"{repo.owner}/{repo.name} is not a valid project name on GitLab: check the spelling")
    return f"{repo.owner}/{repo.name}"


def from_full_name(host: str, path: str) -> Repo:
    owner, _, name = path.rpartition("/")
    return canonical_repo(Repo(host, owner, name))


def repo_api_path(repo: Repo) -> str:
    """The API path of a project."""
    return f"/projects/{quote_segment(to_full_name(repo))}"


def merge_request_api_path(repo: Repo, number: PullRequestNumber) -> str:
    return f"{repo_api_path(repo)}/merge_requests/{int(number)}"


def quote_segment(text: str) -> str:
    """Quotes untrusted text as a single path segment."""
    return quote(text, safe="")


def head_ref(number: PullRequestNumber) -> str:
    return f"refs/merge-requests/{number}/head"


def meta_ref(number: PullRequestNumber) -> str:
    """Not a git ref. `read_refs` reports a digest under this name that changes with the merge request's metadata."""
    return f"refs/merge-requests/{number}/meta"


def pull_request_number_of(ref: str) -> PullRequestNumber | None:
    match = MERGE_REQUEST_REF_PATTERN.fullmatch(ref)
    return PullRequestNumber(int(match[1])) if match and int(match[1]) <= MAX_NUMBER else None


async def has_repository(client: ForgeClient, repo: Repo) -> bool:
    try:
        path = repo_api_path(repo)
    except HostUnavailable:
        return False
    return await client.get(path, Project) is not None


async def read_project(client: ForgeClient, repo: Repo) -> Project:
    """Raises if the project is not visible to us. Also called after a 404 inside the project, for that reason."""
    return _require_visible(repo, await client.get(repo_api_path(repo), Project))


async def read_project_urgent(client: ForgeClient, repo: Repo) -> Project:
    """Like `read_project`, but can spend the rate-limit reserve."""
    return _require_visible(repo, await client.get_urgent(repo_api_path(repo), Project))


async def build_missing_error(client: ForgeClient, repo: Repo, what: str) -> HostRefused:
    """The error for a missing resource; raises another one if the project itself is not visible."""
    await read_project(client, repo)
    return HostRefused(f"{what} of {repo} is gone")


async def build_reply_error(client: ForgeClient, repo: Repo, reply: Reply) -> HostUnavailable:
    """The error for a reply; a 404 is a permanent refusal only if the project itself is visible."""
    if reply.status == 404:
        await read_project(client, repo)
    return reply.to_error()


def _require_visible(repo: Repo, project: Project | None) -> Project:
    if project is None:
        raise HostUnavailable(f"{repo} is not visible to us: check that our account is a member of the project")
    return project
