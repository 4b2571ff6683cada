"""GitLab's JSON, with the members that we read."""

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

DEVELOPER_LEVEL = 30
MAINTAINER_LEVEL = 40


class User(Struct, frozen=True):
    id: int
    username: str
    name: str = ""
    public_email: str | None = None
    """The address that the account shows to everyone."""
    commit_email: str | None = None
    """The address of commits that GitLab creates for the account. Shown only to the account itself."""


class UserPermissions(Struct, frozen=True):
    """What our account is allowed to do with a merge request."""

    can_merge: bool = True


MERGE_REQUEST_REFS = "refs/merge-requests/"
HEAD_REF_SUFFIX = "/head"
EXTERNAL_SOURCE = "external"


class Pipeline(Struct, frozen=True, kw_only=True):
    id: int
    project_id: int | None = None
    sha: str = ""
    ref: str
    status: str
    source: str = ""
    web_url: str = ""
    created_at: datetime
    updated_at: datetime | None = None

    @property
    def is_external(self) -> bool:
        """Whether it is no pipeline of GitLab CI, but holds statuses that others reported."""
        return self.source == EXTERNAL_SOURCE

    def belongs_to(self, test_branch: str, draft: int | None) -> bool:
        """Whether it tests this branch, or the draft that shows it. Others can have the same commit on a branch."""
        if self.ref == test_branch:
            return True
        return draft is not None and self.ref.startswith(f"{MERGE_REQUEST_REFS}{draft}/")

    @property
    def tests_merged_result(self) -> bool:
        """Whether its commit is not the head, but a merge of the head and the target branch that only GitLab has."""
        return self.ref.startswith(MERGE_REQUEST_REFS) and not self.ref.endswith(HEAD_REF_SUFFIX)


class MergeRequest(Struct, frozen=True, kw_only=True):
    iid: int
    title: str
    description: str | None = None
    state: str
    author: User | None = None
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    """None: the fork was deleted."""
    target_project_id: int
    allow_collaboration: bool = False
    """Whether members who can merge it can push to its source branch in a fork."""
    sha: str | None = None
    draft: bool = False
    labels: tuple[str, ...] = ()
    updated_at: datetime | None = None
    user_notes_count: int = 0
    merge_status: str = ""
    detailed_merge_status: str = ""
    blocking_discussions_resolved: bool = True
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    merge_error: str | None = None
    """Why the last attempt to merge it failed."""
    user: UserPermissions = UserPermissions()
    squash: bool = False
    squash_on_merge: bool | None = None
    """What GitLab will do, with the settings of the project and of the branch. Old versions do not return it."""
    head_pipeline: Pipeline | None = None
    """Only in the single merge request. It stays that of an older head until a pipeline of the new one starts."""

    @property
    def is_from_fork(self) -> bool:
        return self.source_project_id != self.target_project_id

    @property
    def deciding_pipeline(self) -> Pipeline | None:
        """The pipeline that GitLab judges the head by."""
        pipeline = self.head_pipeline
        is_current = pipeline is not None and (pipeline.sha == self.sha or pipeline.tests_merged_result)
        return pipeline if is_current else None

    @property
    def status_ref(self) -> str | None:
        """The ref whose pipeline gets our status, so that the merge request shows it. None for a fork: GitLab shows
        only pipelines of the fork there."""
        pipeline = self.head_pipeline
        if pipeline is not None and pipeline.sha == self.sha:
            is_in_project = not self.is_from_fork or pipeline.project_id == self.target_project_id
            return pipeline.ref if is_in_project else None
        return None if self.is_from_fork else self.source_branch


class Approvals(Struct, frozen=True):
    """Of all rules together. The free edition returns neither, because it has no approval rules."""

    approvals_required: int | None = 0
    approvals_left: int | None = 0


class Group(Struct, frozen=True):
    full_path: str


class ApprovalRule(Struct, frozen=True, kw_only=True):
    name: str = ""
    rule_type: str = "regular"
    approvals_required: int = 0
    users: tuple[User, ...] = ()
    groups: tuple[Group, ...] = ()
    """Without those that are hidden from our account."""
    approved_by: tuple[User, ...] = ()
    """Only accounts whose approval counts for this rule."""
    approved: bool = False

    @property
    def is_met(self) -> bool:
        return self.approved or len(self.approved_by) >= self.approvals_required

    @property
    def names_of_missing_approvers(self) -> tuple[str, ...]:
        """The rule's own name if GitLab names no approvers; nothing if every member with the right can approve."""
        given = {user.id for user in self.approved_by}
        names = [
            *(f"@{group.full_path}" for group in self.groups),
            *(f"@{user.username}" for user in self.users if user.id not in given),
        ]
        is_for_everyone = self.rule_type == "any_approver" or not self.name
        return tuple(names) or (() if is_for_everyone else (self.name,))


