"""Gitea's JSON, with the members that we read."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from mergeyard.adapters.forges.host import User
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha


class Label(Struct, frozen=True):
    id: int
    name: str


class PullRequestBranch(Struct, frozen=True):
    """The head or base branch of a pull request. `label` keeps the name when the branch is deleted."""

    label: str
    sha: str
    repo_id: int


class PullRequestPayload(Struct, frozen=True):
    number: PullRequestNumber
    title: str
    user: User | None
    state: str
    mergeable: bool
    merged: bool
    merge_commit_sha: Sha | None
    base: PullRequestBranch
    head: PullRequestBranch
    updated_at: datetime
    draft: bool = False
    comments: int = 0
    labels: list[Label] | None = None


class RepositoryName(Struct, frozen=True):
    full_name: str


class Dependency(Struct, frozen=True):
    """An issue or a pull request."""

    number: int
    state: str
    repository: RepositoryName | None = None


class BranchCommit(Struct, frozen=True):
    id: Sha


class GitObject(Struct, frozen=True):
    sha: Sha


class GitRef(Struct, frozen=True):
    ref: str
    object: GitObject


class Branch(Struct, frozen=True):
    """A branch, with the protection rule that applies to it."""

    commit: BranchCommit
    required_approvals: int = 0
    enable_status_check: bool = False
    status_check_contexts: list[str] | None = None
    user_can_push: bool = True
    user_can_merge: bool = True
    effective_branch_protection_name: str = ""
    """Visible only to administrators of the repository."""


class Rule(Struct, frozen=True):
    block_on_rejected_reviews: bool = False
    block_on_official_review_requests: bool = False
    ignore_stale_approvals: bool = False


class Review(Struct, frozen=True):
    state: str
    official: bool = False
    stale: bool = False
    dismissed: bool = False


class CommitStatus(Struct, frozen=True):
    id: int
    context: str
    status: str
    created_at: datetime
    target_url: str = ""
    description: str = ""


class Role(Struct, frozen=True):
    permission: str


class Permissions(Struct, frozen=True):
    admin: bool = False
    push: bool = False


class Repository(Struct, frozen=True):
    permissions: Permissions
    html_url: str
    default_branch: str = ""
    archived: bool = False
    has_pull_requests: bool = True
    allow_merge_commits: bool = True
    allow_squash_merge: bool = True
    allow_rebase: bool = True
    allow_manual_merge: bool = False
    autodetect_manual_merge: bool = False


def allows_method(repository: Repository, method: MergeMethod) -> bool:
    """Whether Gitea's merge call allows this method."""
    match method:
        case MergeMethod.MERGE_COMMIT:
            return repository.allow_merge_commits
        case MergeMethod.SQUASH:
            return repository.allow_squash_merge
        case MergeMethod.REBASE:
            return repository.allow_rebase
        case _:
            assert_never(method)


class HookConfig(Struct, frozen=True):
    url: str = ""
    content_type: str = ""


class Hook(Struct, frozen=True):
    config: HookConfig
    events: list[str]
    active: bool
