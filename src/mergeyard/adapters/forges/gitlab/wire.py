"""What GitLab answers, as far as we read it; whatever else it says is left aside."""

from datetime import datetime

from msgspec import Struct


class User(Struct, frozen=True):
    id: int
    username: str


class Rights(Struct, frozen=True):
    """What the one who asks may do with a merge request."""

    can_merge: bool = True


class MergeRequest(Struct, frozen=True, kw_only=True):
    iid: int
    title: str
    state: str
    author: User | None = None
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    """None: the fork is gone."""
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
    """Why its last merge came to nothing."""
    user: Rights = Rights()


class Approvals(Struct, frozen=True):
    approved: bool = True


class Membership(Struct, frozen=True):
    access_level: int


class Permissions(Struct, frozen=True):
    """Ours, through the project itself and through its group."""

    project_access: Membership | None = None
    group_access: Membership | None = None

    @property
    def level(self) -> int:
        return max((way.access_level for way in (self.project_access, self.group_access) if way), default=0)


class Project(Struct, frozen=True, kw_only=True):
    id: int
    default_branch: str | None = None
    merge_method: str = "merge"
    squash_option: str = "default_off"
    only_allow_merge_if_pipeline_succeeds: bool = False
    allow_merge_on_skipped_pipeline: bool | None = None
    permissions: Permissions = Permissions()


class Tip(Struct, frozen=True):
    id: str


class Branch(Struct, frozen=True, kw_only=True):
    name: str
    commit: Tip
    can_push: bool = False


class BranchAccess(Struct, frozen=True):
    """Who may do something to a protected branch: one user, one group, one deploy key, or everyone of a role."""

    access_level: int | None = None
    user_id: int | None = None
    group_id: int | None = None
    deploy_key_id: int | None = None


class ProtectedBranch(Struct, frozen=True):
    name: str
    """Or a pattern with stars."""
    merge_access_levels: tuple[BranchAccess, ...] = ()
    push_access_levels: tuple[BranchAccess, ...] = ()

    def protects(self, branch: str) -> bool:
        """A star stands for any characters, slashes too; nothing else in a name is special."""
        first, *others = self.name.split("*")
        if not others or not branch.startswith(first):
            return branch == first
        place = len(first)
        for part in others[:-1]:
            found = branch.find(part, place)
            if found < 0:
                return False
            place = found + len(part)
        return branch.endswith(others[-1]) and len(branch) - len(others[-1]) >= place


class CommitStatus(Struct, frozen=True, kw_only=True):
    """A status that somebody reported, or a job of a pipeline."""

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
    """A job of a pipeline, or a bridge: a job that starts another pipeline."""

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
    """Written by GitLab itself, about what happened."""


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


def name_of(person: User | None) -> str:
    """Of one whose account was deleted there may be nothing left."""
    return "" if person is None else person.username
