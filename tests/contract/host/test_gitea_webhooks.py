"""Parsing of webhooks from Gitea and Forgejo."""

import hmac
import json
from hashlib import sha256
from typing import Any

import pytest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice

SECRET = "between-us"
REPO = Repo("gitea.local", "acme", "app")
REPOSITORY: dict[str, Any] = {"owner": {"login": "Acme"}, "name": "App"}
HOST = GiteaHost(ForgeConfig(name="gitea.local", web_url="", api_url="", webhook_secret=SECRET), WallClock())


def signed(body: bytes, event: str, scheme: str = "x-gitea") -> dict[str, str]:
    return {f"{scheme}-event": event, f"{scheme}-signature": hmac.new(SECRET.encode(), body, sha256).hexdigest()}


@pytest.mark.parametrize("event", ["push", "pull_request", "issue_comment", "status", "unheard of"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"repository": 1}', b'{"repository": {}, "ref": 7}'])
def test_malformed_webhooks_give_no_notice(event: str, body: bytes):
    assert HOST.parse_webhook(signed(body, event), body) == ()


@pytest.mark.parametrize(
    ("event", "payload", "notice"),
    [
        ("push", {"ref": "refs/heads/a/b"}, BranchNotice(REPO, "a/b")),
        ("create", {"ref": "new", "ref_type": "branch"}, BranchNotice(REPO, "new")),
        ("delete", {"ref": "gone", "ref_type": "branch"}, BranchNotice(REPO, "gone")),
        ("pull_request", {"pull_request": {"number": 4}}, PullRequestNotice(REPO, PullRequestNumber(4))),
        ("pull_request_approved", {"pull_request": {"number": 4}}, PullRequestNotice(REPO, PullRequestNumber(4))),
        ("issue_comment", {"issue": {"number": 4}, "is_pull": True}, PullRequestNotice(REPO, PullRequestNumber(4))),
        ("status", {"sha": "1" * 40}, CommitNotice(REPO, Sha("1" * 40))),
    ],
)
def test_each_webhook_gives_a_notice_of_its_subject(event: str, payload: dict[str, Any], notice: ForgeNotice):
    body = json.dumps({"repository": REPOSITORY} | payload).encode()
    assert HOST.parse_webhook(signed(body, event), body) == (notice,)


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", {"ref": "refs/tags/v1"}),
        ("delete", {"ref": "v1", "ref_type": "tag"}),
        ("issue_comment", {"issue": {"number": 4, "pull_request": None}, "is_pull": False}),
        ("issue_comment", {"action": "edited", "issue": {"number": 4}, "is_pull": True}),
    ],
)
def test_tags_and_issues_give_no_notice(event: str, payload: dict[str, Any]):
    body = json.dumps({"repository": REPOSITORY} | payload).encode()
    assert HOST.parse_webhook(signed(body, event), body) == ()


def test_the_headers_of_forgejo_are_accepted():
    body = json.dumps({"repository": REPOSITORY, "pull_request": {"number": 4}}).encode()
    headers = signed(body, "pull_request", "x-forgejo")
    hub = {"x-forgejo-event": "pull_request", "x-hub-signature-256": f"sha256={headers['x-forgejo-signature']}"}
    assert (
        HOST.parse_webhook(headers, body)
        == HOST.parse_webhook(hub, body)
        == (PullRequestNotice(REPO, PullRequestNumber(4)),)
    )


@pytest.mark.parametrize("signature", ["", "ä", "sha256=", "0" * 64])
def test_a_webhook_with_an_invalid_signature_is_refused_unread(signature: str):
    with pytest.raises(InvalidSignature):
        HOST.parse_webhook({"x-gitea-event": "push", "x-gitea-signature": signature}, b"no JSON at all")
