"""Parsing of webhooks from GitHub: only signed ones, and only what they are about."""

import hashlib
import hmac
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.ids import Repo, Sha
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import EVENTS, NAME, SECRET, GithubEnvironment
from tests.support.clock import ManualClock
from tests.support.forges.github.world import Hook
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread

REPO = Repo(NAME, "acme", "app")


@contextmanager
def listening(env: GithubEnvironment) -> Generator[list[ForgeNotice]]:
    """Collects the notices of a server to which the repository sends its webhooks."""
    host, parse = env.make_host(), list[ForgeNotice]()

    async def hear(scope: Scope, receive: Receive, send: Send) -> None:
        parse.extend(host.parse_webhook(read_headers(scope), await read_body(receive)))
        await respond(send, 204, {})

    with serve_in_thread(hear) as url:
        env.acme.hooks.append(Hook(url=url, secret=SECRET, events=EVENTS))
        yield parse


def a_host(webhook_secret: str | None = SECRET) -> GithubHost:
    """A host that only parses webhooks needs no API."""
    access = ForgeConfig(name=NAME, web_url="", api_url="", webhook_secret=webhook_secret)
    return GithubHost(access, ManualClock())


@pytest.fixture
def host() -> GithubHost:
    return a_host()


def signed(body: bytes, event: str, secret: str = SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={signature}"}


def parse(host: GithubHost, event: str, message: Any) -> Sequence[ForgeNotice]:
    body = json.dumps(message).encode()
    return host.parse_webhook(signed(body, event), body)


# Notices


def test_every_relevant_webhook_gives_a_notice(github: GithubEnvironment):
    with listening(github) as notices:
        head = github.open(1)
        github.acme.add_label(1, "merge-queue")
        github.acme.add_comment(1, "grace", "/merge")
        github.acme.add_review(1, "grace", "APPROVED")
        github.acme.edit(1, "converted_to_draft", draft=True)
        github.acme.edit(1, "ready_for_review", draft=False)
        github.github.deliveries.wait_until_sent()
        assert set(notices) == {PullRequestNotice(github.repo, ONE)}
        assert len(notices) == 6
        notices.clear()
        github.acme.report_status(head, "unit", "success")
        github.acme.add_check_run(head, "lint", "in_progress")
        github.acme.add_check_run(head, "lint", conclusion="success")
        github.github.deliveries.wait_until_sent()
        assert notices == [CommitNotice(github.repo, head, check) for check in ("unit", "lint", "lint")]
        notices.clear()
        github.land(1)
        github.github.deliveries.wait_until_sent()
        assert notices == [PullRequestNotice(github.repo, ONE), BranchNotice(github.repo, "main")]


def test_branches_with_slashes_and_deleted_branches_give_notices(github: GithubEnvironment):
    with listening(github) as notices:
        github.acme.push_commit("release/1.0", {"b.txt": "1"})
        github.acme.on_push({"refs/heads/release/1.0": (Sha("1" * 40), None)})
        github.acme.on_push({"refs/tags/v1": (None, Sha("1" * 40))})
        github.github.deliveries.wait_until_sent()
        assert notices == [BranchNotice(github.repo, "release/1.0")] * 2


def test_lost_duplicate_or_reordered_webhooks_give_only_notices(github: GithubEnvironment):
    deliveries = github.github.deliveries
    with listening(github) as notices:
        deliveries.drop_all = True
        github.open(1)
        deliveries.drop_all, deliveries.send_twice, deliveries.hold_back = False, True, True
        github.acme.add_label(1, "merge-queue")
        github.acme.push_commit("main", {"b.txt": "1"})
        deliveries.release()
        deliveries.wait_until_sent()
        main, one = BranchNotice(github.repo, "main"), PullRequestNotice(github.repo, ONE)
        assert notices == [main, main, one, one]


# Signatures


BODY = b'{"repository": {"name": "app", "owner": {"login": "acme"}}, "pull_request": {"number": 1}}'
INVALID_SIGNATURES = {
    "no signature": {"x-github-event": "pull_request"},
    "another secret": signed(BODY, "pull_request", "another secret"),
    "another body": signed(BODY + b" ", "pull_request"),
    "the old kind": {"x-github-event": "pull_request", "x-hub-signature": "sha1=00"},
    "no hex": {"x-github-event": "pull_request", "x-hub-signature-256": "sha256=ä"},
    "only the beginning": signed(BODY, "pull_request") | {"x-hub-signature-256": "sha256="},
}


@pytest.mark.parametrize("headers", INVALID_SIGNATURES.values(), ids=INVALID_SIGNATURES.keys())
def test_a_webhook_with_an_invalid_signature_is_refused(host: GithubHost, headers: dict[str, str]):
    assert host.parse_webhook(signed(BODY, "pull_request"), BODY) == (PullRequestNotice(REPO, ONE),)
    with pytest.raises(InvalidSignature):
        host.parse_webhook(headers, BODY)


@pytest.mark.parametrize("secret", [None, ""])
def test_without_a_secret_every_webhook_is_refused(secret: str | None):
    with pytest.raises(InvalidSignature):
        a_host(webhook_secret=secret).parse_webhook(signed(BODY, "pull_request", ""), BODY)


# Content


REPOSITORY = {"repository": {"name": "app", "owner": {"login": "acme"}}}
IRRELEVANT: dict[str, tuple[str, Any]] = {
    "a ping": ("ping", {"zen": "Keep it logically awesome."}),
    "no repository": ("pull_request", {"pull_request": {"number": 1}}),
    "an edited comment": (
        "issue_comment",
        REPOSITORY | {"action": "edited", "issue": {"number": 1, "pull_request": {"url": "-"}}},
    ),
    "a comment of our own": (
        "issue_comment",
        REPOSITORY
        | {"action": "created", "issue": {"number": 1, "pull_request": {}}, "comment": {"body": "<!-- mergeyard -->"}},
    ),
    "a comment on an issue": ("issue_comment", REPOSITORY | {"issue": {"number": 1}}),
    "a tag": ("push", REPOSITORY | {"ref": "refs/tags/v1"}),
    "a star": ("star", REPOSITORY | {"action": "created"}),
    "no number": ("pull_request", REPOSITORY | {"pull_request": {"number": "one"}}),
    "nothing": ("pull_request", REPOSITORY),
    "a list": ("pull_request", []),
}


@pytest.mark.parametrize(("event", "message"), IRRELEVANT.values(), ids=IRRELEVANT.keys())
def test_irrelevant_webhooks_give_no_notice(host: GithubHost, event: str, message: Any):
    assert parse(host, event, message) == ()


@pytest.mark.parametrize("body", [b"", b"payload=%7B%7D", b"\xff", b"[" * 100_000, b'{"repository": 1}'])
def test_malformed_webhooks_give_no_notice(host: GithubHost, body: bytes):
    assert host.parse_webhook(signed(body, "push"), body) == ()


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_a_webhook_with_an_invalid_name_gives_no_notice(host: GithubHost, name: str):
    message = {"repository": {"name": name, "owner": {"login": "acme"}}, "ref": "refs/heads/main"}
    assert parse(host, "push", message) == ()


def test_names_in_webhooks_are_normalized(host: GithubHost):
    message = {"repository": {"name": "App", "owner": {"login": "ACME"}}, "ref": "refs/heads/Main"}
    assert parse(host, "push", message) == (BranchNotice(REPO, "Main"),)


def test_check_suites_give_notices(host: GithubHost):
    message = REPOSITORY | {"check_suite": {"head_sha": "1" * 40}}
    assert parse(host, "check_suite", message) == (CommitNotice(REPO, Sha("1" * 40)),)
