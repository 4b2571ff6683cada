"""Every request is checked in the promised order, and every refusal has the one shape."""

import asyncio
from typing import Any

import httpx
import pytest
from msgspec import json
from structlog.testing import capture_logs

from mergeyard.api.errors import KINDS
from mergeyard.api.examples import EXAMPLES
from mergeyard.api.routes import TABLE
from mergeyard.domain.tokens import Scope
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused
from tests.support.asynchronous import asynchronous
from tests.support.door import PR, QUEUE, SECRET, Yard, a_client, ask, get

ALL_NESTED = b'{"a":' * 33 + b"1" + b"}" * 33


def problem(response: httpx.Response) -> dict[str, Any]:
    """Checks the one shape of an error, and gives it."""
    body = response.json()
    assert set(body) == {"type", "title", "status", "code", "detail", "requestId", "retryable", "errors"}
    kind = KINDS[Code(body["code"])]
    assert (response.status_code, body["status"], body["title"]) == (kind.status, kind.status, kind.title)
    assert body["requestId"] == response.headers["x-request-id"]
    assert body["type"] == "about:blank"
    assert body["detail"]
    return body


def code(response: httpx.Response) -> str:
    return problem(response)["code"]


def test_every_code_has_its_kind():
    assert set(KINDS) == set(Code)


# The table of bad inputs

BAD_BODIES = [
    (b"", "invalid_json"),
    (b"{}{}", "invalid_json"),
    (b'{"a":NaN}', "invalid_json"),
    (b'{"a":Infinity}', "invalid_json"),
    (b'{"a":"\xff"}', "invalid_json"),
    (b"\xef\xbb\xbf{}", "invalid_json"),
    ("{}".encode("utf-16"), "invalid_json"),
    (b'{"a":' + b"9" * 4000 + b"}", "invalid_json"),
    (b'{"a":1,"a":2}', "duplicate_key"),
    (ALL_NESTED, "json_too_deep"),
    (b'{"a":[' + b",".join([b"{}"] * 10_000) + b"]}", "json_too_complex"),
    (b'{"a":"\\ud800"}', "invalid_string"),
    (b'{"a":"\\u0000"}', "invalid_string"),
    (b"[]", "invalid_request"),
    (b"{}", "invalid_request"),
    (json.encode(QUEUE | {"pr": {"number": None}}), "invalid_request"),
    (json.encode(QUEUE | {"pr": {"number": 2**31}}), "invalid_request"),
    (json.encode(PR | {"repo": {"host": "h", "owner": "..", "name": "n"}}), "invalid_repo"),
    (json.encode(PR | {"targetBranch": "a..b"}), "invalid_branch"),
]


@pytest.mark.parametrize(("body", "expected"), BAD_BODIES)
def test_a_bad_body_is_refused_with_its_code_and_changes_nothing(body: bytes, expected: str):
    yard = Yard()
    assert code(ask("submitPullRequest", body, yard=yard)) == expected
    assert yard.calls == []


def test_a_mistyped_setting_is_never_dropped_in_silence():
    response = ask("updateQueue", QUEUE | {"concurency": 5})
    assert code(response) == "unknown_field"
    assert problem(response)["errors"] == [{"pointer": "/concurency", "message": "is not known here"}]


# Addresses


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/nothing", "/v1/getQueue/", "/nowhere", "/V1/getQueue", "/v1/%00"])
def test_an_unknown_address_is_not_found_also_without_a_token(path: str):
    assert code(get(path, headers={"accept": "*/*"})) == "not_found"


@asynchronous
async def test_another_method_is_refused_and_the_right_one_named():
    async with a_client(Yard()) as client:
        for method in ("GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "TRACE"):
            response = await client.request(method, "/v1/getQueue")
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
        response = await client.post("/v1/getMergeQueueMetrics")
        assert (code(response), response.headers["allow"]) == ("method_not_allowed", "GET")


def test_an_address_that_is_too_long_is_refused():
    assert code(get("/v1/getMergeQueueMetrics?repo=" + "a" * 8192)) == "uri_too_long"
    assert code(get("/" + "a" * 8192)) == "uri_too_long"


def test_headers_that_are_too_large_are_refused():
    assert code(get("/healthz", headers={"x-much": "a" * 65536})) == "headers_too_large"


# Tokens


@pytest.mark.parametrize(
    ("token", "expected"), [("", "missing_token"), (" ", "missing_token"), ("my_other", "invalid_token")]
)
def test_a_token_is_needed_before_anything_else_is_looked_at(token: str, expected: str):
    headers = {"x-api-token": token, "content-type": "text/plain"}
    response = ask("submitPullRequest", b"no json", headers=headers)
    assert code(response) == expected
    assert "x-api-token" in response.headers["www-authenticate"]


@asynchronous
async def test_without_a_token_the_body_is_not_read():
    received: list[str] = []
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        received.append("asked for the body")
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            received.append("answered")
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/submitPullRequest",
        "query_string": b"",
        "headers": [(b"content-length", b"1000000")],
    }
    await Yard().application()(scope, receive, send)
    assert sent[0]["status"] == 401
    assert received[0] == "answered"


