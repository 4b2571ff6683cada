"""What is heard of GitHub: only what is signed, and of that only what it is about."""

import hashlib
import hmac
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews
from tests.contract.host.github_stage import EVENTS, NAME, SECRET, GithubStage
from tests.contract.host.stage import ONE
from tests.support.clock import HandClock
from tests.support.forges.github.facts import Hook
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of, served

REPO = Repo(NAME, "acme", "app")


@contextmanager
def listening(stage: GithubStage) -> Generator[list[News]]:
    """What a server hears to which the repository sends its webhooks."""
    host, heard = stage.made_host(), list[News]()

    async def hear(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend(host.heard(headers_of(scope), await body_of(receive)))
        await answer(send, 204, {})

    with served(hear) as url:
        stage.acme.hooks.append(Hook(address=url, secret=SECRET, events=EVENTS))
        yield heard


def a_host(webhook_secret: str | None = SECRET) -> GithubHost:
    """Who only listens needs nobody to speak to."""
    access = Access(name=NAME, pages="", api="", webhook_secret=webhook_secret)
    return GithubHost(access, HandClock())


@pytest.fixture
def host() -> GithubHost:
    return a_host()


def signed(body: bytes, event: str, secret: str = SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={signature}"}


def heard(host: GithubHost, event: str, message: Any) -> Sequence[News]:
    body = json.dumps(message).encode()
    return host.heard(signed(body, event), body)


# What happens


def test_everything_that_matters_is_heard(github: GithubStage):
    with listening(github) as news:
        head = github.open(1)
        github.acme.labels(1, "merge-queue")
        github.acme.says(1, "grace", "/merge")
        github.acme.reviews(1, "grace", "APPROVED")
        github.acme.edits(1, "converted_to_draft", draft=True)
        github.acme.edits(1, "ready_for_review", draft=False)
        github.github.deliveries.settle()
        assert set(news) == {PullNews(github.repo, ONE)}
        assert len(news) == 6
        news.clear()
        github.acme.reports(head, "unit", "success")
        github.acme.runs(head, "lint", "in_progress")
        github.acme.runs(head, "lint", conclusion="success")
        github.github.deliveries.settle()
        assert news == [CommitNews(github.repo, head)] * 3
        news.clear()
        github.land(1)
        github.github.deliveries.settle()
        assert news == [PullNews(github.repo, ONE), BranchNews(github.repo, "main")]


def test_a_branch_with_slashes_and_one_that_is_deleted_are_heard_of(github: GithubStage):
    with listening(github) as news:
        github.acme.commits("release/1.0", {"b.txt": "1"})
        github.acme.after_push({"refs/heads/release/1.0": (Sha("1" * 40), None)})
        github.acme.after_push({"refs/tags/v1": (None, Sha("1" * 40))})
        github.github.deliveries.settle()
        assert news == [BranchNews(github.repo, "release/1.0")] * 2


def test_messages_that_are_lost_doubled_or_in_another_order_are_only_news(github: GithubStage):
    deliveries = github.github.deliveries
    with listening(github) as news:
        deliveries.losing = True
        github.open(1)
        deliveries.losing, deliveries.doubling, deliveries.holding = False, True, True
        github.acme.labels(1, "merge-queue")
        github.acme.commits("main", {"b.txt": "1"})
        deliveries.release()
        deliveries.settle()
        main, one = BranchNews(github.repo, "main"), PullNews(github.repo, ONE)
        assert news == [main, main, one, one]


# Who sent it


BODY = b'{"repository": {"name": "app", "owner": {"login": "acme"}}, "pull_request": {"number": 1}}'
FORGED = {
    "no signature": {"x-github-event": "pull_request"},
    "another secret": signed(BODY, "pull_request", "another secret"),
    "another body": signed(BODY + b" ", "pull_request"),
    "the old kind": {"x-github-event": "pull_request", "x-hub-signature": "sha1=00"},
    "no hex": {"x-github-event": "pull_request", "x-hub-signature-256": "sha256=ä"},
    "only the beginning": signed(BODY, "pull_request") | {"x-hub-signature-256": "sha256="},
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED.keys())
def test_a_message_that_is_not_signed_as_it_should_be_is_forged(host: GithubHost, headers: dict[str, str]):
    assert host.heard(signed(BODY, "pull_request"), BODY) == (PullNews(REPO, ONE),)
    with pytest.raises(Forged):
        host.heard(headers, BODY)


@pytest.mark.parametrize("secret", [None, ""])
def test_without_a_secret_everything_is_forged(secret: str | None):
    with pytest.raises(Forged):
        a_host(webhook_secret=secret).heard(signed(BODY, "pull_request", ""), BODY)


# What it says


PLACE = {"repository": {"name": "app", "owner": {"login": "acme"}}}
NOT_FOR_US: dict[str, tuple[str, Any]] = {
    "a ping": ("ping", {"zen": "Keep it logically awesome."}),
    "no repository": ("pull_request", {"pull_request": {"number": 1}}),
    "a comment on an issue": ("issue_comment", PLACE | {"issue": {"number": 1}}),
    "a tag": ("push", PLACE | {"ref": "refs/tags/v1"}),
    "a star": ("star", PLACE | {"action": "created"}),
    "no number": ("pull_request", PLACE | {"pull_request": {"number": "one"}}),
    "nothing": ("pull_request", PLACE),
    "a list": ("pull_request", []),
}


@pytest.mark.parametrize(("event", "message"), NOT_FOR_US.values(), ids=NOT_FOR_US.keys())
def test_of_what_has_nothing_to_do_with_us_there_is_no_news(host: GithubHost, event: str, message: Any):
    assert heard(host, event, message) == ()


@pytest.mark.parametrize("body", [b"", b"payload=%7B%7D", b"\xff", b"[" * 100_000, b'{"repository": 1}'])
def test_of_what_makes_no_sense_there_is_no_news(host: GithubHost, body: bytes):
    assert host.heard(signed(body, "push"), body) == ()


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_of_a_name_that_is_none_there_is_no_news(host: GithubHost, name: str):
    message = {"repository": {"name": name, "owner": {"login": "acme"}}, "ref": "refs/heads/main"}
    assert heard(host, "push", message) == ()


def test_names_are_heard_in_their_one_spelling(host: GithubHost):
    message = {"repository": {"name": "App", "owner": {"login": "ACME"}}, "ref": "refs/heads/Main"}
    assert heard(host, "push", message) == (BranchNews(REPO, "Main"),)


def test_suites_of_checks_are_heard_of(host: GithubHost):
    message = PLACE | {"check_suite": {"head_sha": "1" * 40}}
    assert heard(host, "check_suite", message) == (CommitNews(REPO, Sha("1" * 40)),)
