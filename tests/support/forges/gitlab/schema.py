"""The part of GitLab's API description, version 4, that the fake implements.

A response of the fake has exactly these members.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct


class Schema(Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class User(Schema):
    id: int
    username: str
    public_email: str | None
    name: str
    state: Literal["active", "blocked", "deactivated"]
    web_url: str


class Account(User):
    commit_email: str


class Member(User):
    access_level: Literal[0, 5, 10, 15, 20, 30, 40, 50]
    expires_at: str | None


class ProjectAccess(Schema):
    access_level: int
    notification_level: int


class Permissions(Schema):
    project_access: ProjectAccess | None
    group_access: ProjectAccess | None


class Project(Schema):
    id: int
    path_with_namespace: str
    default_branch: str | None
    visibility: Literal["private", "internal", "public"]
    web_url: str
    http_url_to_repo: str
    merge_method: Literal["merge", "rebase_merge", "ff"]
    squash_option: Literal["never", "always", "default_on", "default_off"]
    only_allow_merge_if_pipeline_succeeds: bool
    allow_merge_on_skipped_pipeline: bool | None
    only_allow_merge_if_all_discussions_are_resolved: bool | None
    archived: bool
    repository_object_format: Literal["sha1", "sha256"]
    jobs_enabled: bool
    builds_access_level: Literal["disabled", "private", "enabled"]
    permissions: Permissions
    merge_pipelines_enabled: bool = False
    """Premium only."""


class Commit(Schema):
    id: str
    short_id: str
    title: str


class CommitSignature(Schema):
    signature_type: Literal["PGP", "SSH", "X509"]
    verification_status: str
    commit_source: Literal["gitaly", "rugged"]


class SshKey(Schema):
    id: int
    title: str
    key: str
    usage_type: Literal["auth", "signing", "auth_and_signing"]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class GpgKey(Schema):
    id: int
    key: str
    created_at: datetime


class CommitDetail(Commit):
    parent_ids: list[str]


class Branch(Schema):
    name: str
    merged: bool
    protected: bool
    default: bool
    developers_can_push: bool
    developers_can_merge: bool
    can_push: bool
    web_url: str
    commit: Commit


class AccessLevel(Schema):
    id: int
    access_level: int | None
    access_level_description: str
    user_id: int | None = None
    group_id: int | None = None
    deploy_key_id: int | None = None


class ProtectedBranch(Schema):
    id: int
    name: str
    push_access_levels: list[AccessLevel]
    merge_access_levels: list[AccessLevel]
    allow_force_push: bool


MergeStatus = Literal[
    "unchecked", "checking", "can_be_merged", "cannot_be_merged", "cannot_be_merged_recheck", "preparing"
]
DetailedMergeStatus = Literal[
    "approvals_syncing",
    "broken_status",
    "checking",
    "ci_must_pass",
    "ci_still_running",
    "commits_status",
    "conflict",
    "discussions_not_resolved",
    "draft_status",
    "jira_association_missing",
    "locked_lfs_files",
    "locked_paths",
    "merge_request_blocked",
    "merge_time",
    "mergeable",
    "need_rebase",
    "not_approved",
    "not_open",
    "preparing",
    "requested_changes",
    "security_policy_pipeline_check",
    "security_policy_violations",
    "status_checks_must_pass",
    "title_regex",
    "unchecked",
]


class ListedMergeRequest(Schema, kw_only=True):
    id: int
    iid: int
    project_id: int
    title: str
    description: str | None
    state: Literal["opened", "closed", "locked", "merged"]
    created_at: datetime
    updated_at: datetime
    source_branch: str
    target_branch: str
    author: User
    source_project_id: int | None
    target_project_id: int
    allow_collaboration: bool = False
    """Only of a merge request from a fork."""
    labels: list[str]
    draft: bool
    merge_status: MergeStatus
    detailed_merge_status: DetailedMergeStatus
    sha: str | None
    merge_commit_sha: str | None
    squash_commit_sha: str | None
    squash: bool
    squash_on_merge: bool
    should_remove_source_branch: bool | None
    force_remove_source_branch: bool | None
    user_notes_count: int
    web_url: str
    has_conflicts: bool
    blocking_discussions_resolved: bool


class MergeRequestUser(Schema):
    can_merge: bool


class MergeRequest(ListedMergeRequest):
    merge_error: str | None
    head_pipeline: "Pipeline | None"
    user: MergeRequestUser


class Approvals(Schema):
    user_has_approved: bool
    user_can_approve: bool
    approved: bool
    approved_by: list[dict[str, User]]
    approvals_required: int = 0
    """This and the next: Premium only."""
    approvals_left: int = 0


class Group(Schema):
    id: int
    name: str
    full_path: str


class ApprovalRule(Schema):
    id: int
    name: str
    rule_type: Literal["regular", "any_approver", "code_owner", "report_approver"]
    eligible_approvers: list[User]
    approvals_required: int
    users: list[User]
    groups: list[Group]
    contains_hidden_groups: bool
    approved_by: list[User]
    approved: bool


class ApprovalState(Schema):
    approval_rules_overwritten: bool
    rules: list[ApprovalRule]


class DiscussionNote(Schema):
    id: int
    resolvable: bool
    resolved: bool


class Discussion(Schema):
    id: str
    notes: list[DiscussionNote]


class Reviewer(Schema):
    user: User
    state: Literal["unreviewed", "reviewed", "requested_changes", "approved", "unapproved", "review_started"]
    created_at: datetime


class ExternalCheck(Schema):
    id: int
    name: str
    external_url: str
    status: Literal["pending", "passed", "failed"]


class PushRule(Schema):
    id: int
    project_id: int
    commit_message_regex: str
    commit_message_negative_regex: str
    branch_name_regex: str
    author_email_regex: str
    file_name_regex: str
    max_file_size: int
    deny_delete_tag: bool
    member_check: bool
    prevent_secrets: bool
    commit_committer_check: bool
    commit_committer_name_check: bool
    reject_unsigned_commits: bool
    reject_non_dco_commits: bool


class Note(Schema):
    id: int
    body: str
    author: User
    created_at: datetime
    updated_at: datetime
    system: bool
    noteable_id: int
    noteable_iid: int
    noteable_type: Literal["MergeRequest"]
    resolvable: bool
    internal: bool


class AwardEmoji(Schema):
    id: int
    name: str
    user: User
    created_at: datetime
    awardable_id: int
    awardable_type: Literal["Note"]


CiStatus = Literal[
    "created",
    "waiting_for_resource",
    "preparing",
    "pending",
    "running",
    "success",
    "failed",
    "canceling",
    "canceled",
    "skipped",
    "manual",
    "scheduled",
]


class CommitStatus(Schema):
    id: int
    sha: str
    ref: str
    status: CiStatus
    name: str
    target_url: str | None
    description: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    allow_failure: bool
    coverage: float | None
    pipeline_id: int
    author: User


class Pipeline(Schema):
    id: int
    iid: int
    project_id: int
    status: CiStatus
    source: str
    ref: str
    sha: str
    web_url: str
    created_at: datetime
    updated_at: datetime


class Job(Schema):
    """A job or a bridge."""

    id: int
    name: str
    stage: str
    status: CiStatus
    ref: str
    tag: bool
    allow_failure: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    user: User
    pipeline: Pipeline
    web_url: str


class Token(Schema):
    id: int
    name: str
    revoked: bool
    active: bool
    scopes: list[str]
    user_id: int
    expires_at: str | None


class Hook(Schema):
    id: int
    url: str
    project_id: int
    enable_ssl_verification: bool
    push_events: bool
    merge_requests_events: bool
    note_events: bool
    pipeline_events: bool
    job_events: bool
    alert_status: Literal["executable", "disabled", "temporarily_disabled"]
