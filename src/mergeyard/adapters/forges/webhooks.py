"""Verifies incoming webhooks of forges and extracts which pull request, commit or branch they are about."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, TypeVar

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from mergeyard.domain.ids import SHA_PATTERN, PullRequestNumber, Repo, Sha
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant
from mergeyard.ports.forge import (
    OWN_COMMENT_PREFIX,
    BranchNotice,
    CommitNotice,
    ForgeNotice,
    InvalidSignature,
    PullRequestNotice,
)

BRANCH_PREFIX = "refs/heads/"
MISMATCH = "the signature is missing or does not match the configured secret"

PositiveInt32 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
CommitSha = Annotated[str, Meta(pattern=rf"^(?:{SHA_PATTERN})\Z")]
T = TypeVar("T")


def _decode_or_none(body: bytes, decoder: Decoder[T]) -> T | None:
    try:
        return decoder.decode(body)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _to_branch_notice(repo: Repo, ref: str) -> BranchNotice | None:
    return BranchNotice(repo, ref.removeprefix(BRANCH_PREFIX)) if ref.startswith(BRANCH_PREFIX) else None


# GitHub, and Gitea and Forgejo, which send the same members.

MAX_CHECK_NAME_CHARS = 255
"""A longer name is not passed on: replicas tell each other about notices in short messages."""
SIGNATURE_HEADERS = ("x-gitea-signature", "x-forgejo-signature", "x-hub-signature-256")
GITEA_EVENT_HEADERS = ("x-gitea-event", "x-forgejo-event")
EVENT_HEADERS = (*GITEA_EVENT_HEADERS, "x-github-event")


class Owner(Struct, frozen=True):
    login: str


class Repository(Struct, frozen=True):
    name: str
    owner: Owner


class Numbered(Struct, frozen=True):
    number: PositiveInt32
    pull_request: dict[str, Any] | None = None
    """GitHub: None when an issue is not a pull request."""


class CheckedCommit(Struct, frozen=True):
    """A check run, or a check suite, which has no name."""

    head_sha: CommitSha
    name: str | None = None


class PostedText(Struct, frozen=True):
    body: str = ""


class GithubPayload(Struct, frozen=True, kw_only=True):
    """The identifying members of all event types that we handle."""

    repository: Repository
    action: str = ""
    pull_request: Numbered | None = None
    issue: Numbered | None = None
    comment: PostedText | None = None
    is_pull: bool = False
    """Gitea: whether the issue is a pull request."""
    check_run: CheckedCommit | None = None
    check_suite: CheckedCommit | None = None
    sha: CommitSha | None = None
    context: str | None = None
    """The name of a commit status."""
    ref: str | None = None
    ref_type: str = ""


GITHUB_DECODER = Decoder(GithubPayload)


def verify_hmac(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    signature = next((headers[name] for name in SIGNATURE_HEADERS if name in headers), "")
    expected = hmac.new(secret.encode(), body, sha256).hexdigest()
    if not hmac.compare_digest(signature.removeprefix("sha256=").encode(), expected.encode()):
        raise InvalidSignature(MISMATCH)


def parse_github_notice(host: str, headers: Mapping[str, str], body: bytes) -> ForgeNotice | None:
    """None for other kinds of events and for malformed payloads."""
    payload = _decode_or_none(body, GITHUB_DECODER)
    if payload is None:
        return None
    repo = Repo(host, payload.repository.owner.login.lower(), payload.repository.name.lower())
    match next((headers[name] for name in EVENT_HEADERS if name in headers), ""), payload:
        case event, GithubPayload(pull_request=Numbered(number=number)) if event.startswith("pull_request"):
            return PullRequestNotice(repo, PullRequestNumber(number))
        case "issue_comment", GithubPayload(action="edited"):
            # An edited comment is no command. Each change of our own comment causes such a webhook.
            return None
        case "issue_comment", GithubPayload(comment=PostedText(body=text)) if text.startswith(OWN_COMMENT_PREFIX):
            return None
        case "issue_comment", GithubPayload(issue=Numbered() as issue) if (
            payload.is_pull or issue.pull_request is not None
        ):
            return PullRequestNotice(repo, PullRequestNumber(issue.number))
        case "status", GithubPayload(sha=str(sha)):
            return CommitNotice(repo, Sha(sha), _to_check_name(headers, payload.context))
        case "check_run", GithubPayload(check_run=CheckedCommit(head_sha=sha, name=name)):
            return CommitNotice(repo, Sha(sha), _to_check_name(headers, name))
        case "check_suite", GithubPayload(check_suite=CheckedCommit(head_sha=sha)):
            return CommitNotice(repo, Sha(sha))
        case "push", GithubPayload(ref=str(ref)):
            return _to_branch_notice(repo, ref)
        case "create" | "delete", GithubPayload(ref=str(ref), ref_type="branch"):
            return BranchNotice(repo, ref.removeprefix(BRANCH_PREFIX))
        case _:
            return None


def _to_check_name(headers: Mapping[str, str], name: str | None) -> str | None:
    """None on Gitea, where a required check can be a pattern."""
    is_gitea = any(header in headers for header in GITEA_EVENT_HEADERS)
    return None if is_gitea or name is None or len(name) > MAX_CHECK_NAME_CHARS else name


# GitLab


class ProjectPath(Struct, frozen=True):
    path_with_namespace: str


class Identified(Struct, frozen=True):
    """A merge request, a pipeline or a note."""

    action: str | None = None
    iid: PositiveInt32 | None = None
    sha: CommitSha | None = None
    note: str | None = None


class GitlabPayload(Struct, frozen=True, kw_only=True):
    """The identifying members of all event types that we handle."""

    object_kind: str
    project: ProjectPath
    object_attributes: Identified = Identified()
    merge_request: Identified | None = None
    """None for a note on an issue or a commit."""
    sha: CommitSha | None = None
    ref: str | None = None


GITLAB_DECODER = Decoder(GitlabPayload)
SIGNING_TOKEN_PREFIX = "whsec_"
"""Any other secret is a plain token that GitLab sends in a header."""
MAX_CLOCK_SKEW_MS = 5 * MINUTE


def verify_gitlab(secret: str, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    if secret.startswith(SIGNING_TOKEN_PREFIX):
        _verify_signing_token(secret, headers, body, now)
    elif not hmac.compare_digest(secret.encode(), headers.get("x-gitlab-token", "").encode()):
        raise InvalidSignature("the secret token is missing or does not match the configured secret")


def _verify_signing_token(secret: str, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    """The signature scheme of Standard Webhooks."""
    webhook_id, timestamp, signatures = (
        headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature")
    )
    try:
        key = b64decode(secret.removeprefix(SIGNING_TOKEN_PREFIX), validate=True)
    except ValueError as error:
        raise InvalidSignature(
            f"the configured signing token is invalid: {SIGNING_TOKEN_PREFIX} must be followed by base64"
        ) from error
    digest = hmac.digest(key, f"{webhook_id}.{timestamp}.".encode() + body, sha256)
    expected = b"v1," + b64encode(digest)
    if not any(hmac.compare_digest(expected, signature.encode()) for signature in signatures.split(" ")):
        raise InvalidSignature(MISMATCH)
    is_recent = (
        timestamp.isdecimal() and len(timestamp) < 12 and abs(int(timestamp) * SECOND - now) <= MAX_CLOCK_SKEW_MS
    )
    if not is_recent:
        raise InvalidSignature("the signature is too old or from the future: compare the clocks of both machines")


def parse_gitlab_notice(host: str, body: bytes) -> ForgeNotice | None:
    """None for other kinds of events and for malformed payloads."""
    payload = _decode_or_none(body, GITLAB_DECODER)
    if payload is None:
        return None
    owner, _, name = payload.project.path_with_namespace.lower().rpartition("/")
    repo = Repo(host, owner, name)
    match payload.object_kind, payload:
        case "merge_request", GitlabPayload(object_attributes=Identified(iid=int(number))):
            return PullRequestNotice(repo, PullRequestNumber(number))
        case "note", GitlabPayload(object_attributes=Identified(action="update")):
            # An edited note is no command. Each change of our own note causes such a webhook.
            return None
        case "note", GitlabPayload(object_attributes=Identified(note=str(text))) if text.startswith(OWN_COMMENT_PREFIX):
            return None
        case "note", GitlabPayload(merge_request=Identified(iid=int(number))):
            return PullRequestNotice(repo, PullRequestNumber(number))
        case "pipeline", GitlabPayload(object_attributes=Identified(sha=str(sha))):
            return CommitNotice(repo, Sha(sha))
        case "build", GitlabPayload(sha=str(sha)):
            return CommitNotice(repo, Sha(sha))
        case "push", GitlabPayload(ref=str(ref)):
            return _to_branch_notice(repo, ref)
        case _:
            return None
