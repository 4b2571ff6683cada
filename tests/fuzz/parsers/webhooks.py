"""What forges send, however bent: news of what could be a pull request, a branch or a commit, or no news at all."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import assert_never

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews
from tests.fuzz.bending import bent, torn, words, written
from tests.fuzz.laws import holds_for
from tests.fuzz.letters import Letter, from_gitea, from_github, from_gitlab

SECRET = "between us"
SIGNING = "whsec_c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ=="
ACCESS = Access(name="forge.local", pages="", api="", webhook_secret=SECRET)
GITHUB = GithubHost(ACCESS, WallClock())
GITLAB = GitlabHost(ACCESS, WallClock())
GITEA = GiteaHost(ACCESS, WallClock())

Sent = tuple[str, bytes]
"""The event in the header, and the body."""


def sent(letters: Callable[[], Sequence[Letter]]) -> SearchStrategy[Sent]:
    """Some under the name of another event."""

    @st.composite
    def one(draw: DrawFn) -> Sent:
        known = letters()
        letter = draw(st.sampled_from(known))
        event = letter.event if draw(st.integers(0, 3)) else draw(st.sampled_from(known)).event
        return event, draw(torn(bent(st.just(letter.message)).map(written)))

    return one()


def signed(body: bytes) -> str:
    return hmac.new(SECRET.encode(), body, sha256).hexdigest()


@holds_for(sent(from_github))
def a_webhook_of_github_is_news_or_nothing(message: Sent) -> None:
    event, body = message
    headers = {"x-github-event": event, "x-hub-signature-256": f"sha256={signed(body)}"}
    check_all(GITHUB.heard(headers, body))


@holds_for(sent(from_gitlab))
def a_webhook_of_gitlab_is_news_or_nothing(message: Sent) -> None:
    check_all(GITLAB.heard({"x-gitlab-event": message[0], "x-gitlab-token": SECRET}, message[1]))


@holds_for(sent(from_gitea))
def a_webhook_of_gitea_is_news_or_nothing(message: Sent) -> None:
    event, body = message
    check_all(GITEA.heard({"x-gitea-event": event, "x-gitea-signature": signed(body)}, body))


HEADERS = (
    *("x-github-event", "x-hub-signature-256", "x-gitlab-token", "webhook-id", "webhook-timestamp"),
    *("webhook-signature", "x-gitea-event", "x-gitea-signature", "x-forgejo-signature"),
)
given_headers = st.dictionaries(st.sampled_from(HEADERS), words)
secrets = st.sampled_from([SECRET, SIGNING, "whsec_no base64", "whsec_é", "é", "", None])


@holds_for(given_headers, st.binary(max_size=50), secrets, st.sampled_from([GithubHost, GitlabHost, GiteaHost]))
def what_is_not_signed_is_forged(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | None,
    kind: Callable[..., GithubHost | GitlabHost | GiteaHost],
) -> None:
    host = kind(Access(name="forge.local", pages="", api="", webhook_secret=secret), WallClock())
    try:
        host.heard(headers, body)
    except Forged:
        return
    raise AssertionError("it was believed")


def check_all(news: Sequence[News]) -> None:
    for each in news:
        check(each)


def check(news: News) -> None:
    """Whoever looks into it puts these names into addresses and questions."""
    assert could_be_a_name(news.repo), news
    match news:
        case PullNews():
            assert 1 <= news.number < 2**31, news
        case CommitNews():
            assert len(news.sha) in (40, 64), news
            assert set(news.sha) <= set("0123456789abcdef"), news
        case BranchNews():
            pass
        case _:
            assert_never(news)


def could_be_a_name(repo: Repo) -> bool:
    return all(
        part.isascii() and part.isprintable() and len(part) <= 255 for part in (*repo.owner.split("/"), repo.name)
    )