@asynchronous
async def test_two_tokens_are_none():
    headers = [("x-api-token", SECRET), ("x-api-token", SECRET), ("content-type", "application/json")]
    async with a_client(Yard()) as client:
        assert code(await client.post("/v1/getQueue", json=QUEUE, headers=headers)) == "invalid_token"


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("getQueue", Scope.READ),
        ("submitPullRequest", Scope.SUBMIT),
        ("createQueue", Scope.ADMIN),
        ("reportCommitStatus", Scope.STATUS),
    ],
)
def test_a_scope_is_asked_for_after_the_schema(path: str, scope: Scope):
    others = [other for other in Scope if other not in (scope, Scope.ADMIN)]
    good = {"sha": "0" * 40, "context": "unit", "state": "success", "repo": QUEUE["repo"]}
    body = {"createQueue": QUEUE, "reportCommitStatus": good}.get(path, PR)
    assert code(ask(path, {}, yard=Yard(*others))) == "invalid_request"
    assert code(ask(path, body, yard=Yard(*others))) == "insufficient_scope"
    assert ask(path, body, yard=Yard(Scope.ADMIN)).status_code == 200


# Media types


@pytest.mark.parametrize(
    "media", ["text/plain", "", "application/jsonx", "application/problem+json", "multipart/form-data"]
)
def test_only_json_is_taken(media: str):
    assert code(ask("getQueue", b"no json", headers={"content-type": media})) == "unsupported_media_type"


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"])
def test_json_may_have_parameters(media: str):
    assert ask("getQueue", QUEUE, headers={"content-type": media}).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity", ""])
def test_any_encoding_is_refused(encoding: str):
    assert code(ask("getQueue", QUEUE, headers={"content-encoding": encoding})) == "unsupported_media_type"


# Answers


@pytest.mark.parametrize("path", [path for path, row in TABLE.items() if row.get("method") != "GET"])
def test_every_endpoint_answers_its_example(path: str):
    yard = Yard()
    response = ask(path, EXAMPLES[path].request, yard=yard)
    assert (response.status_code, response.json()) == (200, {"answer": 1})
    assert response.headers["content-type"] == "application/json"
    assert isinstance(yard.calls[0].request, TABLE[path]["request"])


def test_an_error_is_a_problem_for_who_asks_for_one():
    accept = {"accept": "application/problem+json, application/json", "x-api-token": ""}
    assert ask("getQueue", headers=accept).headers["content-type"] == "application/problem+json"
    assert ask("getQueue", headers={"x-api-token": ""}).headers["content-type"] == "application/json"


@pytest.mark.parametrize("given", ["abc-1", "a b", "~" * 128])
def test_a_clients_own_request_id_is_kept(given: str):
    assert ask("getQueue", QUEUE, headers={"x-request-id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 129, "a\tb"])
def test_another_request_id_is_replaced(given: str):
    shown = ask("getQueue", QUEUE, headers={"x-request-id": given}).headers["x-request-id"]
    assert shown not in (given, "")


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (Refused(Code.QUEUE_NOT_FOUND, "There is no such queue."), "queue_not_found"),
        (StoreTrouble("disk full"), "storage_unavailable"),
        (HostTrouble("down"), "provider_unavailable"),
        (GitTrouble("down"), "provider_unavailable"),
        (ZeroDivisionError("secret words"), "internal_error"),
        (TimeoutError("secret words"), "internal_error"),
    ],
)
def test_trouble_behind_the_door_is_told_in_the_one_shape(trouble: Exception, expected: str):
    with capture_logs():
        response = ask("getQueue", QUEUE, yard=Yard(trouble=trouble))
    assert code(response) == expected
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) == (response.status_code == 503)


def test_unexpected_trouble_is_logged_with_the_request_id_and_without_the_token():
    with capture_logs() as logs:
        response = ask("getQueue", QUEUE, yard=Yard(trouble=ZeroDivisionError()))
    assert logs[0]["request_id"] == response.headers["x-request-id"]
    assert SECRET not in str(logs)


