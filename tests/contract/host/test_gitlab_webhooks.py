"""Parsing and authentication of GitLab's webhooks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.clock import START_TIME, ManualClock
from tests.support.forges.gitlab.fake import NAME, SECRET, FakeGitlab
from tests.support.forges.gitlab.world import Hook
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread

SIGNING = "whsec_" + "c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ=="
APP = Repo(NAME, "acme", "app")
PUSH = json.dumps(
    {"object_kind": "push", "ref": "refs/heads/main", "project": {"path_with_namespace": "Acme/App"}}
).encode()


class WebhookReceiver:
    """Records all requests that it receives."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append((read_headers(scope), await read_body(receive)))
        await respond(send, 200, {})


@pytest.fixture
def receiver(gitlab: GitlabEnvironment) -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    with serve_in_thread(receiver) as url:
        gitlab.project.hooks.append(Hook(id=1, url=f"{url}/hooks/gitlab/{NAME}", secret=SECRET))
        yield receiver


def parsing_host(secret: str | None, at: Instant = START_TIME) -> GitlabHost:
    """A host for parsing only; webhooks need no API calls."""
    nowhere = "http://gitlab.test"
    access = ForgeConfig(name=NAME, web_url=nowhere, api_url=f"{nowhere}/api/v4", webhook_secret=secret)
    return GitlabHost(access, ManualClock(at))


def notices_of(gitlab: FakeGitlab, receiver: WebhookReceiver, secret: str = SECRET) -> list[ForgeNotice]:
    gitlab.deliveries.wait_until_sent()
    now = Instant(int(datetime.now(UTC).timestamp() * 1000))
    return [
        notice
        for headers, body in receiver.requests
        for notice in parsing_host(secret, now).parse_webhook(headers, body)
    ]


def test_every_relevant_webhook_gives_a_notice(gitlab: GitlabEnvironment, receiver: WebhookReceiver):
    head = gitlab.open(1)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "hello", by="ada")
    pushed = gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})
    gitlab.acts.add_job(gitlab.project, gitlab.acts.add_pipeline(gitlab.project, pushed, "main"), "unit", "success")
    assert notices_of(gitlab.gitlab, receiver) == [
        PullRequestNotice(APP, ONE),
        PullRequestNotice(APP, ONE),
        BranchNotice(APP, "main"),
        CommitNotice(APP, pushed),
        CommitNotice(APP, pushed),
    ]
    assert head != pushed


def test_a_signed_webhook_gives_a_notice(gitlab: GitlabEnvironment, receiver: WebhookReceiver):
    gitlab.project.hooks[0].secret = SIGNING
    gitlab.open(1)
    assert notices_of(gitlab.gitlab, receiver, SIGNING) == [PullRequestNotice(APP, ONE)]


def test_a_duplicate_webhook_gives_two_notices_and_a_lost_one_none(
    gitlab: GitlabEnvironment, receiver: WebhookReceiver
):
    gitlab.gitlab.deliveries.send_twice = True
    gitlab.open(1)
    gitlab.gitlab.deliveries.drop_all = True
    gitlab.close(1)
    assert notices_of(gitlab.gitlab, receiver) == [PullRequestNotice(APP, ONE)] * 2


# Authentication


@pytest.mark.parametrize("given", [{}, {"x-gitlab-token": ""}, {"x-gitlab-token": "another"}, {"x-gitlab-token": "ä"}])
def test_a_webhook_without_the_secret_is_refused(given: dict[str, str]):
    with pytest.raises(InvalidSignature):
        parsing_host(SECRET).parse_webhook(given, PUSH)
    with pytest.raises(InvalidSignature):
        parsing_host(SECRET).parse_webhook(given, b"this is no JSON at all")


@pytest.mark.parametrize("secret", [None, ""])
def test_without_a_configured_secret_every_webhook_is_refused(secret: str | None):
    with pytest.raises(InvalidSignature):
        parsing_host(secret).parse_webhook({"x-gitlab-token": ""}, PUSH)


