"""Gitea's JSON, with the members that we read, and the patterns of its protection rules."""

import re
from base64 import b64decode
from datetime import datetime
from fnmatch import fnmatchcase
from typing import assert_never

from msgspec import Struct

from mergeyard.adapters.forges.host import User
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha


class Label(Struct, frozen=True):
    id: int
    name: str


class BranchRepository(Struct, frozen=True):
    full_name: str
    default_branch: str = ""


class PullRequestBranch(Struct, frozen=True):
    """The head or base branch of a pull request. `label` keeps the name when the branch is deleted."""

    label: str
    sha: str
    repo_id: int
    repo: BranchRepository | None = None
    """None if the fork is gone."""


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
    changed_files: int | None = None
    labels: list[Label] | None = None


class Author(Struct, frozen=True):
    login: str = ""
    full_name: str = ""
    email: str = ""
    is_admin: bool = False
    """Of the server. Visible only to the account itself, and to administrators."""


class PullRequestTextPayload(Struct, frozen=True):
    title: str
    body: str = ""
    user: Author | None = None


class Verification(Struct, frozen=True):
    verified: bool = False
    signature: str = ""

    def is_made_with(self, ssh_key: str) -> bool:
        """Whether the commit has a signature that contains this public SSH key."""
        body = "".join(line for line in self.signature.split("\n") if "-----" not in line)
        try:
            return b64decode(ssh_key.split()[1]) in b64decode(body)
        except ValueError:
            return False


class Committer(Struct, frozen=True):
    email: str = ""


class CommitDetails(Struct, frozen=True):
    verification: Verification | None = None
    committer: Committer | None = None


class Commit(Struct, frozen=True):
    sha: str
    commit: CommitDetails

    @property
    def is_verified(self) -> bool:
        return self.commit.verification is not None and self.commit.verification.verified

    def is_made_by(self, address: str, ssh_key: str) -> bool:
        verification, committer = self.commit.verification, self.commit.committer
        is_theirs = committer is not None and committer.email.casefold() == address.casefold()
        return is_theirs and verification is not None and verification.is_made_with(ssh_key)


class SshKey(Struct, frozen=True):
    key: str


class KeyAddress(Struct, frozen=True):
    verified: bool = False


class GpgKey(Struct, frozen=True):
    key_id: str
    verified: bool = False
    emails: list[KeyAddress] | None = None
    """Of the key. One is verified if it is an address of the account."""
    subkeys: "list[GpgKey] | None" = None

    def accepts(self, key_id: str) -> bool:
        """Whether Gitea accepts signatures of the key or subkey with this identifier."""
        is_trusted = self.verified or any(address.verified for address in self.emails or ())
        return is_trusted and key_id in (self.key_id, *(subkey.key_id for subkey in self.subkeys or ()))


class ChangedFile(Struct, frozen=True):
    filename: str


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
    protected: bool = False
    required_approvals: int = 0
    enable_status_check: bool = False
    status_check_contexts: list[str] | None = None
    user_can_push: bool = True
    user_can_merge: bool = True
    effective_branch_protection_name: str = ""
    """Visible only to administrators of the repository."""


class Rule(Struct, frozen=True):
    """A protection rule. Without one, nothing is required."""

    rule_name: str = ""
    """The name of a branch, or a pattern."""
    enable_push: bool = False
    enable_push_whitelist: bool = False
    push_whitelist_usernames: list[str] | None = None
    push_whitelist_teams: list[str] | None = None
    push_whitelist_deploy_keys: bool = False
    enable_merge_whitelist: bool = False
    merge_whitelist_usernames: list[str] | None = None
    merge_whitelist_teams: list[str] | None = None
    required_approvals: int = 0
    block_on_rejected_reviews: bool = False
    block_on_official_review_requests: bool = False
    block_on_outdated_branch: bool = False
    ignore_stale_approvals: bool = False
    require_signed_commits: bool = False
    protected_file_patterns: str = ""
    unprotected_file_patterns: str = ""
    block_admin_merge_override: bool = False


class Team(Struct, frozen=True):
    name: str


class Review(Struct, frozen=True):
    """A review, or a request for one, until it is answered. Only an official one counts for the protection rule."""

    state: str
    user: User | None = None
    team: Team | None = None
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


class InternalTracker(Struct, frozen=True):
    enable_issue_dependencies: bool = False
    """Also of pull requests."""


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
    internal_tracker: InternalTracker = InternalTracker()


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


TOKEN_PATTERN = re.compile(r"\*\*?|\[!?(?:\\.|[^\[\]\\])+\]|\\.|.", re.DOTALL)


def matches(pattern: str, text: str, separators: str) -> bool:
    """Whether a pattern of a protection rule matches: `*` and `?` match no separator, `**` matches everything.

    Each bit of `reached` is a position in the text that the pattern can reach. Unlike a regular expression, this takes
    no longer for a pattern with many stars."""
    reached, groups = 1, list[tuple[int, int]]()
    plain, all_positions = _find_characters("?", text, separators), (2 << len(text)) - 1
    for token in TOKEN_PATTERN.findall(pattern):
        if token == "{":
            groups.append((reached, 0))
        elif token == "," and groups:
            start, found = groups.pop()
            groups.append((start, found | reached))
            reached = start
        elif token == "}" and groups:
            reached |= groups.pop()[1]
        elif token == "**":
            reached = -(reached & -reached) & all_positions
        elif token == "*":  # the carry of the addition runs up to the next separator
            reached |= ((reached & plain) + plain) ^ plain
        else:
            reached = (reached & _find_characters(token, text, separators)) << 1
    return bool(reached >> len(text) & 1)


def _find_characters(token: str, text: str, separators: str) -> int:
    """A bit for each position of a character that the token matches: `?`, a set such as `[a-z]`, or a character."""
    if token == "?":
        matching = {character for character in text if character not in separators}
    elif len(token) > 1 and token[0] == "[":
        matching = {character for character in text if fnmatchcase(character, token.replace("\\", ""))}
    else:
        matching = {token[-1]}
    return sum(1 << position for position, character in enumerate(text) if character in matching)
