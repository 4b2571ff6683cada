"""Verifies Gitea's webhooks and extracts which pull request, commit or branch they are about."""

import hmac
from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.gitea.wire import is_valid_name
from mergeyard.adapters.forges.http import CommitSha, PositiveInt32, decode_or_none
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice

SIGNATURE_HEADERS = ("x-gitea-signature", "x-forgejo-signature", "x-hub-signature-256")
EVENT_HEADERS = ("x-gitea-event", "x-forgejo-event", "x-github-event")
SIGNATURE_PREFIX = "sha256="
BRANCH_PREFIX = "refs/heads/"


class Owner(Struct, frozen=True):
    login: str


class Repository(Struct, frozen=True):
    owner: Owner
    name: str


class Numbered(Struct, frozen=True):
    number: PositiveInt32


class PullRequestHook(Struct, frozen=True):
    repository: Repository
    pull_request: Numbered


class CommentHook(Struct, frozen=True):
    repository: Repository
    issue: Numbered
    is_pull: bool = False


class BranchHook(Struct, frozen=True):
    repository: Repository
    ref: str
    ref_type: str = "branch"


class StatusHook(Struct, frozen=True):
    repository: Repository
    sha: CommitSha


PULL_REQUEST_DECODER = Decoder(PullRequestHook)
COMMENT_DECODER = Decoder(CommentHook)
BRANCH_DECODER = Decoder(BranchHook)
STATUS_DECODER = Decoder(StatusHook)


def verify_signature(secret: str | None, headers: Mapping[str, str], body: bytes) -> None:
    if not secret:
        raise InvalidSignature("no secret is configured for the webhooks of this Git host: set webhook_secret_file")
    signature = next((headers[name] for name in SIGNATURE_HEADERS if name in headers), "")
    expected = hmac.new(secret.encode(), body, sha256).hexdigest()
    if not hmac.compare_digest(signature.removeprefix(SIGNATURE_PREFIX).encode(), expected.encode()):
        raise InvalidSignature("the signature is missing or does not match the configured secret")


def parse_notices(host: str, headers: Mapping[str, str], body: bytes) -> Iterator[ForgeNotice]:
    event = next((headers[name] for name in EVENT_HEADERS if name in headers), "")
    yield from (notice for notice in _to_notices(event, host, body) if is_valid_name(notice.repo))


def _to_notices(event: str, host: str, body: bytes) -> Iterator[ForgeNotice]:
    if event.startswith("pull_request"):
        yield from _parse_pull_request(host, body)
    elif event == "issue_comment":
        yield from _parse_comment(host, body)
    elif event in ("push", "create", "delete"):
        yield from _parse_branch(host, body)
    elif event == "status":
        yield from _parse_status(host, body)


def _parse_pull_request(host: str, body: bytes) -> Iterator[ForgeNotice]:
    payload = decode_or_none(body, PULL_REQUEST_DECODER)
    if payload:
        yield PullRequestNotice(_to_repo(host, payload.repository), PullRequestNumber(payload.pull_request.number))


def _parse_comment(host: str, body: bytes) -> Iterator[ForgeNotice]:
    """Issues share their numbers with pull requests, but are ignored."""
    payload = decode_or_none(body, COMMENT_DECODER)
    if payload and payload.is_pull:
        yield PullRequestNotice(_to_repo(host, payload.repository), PullRequestNumber(payload.issue.number))


def _parse_branch(host: str, body: bytes) -> Iterator[ForgeNotice]:
    """A push contains the full ref, a deletion only the branch name. Both are also sent for tags."""
    payload = decode_or_none(body, BRANCH_DECODER)
    if payload and payload.ref_type == "branch" and not payload.ref.startswith("refs/tags/"):
        yield BranchNotice(_to_repo(host, payload.repository), payload.ref.removeprefix(BRANCH_PREFIX))


def _parse_status(host: str, body: bytes) -> Iterator[ForgeNotice]:
    payload = decode_or_none(body, STATUS_DECODER)
    if payload:
        yield CommitNotice(_to_repo(host, payload.repository), Sha(payload.sha))


def _to_repo(host: str, repository: Repository) -> Repo:
    return Repo(host, repository.owner.login.lower(), repository.name.lower())
