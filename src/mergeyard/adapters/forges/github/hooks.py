"""Hears webhooks of GitHub: verifies who sent them, then reads only what they are about."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.github.names import is_name, same_name
from mergeyard.adapters.forges.heard import Commit, Number, read
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews

BRANCH = "refs/heads/"


class Owner(Struct, frozen=True):
    login: str


class Place(Struct, frozen=True):
    name: str
    owner: Owner


class Numbered(Struct, frozen=True):
    number: Number


class Issue(Struct, frozen=True):
    number: Number
    pull_request: dict[str, Any] | None = None
    """There only where the issue is a pull request."""


class Checked(Struct, frozen=True):
    head_sha: Commit


class Message(Struct, frozen=True, kw_only=True):
    """Of every kind of message the part that tells what it is about."""

    repository: Place | None = None
    pull_request: Numbered | None = None
    issue: Issue | None = None
    check_run: Checked | None = None
    check_suite: Checked | None = None
    sha: Commit | None = None
    ref: str | None = None


MESSAGE = Decoder(Message)


def verify(secret: str | None, headers: Mapping[str, str], body: bytes) -> None:
    if not secret:
        raise Forged("no secret of webhooks is configured for this host")
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    given = headers.get("x-hub-signature-256", "")
    if not hmac.compare_digest(expected.encode(), given.encode()):
        raise Forged("the signature is not ours")


def news(host: str, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
    message = read(body, MESSAGE)
    if message is None or message.repository is None:
        return ()
    repo = same_name(Repo(host, message.repository.owner.login, message.repository.name))
    return _about(headers.get("x-github-event", ""), repo, message) if is_name(repo) else ()


def _about(event: str, repo: Repo, message: Message) -> Sequence[News]:
    match event, message:
        case "pull_request" | "pull_request_review", Message(pull_request=Numbered(number=number)):
            return (PullNews(repo, PrNumber(number)),)
        case "issue_comment", Message(issue=Issue(number=number, pull_request=dict())):
            return (PullNews(repo, PrNumber(number)),)
        case "status", Message(sha=str(sha)):
            return (CommitNews(repo, Sha(sha)),)
        case "check_run", Message(check_run=Checked(head_sha=sha)):
            return (CommitNews(repo, Sha(sha)),)
        case "check_suite", Message(check_suite=Checked(head_sha=sha)):
            return (CommitNews(repo, Sha(sha)),)
        case "push", Message(ref=str(ref)) if ref.startswith(BRANCH):
            return (BranchNews(repo, ref.removeprefix(BRANCH)),)
        case _:
            return ()