def signed(body: bytes, *, at: Instant = START_TIME, message: str = "m1", secret: str = SIGNING) -> dict[str, str]:
    """Signed by the library that GitLab's documentation uses."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    proof = Webhook(secret).sign(message, moment, body.decode())
    return {"webhook-id": message, "webhook-timestamp": str(at // 1000), "webhook-signature": proof}


def test_a_standard_webhooks_signature_is_accepted():
    assert list(parsing_host(SIGNING).parse_webhook(signed(PUSH), PUSH)) == [BranchNotice(APP, "main")]
    several = {"webhook-signature": "v1,AAAA " + signed(PUSH)["webhook-signature"]}
    assert list(parsing_host(SIGNING).parse_webhook(signed(PUSH) | several, PUSH)) == [BranchNotice(APP, "main")]


INVALID_SIGNATURES = {
    "none": {},
    "another body": signed(PUSH + b" "),
    "another message": signed(PUSH) | {"webhook-id": "m2"},
    "another time": signed(PUSH) | {"webhook-timestamp": str(START_TIME // 1000 + 1)},
    "no time": signed(PUSH) | {"webhook-timestamp": "soon"},
    "another key": signed(PUSH, secret="whsec_YW5vdGhlcg=="),
    "long ago": signed(PUSH, at=Instant(START_TIME - 301_000)),
    "in the future": signed(PUSH, at=Instant(START_TIME + 301_000)),
    "the secret itself": {"x-gitlab-token": SIGNING},
    "nonsense": signed(PUSH) | {"webhook-signature": "v1,ä, ,"},
}


@pytest.mark.parametrize("headers", INVALID_SIGNATURES.values(), ids=INVALID_SIGNATURES.keys())
def test_a_signature_for_other_content_is_refused(headers: dict[str, str]):
    with pytest.raises(InvalidSignature):
        parsing_host(SIGNING).parse_webhook(headers, PUSH)


def test_with_an_invalid_signing_token_every_webhook_is_refused():
    with pytest.raises(InvalidSignature):
        parsing_host("whsec_not base64").parse_webhook(signed(PUSH), PUSH)


# Content


def body(kind: str, **facts: Any) -> bytes:
    return json.dumps({"object_kind": kind, "project": {"path_with_namespace": "acme/app"}} | facts).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"object_kind": "push", "ref": "\xff", "project": {"path_with_namespace": "acme/app"}}',
        b'{"object_kind": ' * 10_000,
        b"[" * 100_000,
        body("tag_push", ref="refs/tags/v1"),
        body("push", ref="refs/tags/v1"),
        body("push"),
        body("issue", object_attributes={"iid": 1}),
        body("merge_request", object_attributes={"iid": "one"}),
        body("note", object_attributes={"noteable_type": "Issue"}, issue={"iid": 1}),
        body("note", object_attributes={"action": "update"}, merge_request={"iid": 1}),
        body("note", object_attributes={"note": "<!-- mergeyard -->\nQueued"}, merge_request={"iid": 1}),
        body("build", sha="1" * 40, project=None),
        body("pipeline", object_attributes=None),
    ],
)
def test_irrelevant_or_malformed_webhooks_give_no_notice(raw: bytes):
    assert list(parsing_host(SECRET).parse_webhook({"x-gitlab-token": SECRET}, raw)) == []


def test_a_project_in_nested_groups_has_its_full_name():
    raw = json.dumps(
        {"object_kind": "build", "sha": "1" * 40, "project": {"path_with_namespace": "Acme/Tools/App"}}
    ).encode()
    nested = Repo(NAME, "acme/tools", "app")
    assert list(parsing_host(SECRET).parse_webhook({"x-gitlab-token": SECRET}, raw)) == [
        CommitNotice(nested, Sha("1" * 40))
    ]
