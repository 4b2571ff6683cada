"""Every error code is triggered, and its response has the common shape and its headers."""

import re
from collections.abc import Iterator

import httpx2
import pytest
from msgspec import json

from mergeyard.api import routes
from mergeyard.api.request_body import MAX_BODY_BYTES
from mergeyard.service.errors import Code
from tests.contract.api.error_triggers import ERROR_TRIGGERS
from tests.contract.api.harness import PROBLEM, SharedApi, problem_of, raw_connection, shared_api

CONTRACT_CODES = {
    400: "invalid_json invalid_request unknown_field invalid_repo invalid_branch host_not_allowed",
    401: "missing_token invalid_token",
    403: "insufficient_scope",
    404: "not_found queue_not_found pr_not_found pr_not_submitted test_run_not_found repository_not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    415: "unsupported_media_type",
    409: "queue_already_exists queue_not_empty pr_already_merged pr_closed pr_not_in_queue merge_in_progress "
    "sha_mismatch sha_required mode_switch_in_progress",
    422: "idempotency_key_reused branch_not_found commit_not_found",
    429: "rate_limited",
    500: "internal_error",
    502: "provider_error",
    503: "provider_unavailable storage_unavailable",
    504: "provider_timeout",
}
OTHER_CODES = {
    400: "address_not_allowed",
    404: "webhook_not_found event_not_found token_not_found",
    431: "headers_too_large",
}
"""The contract leaves open which codes the endpoints for webhooks and tokens have, and what precedes a request."""
STATUS = {
    Code(code): status
    for table in (CONTRACT_CODES, OTHER_CODES)
    for status, codes in table.items()
    for code in codes.split()
}
CANNOT_OCCUR = {
    Code.SHA_REQUIRED: "a plain host has no forks; tests/scenario/forges triggers it",
    Code.HEADERS_TOO_LARGE: "only the HTTP protocol of the server has it; tests/hostile/test_header_limits triggers it",
    Code.PROVIDER_TIMEOUT: "a plain host is a folder: there is no network to wait for",
}
PATH_CODES = {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED}
"""These belong to no endpoint."""
HEADERS = {
    Code.MISSING_TOKEN: "www-authenticate",
    Code.INVALID_TOKEN: "www-authenticate",
    Code.METHOD_NOT_ALLOWED: "allow",
    Code.RATE_LIMITED: "retry-after",
    Code.PROVIDER_UNAVAILABLE: "retry-after",
    Code.STORAGE_UNAVAILABLE: "retry-after",
}


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedApi]:
    with shared_api(tmp_path_factory.mktemp("refused")) as standing:
        yield standing


def provoked(standing: SharedApi, code: Code, accept: str) -> httpx2.Response:
    standing.api.client.headers["accept"] = accept
    return standing.wait_for(ERROR_TRIGGERS[code](standing.api))


def test_the_codes_are_those_of_the_contract():
    assert STATUS.keys() == set(Code)


def test_every_error_code_is_triggered_or_cannot_occur():
    assert ERROR_TRIGGERS.keys() | CANNOT_OCCUR.keys() == set(Code)
    assert not ERROR_TRIGGERS.keys() & CANNOT_OCCUR.keys()


@pytest.mark.parametrize("code", ERROR_TRIGGERS)
def test_an_error_has_its_status_body_and_headers(standing: SharedApi, code: Code):
    response = provoked(standing, code, "*/*")
    problem = problem_of(response)
    assert (problem["code"], response.status_code) == (code, STATUS[code]), problem
    assert response.headers["content-type"] == "application/json"
    assert {"www-authenticate", "allow", "retry-after"} & set(response.headers) == (
        {HEADERS[code]} if code in HEADERS else set()
    )
    assert problem["detail"].endswith(".")
    assert problem["title"] != problem["detail"].rstrip(".")
    assert not re.search("|".join(routes.TABLE), problem["detail"]), "pages and commands show the same text"


@pytest.mark.parametrize("code", ERROR_TRIGGERS)
def test_an_error_is_sent_as_problem_json_if_the_client_accepts_it(standing: SharedApi, code: Code):
    response = provoked(standing, code, "application/problem+json, */*;q=0.5")
    assert problem_of(response)["code"] == code
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("code", [code for code in ERROR_TRIGGERS if code not in PATH_CODES])
def test_the_openapi_document_lists_the_error_code_at_its_endpoint(standing: SharedApi, code: Code):
    response = provoked(standing, code, "*/*")
    described = standing.wait_for(standing.api.client.get("/openapi.json")).json()
    operation = described["paths"][response.request.url.path.removeprefix("/v1")][response.request.method.lower()]
    assert f"`{code}`" in operation["responses"][str(response.status_code)]["description"]


def test_errors_name_the_allowed_method_and_the_token_header(standing: SharedApi):
    assert provoked(standing, Code.METHOD_NOT_ALLOWED, "*/*").headers["allow"] == "POST"
    assert "x-api-token" in provoked(standing, Code.MISSING_TOKEN, "*/*").headers["www-authenticate"]
    assert int(provoked(standing, Code.STORAGE_UNAVAILABLE, "*/*").headers["retry-after"]) > 0


def test_an_invalid_member_is_named_in_the_error(standing: SharedApi):
    problem = problem_of(standing.wait_for(standing.api.post("submitPullRequest", pr={"number": "x"})))
    assert problem["errors"] == [{"pointer": "/pr/number", "message": "expected an integer, got a string"}]


# Over a real socket


REQUEST_HEAD = b"POST /v1/getQueue HTTP/1.1\r\nhost: queue\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "head",
    [b"content-length: %d\r\n\r\n" % MAX_BODY_BYTES, b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"],
    ids=["sends the body at once", "asks first"],
)
def test_a_request_without_a_token_is_refused_before_its_body_arrives(standing: SharedApi, head: bytes):
    async def exchange() -> None:
        async with raw_connection(standing.api.application) as connection:
            await connection.send(REQUEST_HEAD + head)
            status, headers, body = await connection.read_response()
            problem = json.decode(body)
            assert (problem["code"], status, problem["status"]) == (Code.MISSING_TOKEN, 401, 401)
            assert set(problem) == PROBLEM
            assert (headers["content-type"], headers["x-request-id"]) == ("application/json", problem["requestId"])

    standing.wait_for(exchange())


@pytest.mark.parametrize("length", ["content-length: 22020096", "transfer-encoding: chunked"])
@pytest.mark.parametrize("code", [Code.MISSING_TOKEN, Code.BODY_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE])
def test_a_client_that_sends_too_much_reads_a_response_and_not_a_reset(standing: SharedApi, length: str, code: Code):
    """21 MiB, all sent before the response is read."""
    token = "" if code is Code.MISSING_TOKEN else f"x-api-token: {standing.api.secret}\r\n"
    media = "text/plain" if code is Code.UNSUPPORTED_MEDIA_TYPE else "application/json"
    head = f"POST /v1/getQueue HTTP/1.1\r\nhost: queue\r\ncontent-type: {media}\r\n{token}{length}\r\n\r\n".encode()
    chunked = "chunked" in length
    part = b" " * 1024 * 1024
    parts = [b"100000\r\n" + part + b"\r\n"] * 21 + [b"0\r\n\r\n"] if chunked else [part] * 21

    async def exchange() -> None:
        async with raw_connection(standing.api.application) as connection:
            await connection.send(head, *parts)
            status, _, body = await connection.read_response()
            assert (json.decode(body)["code"], status) == (code, STATUS[code])

    standing.wait_for(exchange())
