"""Verifies GitHub's webhooks and extracts which pull request, commit or branch they are about."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.github.wire import canonical_repo, is_valid_name
from mergeyard.adapters.forges.http import CommitSha, PositiveInt32, decode_or_none
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice

BRANCH_PREFIX = "refs/heads/"


class Owner(Struct, frozen=True):
    login: str


class Repository(Struct, frozen=True):
    name: str
    owner: Owner


class Numbered(Struct, frozen=True):
    number: PositiveInt32


class Issue(Struct, frozen=True):
    number: PositiveInt32
    pull_request: dict[str, Any] | None = None
    """None when the issue is not a pull request."""


class CheckedCommit(Struct, frozen=True):
    head_sha: CommitSha


class WebhookPayload(Struct, frozen=True, kw_only=True):
    """The identifying members of all event types that we handle."""

    repository: Repository | None = None
    pull_request: Numbered | None = None
    issue: Issue | None = None
    check_run: CheckedCommit | None = None
    check_suite: CheckedCommit | None = None
    sha: CommitSha | None = None
    ref: str | None = None


PAYLOAD_DECODER = Decoder(WebhookPayload)


def verify_signature(secret: str | None, headers: Mapping[str, str], body: bytes) -> None:
    if not secret:
        raise InvalidSignature("no secret is configured for the webhooks of this Git host: set webhook_secret_file")
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    signature = headers.get("x-hub-signature-256", "")
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise InvalidSignature("the signature is missing or does not match the configured secret")


def parse_notices(host: str, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
    payload = decode_or_none(body, PAYLOAD_DECODER)
    if payload is None or payload.repository is None:
        return ()
    repo = canonical_repo(Repo(host, payload.repository.owner.login, payload.repository.name))
    return _to_notices(headers.get("x-github-event", ""), repo, payload) if is_valid_name(repo) else ()


def _to_notices(event: str, repo: Repo, payload: WebhookPayload) -> Sequence[ForgeNotice]:
    match event, payload:
        case "pull_request" | "pull_request_review", WebhookPayload(pull_request=Numbered(number=number)):
            return (PullRequestNotice(repo, PullRequestNumber(number)),)
        case "issue_comment", WebhookPayload(issue=Issue(number=number, pull_request=dict())):
            return (PullRequestNotice(repo, PullRequestNumber(number)),)
        case "status", WebhookPayload(sha=str(sha)):
            return (CommitNotice(repo, Sha(sha)),)
        case "check_run", WebhookPayload(check_run=CheckedCommit(head_sha=sha)):
            return (CommitNotice(repo, Sha(sha)),)
        case "check_suite", WebhookPayload(check_suite=CheckedCommit(head_sha=sha)):
            return (CommitNotice(repo, Sha(sha)),)
        case "push", WebhookPayload(ref=str(ref)) if ref.startswith(BRANCH_PREFIX):
            return (BranchNotice(repo, ref.removeprefix(BRANCH_PREFIX)),)
        case _:
            return ()