class ApprovalState(Struct, frozen=True):
    rules: tuple[ApprovalRule, ...] = ()


class Reviewer(Struct, frozen=True):
    user: User
    state: str = ""


class DiscussionNote(Struct, frozen=True):
    resolvable: bool = False
    resolved: bool = False


class Discussion(Struct, frozen=True):
    notes: tuple[DiscussionNote, ...] = ()

    @property
    def is_unresolved(self) -> bool:
        return any(note.resolvable and not note.resolved for note in self.notes)


class ExternalCheck(Struct, frozen=True):
    """A check of another service that reports to the merge request itself (Ultimate)."""

    name: str
    status: str = ""

    @property
    def has_passed(self) -> bool:
        """Versions before 15.0 call it approved."""
        return self.status in ("passed", "approved")

    @property
    def has_failed(self) -> bool:
        return self.status == "failed"


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
    path_with_namespace: str = ""
    default_branch: str | None = None
    merge_method: str = "merge"
    squash_option: str = "default_off"
    only_allow_merge_if_pipeline_succeeds: bool = False
    allow_merge_on_skipped_pipeline: bool | None = None
    merge_pipelines_enabled: bool | None = None
    """Whether pipelines of merge requests test the merged result. Only Premium returns it."""
    archived: bool = False
    permissions: Permissions = Permissions()


class Commit(Struct, frozen=True):
    parent_ids: tuple[str, ...] = ()


class NamedCommit(Struct, frozen=True):
    id: str


class Branch(Struct, frozen=True, kw_only=True):
    name: str
    commit: NamedCommit
    default: bool = False
    protected: bool = False
    can_push: bool = False
    """Our account, also by `allow_collaboration`. It can still be forbidden to force a push."""


class BranchAccess(Struct, frozen=True):
    """A permission on a protected branch, for one user, one group, one deploy key, or all members with a role."""

    access_level: int | None = None
    access_level_description: str = ""
    """The name of the role, the user or the group."""
    user_id: int | UnsetType | None = UNSET
    """Only plans that can name single accounts return it."""
    group_id: int | None = None
    deploy_key_id: int | None = None

    @property
    def is_for_role(self) -> bool:
        return not self.user_id and self.group_id is None and self.deploy_key_id is None

    @property
    def is_no_one(self) -> bool:
        return self.is_for_role and not self.access_level

    @property
    def is_for_maintainers(self) -> bool:
        return self.is_for_role and (self.access_level or 0) >= MAINTAINER_LEVEL

    @property
    def name(self) -> str:
        return self.access_level_description or f"accounts with access level {self.access_level}"


class ProtectedBranch(Struct, frozen=True):
    name: str
    """A branch name, or a pattern with `*`."""
    merge_access_levels: tuple[BranchAccess, ...] = ()
    push_access_levels: tuple[BranchAccess, ...] = ()

    @property
    def names_accounts(self) -> bool:
        """Whether the plan can name single accounts."""
        return any(access.user_id is not UNSET for access in (*self.merge_access_levels, *self.push_access_levels))

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


class PushRule(Struct, frozen=True, kw_only=True):
    """What GitLab requires of every push; the free edition has none."""

    branch_name_regex: str | None = None
    commit_message_regex: str | None = None
    commit_message_negative_regex: str | None = None
    author_email_regex: str | None = None
    member_check: bool | None = None
    reject_unsigned_commits: bool | None = None
    reject_non_dco_commits: bool | None = None
    commit_committer_check: bool | None = None
    commit_committer_name_check: bool | None = None


class SshKey(Struct, frozen=True):
    key: str
    usage_type: str = "auth_and_signing"
    """Versions before 15.7 have no usage types: every key signs."""


class GpgKey(Struct, frozen=True):
    key: str


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


class Note(Struct, frozen=True, kw_only=True):
    id: int
    body: str
    author: User | None = None
    created_at: datetime
    updated_at: datetime | None = None
    """Also changes when the note is resolved and when it gets an emoji."""
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
