"""What is heard of GitLab's webhooks, and from whom."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import BranchNews, CommitNews, Forged, News, PullNews
from tests.contract.host.gitlab_stage import GitlabStage
from tests.contract.host.stage import ONE
from tests.support.clock import START, HandClock
from tests.support.forges.gitlab.fake import NAME, SECRET, FakeGitlab
from tests.support.forges.gitlab.nouns import Hook
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of, served

SIGNING = "whsec_" + "c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ=="
APP = Repo(NAME, "acme", "app")
PUSH = json.dumps(
    {"object_kind": "push", "ref": "refs/heads/main", "project": {"path_with_namespace": "Acme/App"}}
).encode()


class Ear:
    """Hears whatever is sent to it."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.heard.append((headers_of(scope), await body_of(receive)))
        await answer(send, 200, {})


@pytest.fixture
def ear(gitlab: GitlabStage) -> Iterator[Ear]:
    ear = Ear()
    with served(ear) as url:
        gitlab.project.hooks.append(Hook(id=1, url=f"{url}/hooks/gitlab/{NAME}", secret=SECRET))
        yield ear


def listening(secret: str | None, at: Instant = START) -> GitlabHost:
    """To nobody in particular: what is heard needs no calls."""
    nowhere = "http://gitlab.test"
    access = Access(name=NAME, pages=nowhere, api=f"{nowhere}/api/v4", webhook_secret=secret)
    return GitlabHost(access, HandClock(at))


def news_of(gitlab: FakeGitlab, ear: Ear, secret: str = SECRET) -> list[News]:
    gitlab.deliveries.settle()
    now = Instant(int(datetime.now(UTC).timestamp() * 1000))
    return [news for headers, body in ear.heard for news in listening(secret, now).heard(headers, body)]


def test_everything_that_matters_is_heard(gitlab: GitlabStage, ear: Ear):
    head = gitlab.open(1)
    gitlab.acts.say(gitlab.project, gitlab.request(), "hello", by="ada")
    pushed = gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})
    gitlab.acts.job(gitlab.project, gitlab.acts.pipeline(gitlab.project, pushed, "main"), "unit", "success")
    assert news_of(gitlab.gitlab, ear) == [
        PullNews(APP, ONE),
        PullNews(APP, ONE),
        BranchNews(APP, "main"),
        CommitNews(APP, pushed),
        CommitNews(APP, pushed),
    ]
    assert head != pushed


def test_what_is_signed_is_heard_as_well(gitlab: GitlabStage, ear: Ear):
    gitlab.project.hooks[0].secret = SIGNING
    gitlab.open(1)
    assert news_of(gitlab.gitlab, ear, SIGNING) == [PullNews(APP, ONE)]


def test_what_comes_twice_is_heard_twice_and_what_is_lost_not_at_all(gitlab: GitlabStage, ear: Ear):
    gitlab.gitlab.deliveries.doubling = True
    gitlab.open(1)
    gitlab.gitlab.deliveries.losing = True
    gitlab.close(1)
    assert news_of(gitlab.gitlab, ear) == [PullNews(APP, ONE)] * 2


# Who says so


@pytest.mark.parametrize("given", [{}, {"x-gitlab-token": ""}, {"x-gitlab-token": "another"}, {"x-gitlab-token": "ä"}])
def test_without_the_secret_nothing_is_read(given: dict[str, str]):
    with pytest.raises(Forged):
        listening(SECRET).heard(given, PUSH)
    with pytest.raises(Forged):
        listening(SECRET).heard(given, b"this is no JSON at all")


@pytest.mark.parametrize("secret", [None, ""])
def test_where_no_secret_is_configured_nobody_is_believed(secret: str | None):
    with pytest.raises(Forged):
        listening(secret).heard({"x-gitlab-token": ""}, PUSH)


def signed(body: bytes, *, at: Instant = START, message: str = "m1", secret: str = SIGNING) -> dict[str, str]:
    """By the library that GitLab's own documents use."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    proof = Webhook(secret).sign(message, moment, body.decode())
    return {"webhook-id": message, "webhook-timestamp": str(at // 1000), "webhook-signature": proof}


def test_a_signature_of_the_standard_is_understood():
    assert list(listening(SIGNING).heard(signed(PUSH), PUSH)) == [BranchNews(APP, "main")]
    several = {"webhook-signature": "v1,AAAA " + signed(PUSH)["webhook-signature"]}
    assert list(listening(SIGNING).heard(signed(PUSH) | several, PUSH)) == [BranchNews(APP, "main")]


FORGERIES = {
    "none": {},
    "another body": signed(PUSH + b" "),
    "another message": signed(PUSH) | {"webhook-id": "m2"},
    "another time": signed(PUSH) | {"webhook-timestamp": str(START // 1000 + 1)},
    "no time": signed(PUSH) | {"webhook-timestamp": "soon"},
    "another key": signed(PUSH, secret="whsec_YW5vdGhlcg=="),
    "long ago": signed(PUSH, at=Instant(START - 301_000)),
    "in the future": signed(PUSH, at=Instant(START + 301_000)),
    "the secret itself": {"x-gitlab-token": SIGNING},
    "nonsense": signed(PUSH) | {"webhook-signature": "v1,ä, ,"},
}


@pytest.mark.parametrize("headers", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_signature_for_something_else_is_none(headers: dict[str, str]):
    with pytest.raises(Forged):
        listening(SIGNING).heard(headers, PUSH)


def test_a_signing_token_that_is_none_lets_nobody_in():
    with pytest.raises(Forged):
        listening("whsec_not base64").heard(signed(PUSH), PUSH)


# What it is about


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
        body("build", sha="1" * 40, project=None),
        body("pipeline", object_attributes=None),
    ],
)
def test_of_what_is_not_for_us_or_makes_no_sense_there_is_no_news(raw: bytes):
    assert list(listening(SECRET).heard({"x-gitlab-token": SECRET}, raw)) == []


def test_a_project_in_nested_groups_is_named_whole():
    raw = json.dumps(
        {"object_kind": "build", "sha": "1" * 40, "project": {"path_with_namespace": "Acme/Tools/App"}}
    ).encode()
    nested = Repo(NAME, "acme/tools", "app")
    assert list(listening(SECRET).heard({"x-gitlab-token": SECRET}, raw)) == [CommitNews(nested, Sha("1" * 40))]
