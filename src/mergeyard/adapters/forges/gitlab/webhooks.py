"""Verifies GitLab's webhooks and extracts which merge request, commit or branch they are about."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import assert_never

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.gitlab.wire import from_full_name, is_valid_name
from mergeyard.adapters.forges.http import CommitSha, PositiveInt32, decode_or_none
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice

BRANCH_PREFIX = "refs/heads/"


class ProjectPath(Struct, frozen=True):
    path_with_namespace: str


class Numbered(Struct, frozen=True):
    iid: PositiveInt32


class CheckedCommit(Struct, frozen=True):
    sha: CommitSha


class MergeRequestHook(Struct, frozen=True, tag="merge_request", tag_field="object_kind"):
    project: ProjectPath
    object_attributes: Numbered


class NoteHook(Struct, frozen=True, tag="note", tag_field="object_kind"):
    project: ProjectPath
    merge_request: Numbered | None = None
    """None for a note on an issue or a commit."""


class PushHook(Struct, frozen=True, tag="push", tag_field="object_kind"):
    project: ProjectPath
    ref: str


class PipelineHook(Struct, frozen=True, tag="pipeline", tag_field="object_kind"):
    project: ProjectPath
    object_attributes: CheckedCommit


class JobHook(Struct, frozen=True, tag="build", tag_field="object_kind"):
    project: ProjectPath
    sha: CommitSha


WebhookPayload = MergeRequestHook | NoteHook | PushHook | PipelineHook | JobHook
PAYLOAD_DECODER = Decoder[WebhookPayload](WebhookPayload)


def parse_notices(host: str, body: bytes) -> tuple[ForgeNotice, ...]:
    """Empty for other kinds of events and for malformed payloads."""
    payload = decode_or_none(body, PAYLOAD_DECODER)
    notice = None if payload is None else _to_notice(host, payload)
    return (notice,) if notice is not None and is_valid_name(notice.repo) else ()


def _to_notice(host: str, payload: WebhookPayload) -> ForgeNotice | None:
    repo = from_full_name(host, payload.project.path_with_namespace)
    match payload:
        case MergeRequestHook():
            return PullRequestNotice(repo, PullRequestNumber(payload.object_attributes.iid))
        case NoteHook():
            return (
                None
                if payload.merge_request is None
                else PullRequestNotice(repo, PullRequestNumber(payload.merge_request.iid))
            )
        case PushHook():
            is_branch = payload.ref.startswith(BRANCH_PREFIX)
            return BranchNotice(repo, payload.ref.removeprefix(BRANCH_PREFIX)) if is_branch else None
        case PipelineHook():
            return CommitNotice(repo, Sha(payload.object_attributes.sha))
        case JobHook():
            return CommitNotice(repo, Sha(payload.sha))
        case _:
            assert_never(payload)


SIGNING_TOKEN_PREFIX = "whsec_"
"""Any other secret is a plain token that GitLab sends in a header."""
MAX_CLOCK_SKEW_MS = 5 * MINUTE


def verify_signature(secret: str | None, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    if not secret:
        raise InvalidSignature("no secret is configured for the webhooks of this Git host: set webhook_secret_file")
    if secret.startswith(SIGNING_TOKEN_PREFIX):
        _verify_signing_token(secret, headers, body, now)
    elif not hmac.compare_digest(secret.encode(), headers.get("x-gitlab-token", "").encode()):
        raise InvalidSignature("the secret token is missing or does not match the configured secret")


def compute_signature(secret: str, webhook_id: str, timestamp: str, body: bytes) -> str:
    """The signature scheme of Standard Webhooks."""
    try:
        key = b64decode(secret.removeprefix(SIGNING_TOKEN_PREFIX), validate=True)
    except ValueError as error:
        raise InvalidSignature(
            f"the configured signing token is invalid: {SIGNING_TOKEN_PREFIX} must be followed by base64"
        ) from error
    digest = hmac.digest(key, f"{webhook_id}.{timestamp}.".encode() + body, sha256)
    return f"v1,{b64encode(digest).decode()}"


def _verify_signing_token(secret: str, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    webhook_id, timestamp, signatures = (
        headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature")
    )
    expected = compute_signature(secret, webhook_id, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, signature.encode()) for signature in signatures.split(" ")):
        raise InvalidSignature("the signature is missing or does not match the configured secret")
    is_recent = (
        timestamp.isdecimal() and len(timestamp) < 12 and abs(int(timestamp) * SECOND - now) <= MAX_CLOCK_SKEW_MS
    )
    if not is_recent:
        raise InvalidSignature("the signature is too old or from the future: compare the clocks of both machines")
