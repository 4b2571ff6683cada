"""Webhooks of Gitea and Forgejo, word by word."""

import hmac
import json
from hashlib import sha256
from typing import Any

import pytest

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews

SECRET = "between-us"
REPO = Repo("gitea.local", "acme", "app")
PLACE: dict[str, Any] = {"owner": {"login": "Acme"}, "name": "App"}
HOST = GiteaHost(Access(name="gitea.local", pages="", api="", webhook_secret=SECRET), WallClock())


def signed(body: bytes, event: str, scheme: str = "x-gitea") -> dict[str, str]:
    return {f"{scheme}-event": event, f"{scheme}-signature": hmac.new(SECRET.encode(), body, sha256).hexdigest()}


@pytest.mark.parametrize("event", ["push", "pull_request", "issue_comment", "status", "unheard of"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"repository": 1}', b'{"repository": {}, "ref": 7}'])
def test_of_what_makes_no_sense_there_is_no_news(event: str, body: bytes):
    assert HOST.heard(signed(body, event), body) == ()


@pytest.mark.parametrize(
    ("event", "told", "news"),
    [
        ("push", {"ref": "refs/heads/a/b"}, BranchNews(REPO, "a/b")),
        ("create", {"ref": "new", "ref_type": "branch"}, BranchNews(REPO, "new")),
        ("delete", {"ref": "gone", "ref_type": "branch"}, BranchNews(REPO, "gone")),
        ("pull_request", {"pull_request": {"number": 4}}, PullNews(REPO, PrNumber(4))),
        ("pull_request_approved", {"pull_request": {"number": 4}}, PullNews(REPO, PrNumber(4))),
        ("issue_comment", {"issue": {"number": 4}, "is_pull": True}, PullNews(REPO, PrNumber(4))),
        ("status", {"sha": "1" * 40}, CommitNews(REPO, Sha("1" * 40))),
    ],
)
def test_each_message_is_news_of_what_it_is_about(event: str, told: dict[str, Any], news: News):
    body = json.dumps({"repository": PLACE} | told).encode()
    assert HOST.heard(signed(body, event), body) == (news,)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("push", {"ref": "refs/tags/v1"}),
        ("delete", {"ref": "v1", "ref_type": "tag"}),
        ("issue_comment", {"issue": {"number": 4, "pull_request": None}, "is_pull": False}),
    ],
)
def test_tags_and_issues_are_no_news(event: str, told: dict[str, Any]):
    body = json.dumps({"repository": PLACE} | told).encode()
    assert HOST.heard(signed(body, event), body) == ()


def test_a_forgejo_is_heard_by_its_own_headers():
    body = json.dumps({"repository": PLACE, "pull_request": {"number": 4}}).encode()
    headers = signed(body, "pull_request", "x-forgejo")
    hub = {"x-forgejo-event": "pull_request", "x-hub-signature-256": f"sha256={headers['x-forgejo-signature']}"}
    assert HOST.heard(headers, body) == HOST.heard(hub, body) == (PullNews(REPO, PrNumber(4)),)


@pytest.mark.parametrize("signature", ["", "ä", "sha256=", "0" * 64])
def test_what_is_not_signed_as_it_should_be_is_not_even_read(signature: str):
    with pytest.raises(Forged):
        HOST.heard({"x-gitea-event": "push", "x-gitea-signature": signature}, b"no JSON at all")
