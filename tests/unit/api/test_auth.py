"""Every request is checked in the promised order, and every refusal has the documented form."""

import asyncio
from typing import Any

import httpx2
import pytest
from msgspec import json
from structlog.testing import capture_logs

from mergeyard.api.openapi import EXAMPLES
from mergeyard.api.responses import ERROR_KINDS
from mergeyard.api.routes import TABLE
from mergeyard.domain.access import Scope
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import HostAccessLost, HostRefused, HostUnavailable, RateLimited
from mergeyard.ports.git import GitError, RemoteRefused, RemoteUnavailable, RemoteUnsupported
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.errors import Code, RequestRefused
from tests.support.asynchronous import asynchronous
from tests.support.fake_api import PR, QUEUE, SECRET, FakeBackend, a_client, send_get, send_post


def problem(response: httpx2.Response) -> dict[str, Any]:
    """Checks the documented form of an error and returns it."""
    body = response.json()
    assert set(body) == {"type", "title", "status", "code", "detail", "requestId", "retryable", "errors"}
    kind = ERROR_KINDS[Code(body["code"])]
    assert (response.status_code, body["status"], body["title"]) == (kind.status, kind.status, kind.title)
    assert body["requestId"] == response.headers["x-request-id"]
    assert body["type"] == "about:blank"
    assert body["detail"]
    return body


def code(response: httpx2.Response) -> str:
    return problem(response)["code"]


def test_every_code_has_its_kind():
    assert set(ERROR_KINDS) == set(Code)


# The table of bad inputs

