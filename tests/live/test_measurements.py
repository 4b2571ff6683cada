"""What the kit measures at GitHub, and the webhooks that it records."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from graphql import parse, validate
from msgspec import Struct

from tests.contract.host.test_github_schema import read_published
from tests.live.client import Budget
from tests.live.fakes.github import AdministeredGithub, fake_github
from tests.live.github import DECISION_QUERY, RESOLVE_MUTATION, THREADS_QUERY, LiveGithub
from tests.live.measurements import GITHUB_STEPS, read_conditionally
from tests.live.scratch import prepare_repository
from tests.live.stage import LOCAL, Stage, run_step
from tests.live.webhooks import WebhookRecorder
from tests.support.forges.faults import ALWAYS
from tests.support.forges.github.world import PullRequest
from tests.support.http_server import App, Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread

RUN = "0a1b2c3d"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[tuple[LiveGithub, AdministeredGithub]]:
    """A repository with a pull request, number 1, at a fake."""
    (tmp_path / "kit").mkdir()
    made = list[AdministeredGithub]()
    with fake_github(tmp_path / "fake", change=made.append) as access:
        host = LiveGithub(access, "scratch", tmp_path / "kit", Budget(100, 60, 0))
        prepare_repository(host, RUN)
        host.commit("kit-tags", {"tags.txt": "1"}, base="start")
        host.open("kit-tags", "A change").must_succeed()
        yield host, made[0]
        host.close()


def find_change(fake: AdministeredGithub) -> PullRequest:
    (repository,) = fake.repositories.values()
    return repository.pull_requests[1]


@pytest.mark.parametrize("reads", [1, 2])
def test_304_is_honest_while_the_mergeability_is_determined(reads: int, github: tuple[LiveGithub, AdministeredGithub]):
    """It is pending for this many more reads, at first and again after a change."""
    host, fake = github
    determine_again = partial(setattr, find_change(fake), "being_checked", reads)
    determine_again()
    statuses, stale = read_conditionally(host, 1, [lambda: None, determine_again], 0)
    assert {*statuses} == {200, 304}
    assert stale == 0


class Forgetful(Struct, frozen=True):
    """Answers every conditional request with 304."""

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        if "if-none-match" in read_headers(scope):
            return await respond(send, 304, {})
        return await app(scope, receive, send)


def test_304_for_a_changed_pull_request_is_found(github: tuple[LiveGithub, AdministeredGithub]):
    host, fake = github
    fake.faults.plan(Forgetful(), "/pulls/1$", times=ALWAYS)
    change = partial(setattr, find_change(fake), "draft", True)
    assert read_conditionally(host, 1, [lambda: None, change], 0) == ([304] * 6, 1)


@pytest.mark.parametrize("name", ["accounts", "workflow", "creator", "app-token"])
def test_without_an_app_nothing_else_is_measured_instead(name: str, github: tuple[LiveGithub, AdministeredGithub]):
    host, _ = github
    result = run_step(Stage(host, cast(Any, None), LOCAL, RUN), *GITHUB_STEPS[name])
    assert (result.not_measured, result.failed) == ("needs an App: give --app-id and --app-key-file", "")
    assert result.observations == []


@pytest.mark.long
@pytest.mark.xdist_group("GitHub's GraphQL schema")
@pytest.mark.parametrize("query", [DECISION_QUERY, THREADS_QUERY, RESOLVE_MUTATION])
def test_queries_of_the_kit_are_valid_for_the_published_schema(query: str):
    published = read_published()
    if published is None:
        pytest.skip("NOT TESTED against GitHub's GraphQL schema: `make setup-schema` gets it")
    assert validate(published, parse(query)) == []


@pytest.mark.parametrize(
    ("headers", "body", "webhook"),
    [
        ({"x-github-event": "push"}, {"ref": "refs/heads/main"}, ("push", "refs/heads/main", None)),
        ({"x-github-event": "pull_request"}, {"action": "closed", "number": 7}, ("pull_request closed", "", 7)),
        (
            {"x-gitlab-event": "Merge Request Hook"},
            {"object_kind": "merge_request", "object_attributes": {"action": "merge", "state": "merged", "iid": 7}},
            ("merge_request merged", "", 7),
        ),
    ],
)
def test_webhooks_are_recorded_and_passed_on(headers: dict[str, str], body: dict[str, Any], webhook: tuple[Any, ...]):
    passed_on = list[tuple[str, dict[str, str], bytes]]()

    async def receive_webhook(scope: Scope, receive: Receive, send: Send) -> None:
        passed_on.append((scope["path"], read_headers(scope), await read_body(receive)))
        await respond(send, 202, {}, b"ok")

    with serve_in_thread(receive_webhook) as url:
        recorder, content = WebhookRecorder(0, lambda: url), json.dumps(body).encode()
        answer = httpx2.post(f"{recorder.url}/hooks/it", content=content, headers=headers, trust_env=False)
        assert (answer.status_code, answer.text) == (202, "ok")
        ((path, received, forwarded),) = passed_on
        assert (path, forwarded) == ("/hooks/it", content)
        assert headers.items() <= received.items()
        name, ref, number = webhook
        assert recorder.find(0, name, ref=ref, number=number) == recorder.received[0]
        assert recorder.find(time.monotonic(), name, ref=ref, number=number) is None
        recorder.close()


def test_webhooks_are_recorded_while_mergeyard_does_not_answer():
    recorder = WebhookRecorder(0, lambda: "http://127.0.0.1:9")
    answer = httpx2.post(recorder.url, content=b"{}", headers={"x-github-event": "ping"}, trust_env=False)
    assert (answer.status_code, len(recorder.received)) == (503, 1)
    recorder.close()