def test_a_refusal_may_say_when_to_ask_again():
    slow = Yard(trouble=Refused(Code.RATE_LIMITED, "Wait a while.", retry_after=17))
    response = ask("getQueue", QUEUE, yard=slow)
    assert (code(response), response.headers["retry-after"]) == ("rate_limited", "17")


# Repeating


def test_the_same_request_under_the_same_key_is_answered_from_the_book():
    yard, key = Yard(), {"idempotency-key": "k 1"}
    first = ask("submitPullRequest", b'{"pr":{"number":1},' + json.encode(QUEUE)[1:], yard=yard, headers=key)
    again = ask("submitPullRequest", json.encode(QUEUE)[:-1] + b', "pr" : {"number":1}}', yard=yard, headers=key)
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(yard.calls) == 1


@pytest.mark.parametrize(("path", "number"), [("submitPullRequest", 2), ("cancelPullRequest", 1)])
def test_another_request_under_the_same_key_is_refused(path: str, number: int):
    yard, key = Yard(), {"idempotency-key": "k"}
    ask("submitPullRequest", QUEUE | {"pr": {"number": 1}}, yard=yard, headers=key)
    assert code(ask(path, QUEUE | {"pr": {"number": number}}, yard=yard, headers=key)) == "idempotency_key_reused"


def test_a_key_means_nothing_to_a_reading():
    yard, key = Yard(), {"idempotency-key": "k"}
    ask("getQueue", QUEUE, yard=yard, headers=key)
    ask("getQueue", QUEUE, yard=yard, headers=key)
    assert [call.repeat for call in yard.calls] == [None, None]


@pytest.mark.parametrize("key", ["", "a" * 256, "a\tb", "é"])
def test_a_key_is_printable_and_not_too_long(key: str):
    async def asked() -> httpx.Response:
        headers = {b"x-api-token": SECRET.encode(), b"idempotency-key": key.encode("latin-1")}
        async with a_client(Yard()) as client:
            return await client.post("/v1/submitPullRequest", json=PR, headers=headers)

    assert code(asyncio.run(asked())) == "invalid_request"


# Metrics by query


def test_metrics_are_asked_by_query_and_answered_as_text():
    yard = Yard()
    response = get("/v1/getMergeQueueMetrics?repo=acme/app&repoHost=Git.Local&other=1", yard=yard)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert str(yard.calls[0].request.only) == "git.local/acme/app"
    get("/v1/getMergeQueueMetrics", yard=yard)
    assert yard.calls[1].request.only is None


def test_metrics_can_be_asked_of_a_repository_in_groups_within_groups():
    yard = Yard()
    get("/v1/getMergeQueueMetrics?repo=acme/tools/app&repoHost=gitlab.com", yard=yard)
    assert str(yard.calls[0].request.only) == "gitlab.com/acme/tools/app"


@pytest.mark.parametrize(
    "query",
    [
        "repo=acme/app",
        "repoHost=h",
        "repo=acme&repoHost=h",
        "repo=acme//app&repoHost=h",
        "repo=acme/../app&repoHost=h",
        "repo=acme/.x/app&repoHost=h",
        "repo=/app&repoHost=h",
        "repo=&repoHost=h",
        "repo=acme/app&repoHost=",
        "repo=acme/app&repo=acme/app&repoHost=h",
        "repo=acme/app&repoHost=h&repoHost=h",
        "repo=%FF&repoHost=h",
    ],
)
def test_a_query_that_names_no_one_repository_is_refused(query: str):
    assert code(get(f"/v1/getMergeQueueMetrics?{query}")) == "invalid_request"


# The process's own routes


def test_the_process_tells_that_it_is_up_and_ready_without_a_token():
    yard = Yard()
    assert get("/healthz", headers={"accept": "*/*"}).json() == {"status": "ok"}
    assert get("/readyz", yard=yard, headers={"accept": "*/*"}).status_code == 200
    yard.unready = StoreTrouble("gone")
    with capture_logs():
        assert code(get("/readyz", yard=yard)) == "storage_unavailable"
    assert get("/healthz", yard=yard).status_code == 200


def test_the_processes_own_metrics_need_a_token():
    assert code(get("/metrics", headers={"accept": "*/*"})) == "missing_token"
    assert code(get("/metrics", yard=Yard(Scope.SUBMIT))) == "insufficient_scope"
    assert get("/metrics").text == "up 1\n"