BAD_BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "invalid_json"),
    "two objects": (b"{}{}", "invalid_json"),
    "NaN": (b'{"a":NaN}', "invalid_json"),
    "Infinity": (b'{"a":Infinity}', "invalid_json"),
    "invalid UTF-8": (b'{"a":"\xff"}', "invalid_json"),
    "byte order mark": (b"\xef\xbb\xbf{}", "invalid_json"),
    "UTF-16": ("{}".encode("utf-16"), "invalid_json"),
    "lone surrogate": (b'{"a":"\\ud800"}', "invalid_json"),
    "deep nesting": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "invalid_json"),
    "NUL": (json.encode(PR | {"targetBranch": "a\0"}), "invalid_request"),
    "a list": (b"[]", "invalid_request"),
    "no members": (b"{}", "invalid_request"),
    "null": (json.encode(QUEUE | {"pr": {"number": None}}), "invalid_request"),
    "out of range": (json.encode(QUEUE | {"pr": {"number": 2**31}}), "invalid_request"),
    "many digits": (json.encode(PR)[:-1] + b',"priority":' + b"9" * 4000 + b"}", "invalid_request"),
    "owner": (json.encode(PR | {"repo": {"host": "h", "owner": "..", "name": "n"}}), "invalid_repo"),
    "branch": (json.encode(PR | {"targetBranch": "a..b"}), "invalid_branch"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
@pytest.mark.parametrize("headers", [{}, {"idempotency-key": "k"}], ids=["once", "repeatable"])
def test_a_bad_body_is_refused_with_its_code_and_changes_nothing(name: str, headers: dict[str, str]):
    body, expected = BAD_BODIES[name]
    backend = FakeBackend()
    assert code(send_post("submitPullRequest", body, backend=backend, headers=headers)) == expected
    assert backend.calls == []


def test_a_mistyped_setting_is_never_ignored():
    response = send_post("updateQueue", QUEUE | {"concurency": 5})
    assert code(response) == "unknown_field"
    assert problem(response)["errors"] == [{"pointer": "/concurency", "message": "is not a known setting"}]


# Addresses


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/nothing", "/v1/getQueue/", "/nowhere", "/V1/getQueue", "/v1/%00"])
def test_an_unknown_address_is_not_found_also_without_a_token(path: str):
    assert code(send_get(path, headers={"accept": "*/*"})) == "not_found"


@asynchronous
async def test_another_method_is_refused_and_the_right_ones_named():
    async with a_client(FakeBackend()) as client:
        for method in ("GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "TRACE"):
            response = await client.request(method, "/v1/getQueue")
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
        for path in ("/v1/getMergeQueueMetrics", "/healthz", "/docs"):
            response = await client.post(path)
            assert (code(response), response.headers["allow"]) == ("method_not_allowed", "GET, HEAD")


def test_head_is_allowed_where_get_is():
    async def head(path: str) -> httpx2.Response:
        async with a_client(FakeBackend()) as client:
            return await client.head(path, headers={"x-api-token": SECRET})

    for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/v1/getMergeQueueMetrics"):
        assert asyncio.run(head(path)).status_code == 200


# Tokens


@pytest.mark.parametrize(
    ("token", "expected"), [("", "missing_token"), (" ", "missing_token"), ("my_other", "invalid_token")]
)
def test_the_token_is_checked_before_anything_else(token: str, expected: str):
    headers = {"x-api-token": token, "content-type": "text/plain"}
    response = send_post("submitPullRequest", b"no json", headers=headers)
    assert code(response) == expected
    assert "x-api-token" in response.headers["www-authenticate"]


@asynchronous
async def test_without_a_token_the_body_is_not_read():
    received: list[str] = []
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        received.append("body requested")
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
    await FakeBackend().application()(scope, receive, send)
    assert sent[0]["status"] == 401
    assert received[0] == "answered"


@asynchronous
async def test_two_tokens_are_refused():
    headers = [("x-api-token", SECRET), ("x-api-token", SECRET), ("content-type", "application/json")]
    async with a_client(FakeBackend()) as client:
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
def test_the_scope_is_checked_after_the_schema(path: str, scope: Scope):
    others = [other for other in Scope if other not in (scope, Scope.ADMIN)]
    good = {"sha": "0" * 40, "context": "unit", "state": "success", "repo": QUEUE["repo"]}
    body = {"createQueue": QUEUE, "reportCommitStatus": good}.get(path, PR)
    assert code(send_post(path, {}, backend=FakeBackend(*others))) == "invalid_request"
    assert code(send_post(path, body, backend=FakeBackend(*others))) == "insufficient_scope"
    assert send_post(path, body, backend=FakeBackend(Scope.ADMIN)).status_code == 200


# Media types


@pytest.mark.parametrize(
    "media", ["text/plain", "", "application/jsonx", "application/problem+json", "multipart/form-data"]
)
def test_only_json_is_accepted(media: str):
    assert code(send_post("getQueue", b"no json", headers={"content-type": media})) == "unsupported_media_type"


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"])
def test_json_may_have_parameters(media: str):
    assert send_post("getQueue", QUEUE, headers={"content-type": media}).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity", ""])
def test_any_encoding_is_refused(encoding: str):
    assert code(send_post("getQueue", QUEUE, headers={"content-encoding": encoding})) == "unsupported_media_type"


# Responses


@pytest.mark.parametrize("path", [path for path, row in TABLE.items() if row.get("method") != "GET"])
def test_every_endpoint_answers_its_example(path: str):
    backend = FakeBackend()
    response = send_post(path, EXAMPLES[path].request, backend=backend)
    assert (response.status_code, response.json()) == (200, {"answer": 1})
    assert response.headers["content-type"] == "application/json"
    assert isinstance(backend.calls[0].request, TABLE[path]["request"])


def test_an_error_is_a_problem_document_if_the_client_accepts_one():
    accept = {"accept": "application/problem+json, application/json", "x-api-token": ""}
    assert send_post("getQueue", headers=accept).headers["content-type"] == "application/problem+json"
    assert send_post("getQueue", headers={"x-api-token": ""}).headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RequestRefused(Code.QUEUE_NOT_FOUND, "There is no such queue."), "queue_not_found"),
        (StoreUnavailable("disk full"), "storage_unavailable"),
        (HostUnavailable("down"), "provider_unavailable"),
        (HostRefused("403"), "provider_error"),
        (HostAccessLost("hidden"), "provider_error"),
        (RemoteRefused("403"), "provider_error"),
        (RemoteUnsupported("a web page"), "provider_error"),
        (RemoteUnavailable("down"), "provider_unavailable"),
        (GitError("secret text"), "provider_unavailable"),
        (ZeroDivisionError("secret text"), "internal_error"),
        (TimeoutError("secret text"), "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_of_the_service_has_the_documented_form(error: Exception, expected: str):
    with capture_logs():
        response = send_post("getQueue", QUEUE, backend=FakeBackend(error=error))
    assert code(response) == expected
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) == (response.status_code == 503)


def test_a_refusal_can_say_when_to_retry():
    slow = FakeBackend(error=RequestRefused(Code.RATE_LIMITED, "Wait a while.", retry_after=17))
    response = send_post("getQueue", QUEUE, backend=slow)
    assert (code(response), response.headers["retry-after"]) == ("rate_limited", "17")


# Idempotency keys


def test_the_same_request_with_the_same_key_returns_the_stored_response():
    backend, key = FakeBackend(), {"idempotency-key": "k 1"}
    first = send_post(
        "submitPullRequest", b'{"pr":{"number":1},' + json.encode(QUEUE)[1:], backend=backend, headers=key
    )
    again = send_post(
        "submitPullRequest", json.encode(QUEUE)[:-1] + b', "pr" : {"number":1}}', backend=backend, headers=key
    )
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(backend.calls) == 1


@pytest.mark.parametrize(("path", "number"), [("submitPullRequest", 2), ("cancelPullRequest", 1)])
def test_another_request_with_the_same_key_is_refused(path: str, number: int):
    backend, key = FakeBackend(), {"idempotency-key": "k"}
    send_post("submitPullRequest", QUEUE | {"pr": {"number": 1}}, backend=backend, headers=key)
    assert (
        code(send_post(path, QUEUE | {"pr": {"number": number}}, backend=backend, headers=key))
        == "idempotency_key_reused"
    )


def test_a_key_is_ignored_for_a_read():
    backend, key = FakeBackend(), {"idempotency-key": "k"}
    send_post("getQueue", QUEUE, backend=backend, headers=key)
    send_post("getQueue", QUEUE, backend=backend, headers=key)
    assert [call.idempotent_request for call in backend.calls] == [None, None]


@pytest.mark.parametrize("key", ["", "a" * 256, "a\tb", "é"], ids=["empty", "too long", "tab", "no ASCII"])
def test_a_key_is_printable_and_not_too_long(key: str):
    async def post() -> httpx2.Response:
        headers = {b"x-api-token": SECRET.encode(), b"idempotency-key": key.encode("latin-1")}
        async with a_client(FakeBackend()) as client:
            return await client.post("/v1/submitPullRequest", json=PR, headers=headers)

    assert code(asyncio.run(post())) == "invalid_request"


# Metrics by query


def test_metrics_are_requested_by_query_and_returned_as_text():
    backend = FakeBackend()
    response = send_get("/v1/getMergeQueueMetrics?repo=acme/app&repoHost=Git.Local&other=1", backend=backend)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert str(backend.calls[0].request.repo_filter) == "git.local/acme/app"
    send_get("/v1/getMergeQueueMetrics", backend=backend)
    assert backend.calls[1].request.repo_filter is None


def test_metrics_can_be_requested_for_a_host():
    backend = FakeBackend()
    send_get("/v1/getMergeQueueMetrics?repoHost=Git.Local", backend=backend)
    request = backend.calls[0].request
    assert (request.host_filter, request.repo_filter) == ("git.local", None)


def test_metrics_can_be_requested_for_a_repository_in_nested_groups():
    backend = FakeBackend()
    send_get("/v1/getMergeQueueMetrics?repo=acme/tools/app&repoHost=gitlab.com", backend=backend)
    assert str(backend.calls[0].request.repo_filter) == "gitlab.com/acme/tools/app"


@pytest.mark.parametrize(
    "query",
    [
        "repo=acme/app",
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
def test_a_query_that_does_not_name_one_repository_is_refused(query: str):
    assert code(send_get(f"/v1/getMergeQueueMetrics?{query}")) == "invalid_request"


# The process's own routes


NO_TOKEN = {"accept": "*/*"}


def test_health_and_readiness_need_no_token():
    backend = FakeBackend()
    assert send_get("/healthz", headers=NO_TOKEN).json() == {"status": "ok"}
    assert send_get("/readyz", backend=backend, headers=NO_TOKEN).json() == {"status": "ready"}
    backend.readiness_error = StoreUnavailable("gone")
    assert send_get("/healthz", backend=backend, headers=NO_TOKEN).status_code == 200


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreUnavailable("the disk is full"), "storage_unavailable"),
        (GitError("git is missing"), "provider_unavailable"),
        (RequestRefused(Code.INTERNAL_ERROR, "Background job stopped."), "internal_error"),
        (ZeroDivisionError("secret text"), "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
@asynchronous
async def test_a_process_that_is_not_ready_is_not_ready_for_every_client(error: Exception, expected: str):
    backend = FakeBackend()
    backend.readiness_error = error
    with capture_logs():
        async with a_client(backend) as client:
            responses = [await client.get("/readyz") for _ in range(3)]
    assert [code(response) for response in responses] == [expected] * 3
    assert backend.readiness_checks == (3 if isinstance(error, ZeroDivisionError) else 1)
    assert all("secret" not in response.text for response in responses)


@asynchronous
async def test_readiness_is_checked_at_most_once_a_second():
    backend = FakeBackend()
    async with a_client(backend) as client:
        for _ in range(5):
            assert (await client.get("/readyz")).status_code == 200
        assert backend.readiness_checks == 1
        backend.readiness_error = StoreUnavailable("gone")
        backend.clock.move_to(Instant(backend.clock.now() + 999))
        assert (await client.get("/readyz")).status_code == 200
        backend.clock.move_to(Instant(backend.clock.now() + 1))
        with capture_logs() as logs:
            for _ in range(5):
                assert code(await client.get("/readyz")) == "storage_unavailable"
    assert backend.readiness_checks == 2
    assert [entry["event"] for entry in logs] == ["not_ready"]


@asynchronous
async def test_requests_during_a_readiness_check_wait_for_its_result():
    """Otherwise they would get the result of an earlier check, or of none."""
    may_end, checks = asyncio.Event(), list[str]()

    class SlowBackend(FakeBackend):
        async def check_ready(self) -> None:
            checks.append("begun")
            await may_end.wait()
            raise StoreUnavailable("gone")

    with capture_logs():
        async with a_client(SlowBackend()) as client, asyncio.TaskGroup() as group:
            requests = [group.create_task(client.get("/readyz")) for _ in range(3)]
            while not checks:
                await asyncio.sleep(0)
            assert (await client.get("/healthz")).status_code == 200
            may_end.set()
    assert {code(request.result()) for request in requests} == {"storage_unavailable"}
    assert checks == ["begun"]


def test_the_metrics_of_the_process_need_a_token():
    assert code(send_get("/metrics", headers=NO_TOKEN)) == "missing_token"
    assert code(send_get("/metrics", backend=FakeBackend(Scope.SUBMIT))) == "insufficient_scope"
    assert send_get("/metrics").text == "up 1\n"


def test_a_limit_of_the_git_host_is_not_called_an_outage_and_names_the_time():
    limited = RateLimited("no", Instant(1_700_000_040_000), Instant(1_700_000_000_000))
    with capture_logs():
        response = send_post("getQueue", QUEUE, backend=FakeBackend(error=limited))
    assert (response.status_code, response.headers["retry-after"]) == (503, "40")
    expected = "The Git host limits how many requests it accepts. Retry at 22:14 UTC."
    assert (response.json()["code"], response.json()["detail"]) == ("provider_unavailable", expected)
