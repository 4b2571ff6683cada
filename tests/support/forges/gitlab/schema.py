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
    name: str
    state: Literal["active", "blocked", "deactivated"]
    web_url: str


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
    permissions: Permissions


class Commit(Schema):
    id: str
    short_id: str
    title: str


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


class ListedMergeRequest(Schema):
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
    author: User | None
    source_project_id: int | None
    target_project_id: int
    labels: list[str]
    draft: bool
    merge_status: MergeStatus
    detailed_merge_status: DetailedMergeStatus
    sha: str | None
    merge_commit_sha: str | None
    squash_commit_sha: str | None
    user_notes_count: int
    web_url: str
    has_conflicts: bool
    blocking_discussions_resolved: bool


class MergeRequestUser(Schema):
    can_merge: bool


class MergeRequest(ListedMergeRequest):
    merge_error: str | None
    user: MergeRequestUser


class Approvals(Schema):
    approved: bool
    approved_by: list[dict[str, User]]


class Note(Schema):
    id: int
    body: str
    author: User | None
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
