"""GitLab's JSON, with the members that we read."""

from datetime import datetime

from msgspec import Struct

DEVELOPER_LEVEL = 30
MAINTAINER_LEVEL = 40


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
