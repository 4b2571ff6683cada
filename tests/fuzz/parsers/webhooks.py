"""Mutated webhooks of forges: each gives notices with valid names, or none."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import assert_never

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice
from tests.fuzz.mutations import corrupted, encoded, mutated, words
from tests.fuzz.properties import holds_for
from tests.fuzz.webhook_samples import WebhookSample, from_gitea, from_github, from_gitlab

SECRET = "shared secret"
SIGNING = "whsec_c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ=="
ACCESS = ForgeConfig(name="forge.local", web_url="", api_url="", webhook_secret=SECRET)
GITHUB = GithubHost(ACCESS, WallClock())
GITLAB = GitlabHost(ACCESS, WallClock())
GITEA = GiteaHost(ACCESS, WallClock())

Sent = tuple[str, bytes]
"""The event in the header, and the body."""


def sent(samples: Callable[[], Sequence[WebhookSample]]) -> SearchStrategy[Sent]:
    """Some with the name of another event."""

    @st.composite
    def one(draw: DrawFn) -> Sent:
        known = samples()
        sample = draw(st.sampled_from(known))
        event = sample.event if draw(st.integers(0, 3)) else draw(st.sampled_from(known)).event
        return event, draw(corrupted(mutated(st.just(sample.message)).map(encoded)))

    return one()


def signed(body: bytes) -> str:
    return hmac.new(SECRET.encode(), body, sha256).hexdigest()


@holds_for(sent(from_github))
def github_webhook_gives_valid_notices_or_none(message: Sent) -> None:
    event, body = message
    headers = {"x-github-event": event, "x-hub-signature-256": f"sha256={signed(body)}"}
    check_all(GITHUB.parse_webhook(headers, body))


@holds_for(sent(from_gitlab))
def gitlab_webhook_gives_valid_notices_or_none(message: Sent) -> None:
    check_all(GITLAB.parse_webhook({"x-gitlab-event": message[0], "x-gitlab-token": SECRET}, message[1]))


@holds_for(sent(from_gitea))
def gitea_webhook_gives_valid_notices_or_none(message: Sent) -> None:
    event, body = message
    check_all(GITEA.parse_webhook({"x-gitea-event": event, "x-gitea-signature": signed(body)}, body))


HEADERS = (
    *("x-github-event", "x-hub-signature-256", "x-gitlab-token", "webhook-id", "webhook-timestamp"),
    *("webhook-signature", "x-gitea-event", "x-gitea-signature", "x-forgejo-signature"),
)
given_headers = st.dictionaries(st.sampled_from(HEADERS), words)
secrets = st.sampled_from([SECRET, SIGNING, "whsec_no base64", "whsec_é", "é", "", None])


@holds_for(given_headers, st.binary(max_size=50), secrets, st.sampled_from([GithubHost, GitlabHost, GiteaHost]))
def unsigned_webhook_is_refused(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | None,
    kind: Callable[..., GithubHost | GitlabHost | GiteaHost],
) -> None:
    host = kind(ForgeConfig(name="forge.local", web_url="", api_url="", webhook_secret=secret), WallClock())
    try:
        host.parse_webhook(headers, body)
    except InvalidSignature:
        return
    raise AssertionError("a webhook without a valid signature was accepted")


def check_all(notices: Sequence[ForgeNotice]) -> None:
    for each in notices:
        check(each)


def check(notice: ForgeNotice) -> None:
    """These names become parts of URLs and requests."""
    assert is_valid_name(notice.repo), notice
    match notice:
        case PullRequestNotice():
            assert 1 <= notice.number < 2**31, notice
        case CommitNotice():
            assert len(notice.sha) in (40, 64), notice
            assert set(notice.sha) <= set("0123456789abcdef"), notice
        case BranchNotice():
            pass
        case _:
            assert_never(notice)


def is_valid_name(repo: Repo) -> bool:
    return all(
        part.isascii() and part.isprintable() and len(part) <= 255 for part in (*repo.owner.split("/"), repo.name)
    )
