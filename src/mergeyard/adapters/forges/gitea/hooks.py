"""Hears webhooks: checks that they are signed, and reads what they are about."""

import hmac
from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.gitea.places import is_name
from mergeyard.adapters.forges.heard import Commit, Number, read
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews

SIGNATURES = ("x-gitea-signature", "x-forgejo-signature", "x-hub-signature-256")
EVENTS = ("x-gitea-event", "x-forgejo-event", "x-github-event")
SCHEME = "sha256="
HEADS = "refs/heads/"


class Owner(Struct, frozen=True):
    login: str


class Place(Struct, frozen=True):
    owner: Owner
    name: str


class Numbered(Struct, frozen=True):
    number: Number


class OfPull(Struct, frozen=True):
    repository: Place
    pull_request: Numbered


class OfIssue(Struct, frozen=True):
    repository: Place
    issue: Numbered
    is_pull: bool = False


class OfBranch(Struct, frozen=True):
    repository: Place
    ref: str
    ref_type: str = "branch"


class OfCommit(Struct, frozen=True):
    repository: Place
    sha: Commit


OF_PULL, OF_ISSUE, OF_BRANCH, OF_COMMIT = Decoder(OfPull), Decoder(OfIssue), Decoder(OfBranch), Decoder(OfCommit)


def check_signature(secret: str | None, headers: Mapping[str, str], body: bytes) -> None:
    if not secret:
        raise Forged("no secret is configured for webhooks of this host, so none is believed")
    given = next((headers[name] for name in SIGNATURES if name in headers), "")
    expected = hmac.new(secret.encode(), body, sha256).hexdigest()
    if not hmac.compare_digest(given.removeprefix(SCHEME).encode(), expected.encode()):
        raise Forged("the webhook is not signed with the secret that is configured for this host")


def news_in(host: str, headers: Mapping[str, str], body: bytes) -> Iterator[News]:
    event = next((headers[name] for name in EVENTS if name in headers), "")
    yield from (news for news in _news(event, host, body) if is_name(news.repo))


def _news(event: str, host: str, body: bytes) -> Iterator[News]:
    if event.startswith("pull_request"):
        yield from _of_pull(host, body)
    elif event == "issue_comment":
        yield from _of_comment(host, body)
    elif event in ("push", "create", "delete"):
        yield from _of_branch(host, body)
    elif event == "status":
        yield from _of_commit(host, body)


def _of_pull(host: str, body: bytes) -> Iterator[News]:
    told = read(body, OF_PULL)
    if told:
        yield PullNews(_repo(host, told.repository), PrNumber(told.pull_request.number))


def _of_comment(host: str, body: bytes) -> Iterator[News]:
    """Of issues we know nothing, and they are numbered together with pull requests."""
    told = read(body, OF_ISSUE)
    if told and told.is_pull:
        yield PullNews(_repo(host, told.repository), PrNumber(told.issue.number))


def _of_branch(host: str, body: bytes) -> Iterator[News]:
    """A push names its ref in full, a deletion only the branch; both are told of tags too."""
    told = read(body, OF_BRANCH)
    if told and told.ref_type == "branch" and not told.ref.startswith("refs/tags/"):
        yield BranchNews(_repo(host, told.repository), told.ref.removeprefix(HEADS))


def _of_commit(host: str, body: bytes) -> Iterator[News]:
    told = read(body, OF_COMMIT)
    if told:
        yield CommitNews(_repo(host, told.repository), Sha(told.sha))


def _repo(host: str, place: Place) -> Repo:
    return Repo(host, place.owner.login.lower(), place.name.lower())
