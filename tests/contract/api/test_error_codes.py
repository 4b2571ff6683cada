"""Every code with which a request may be refused is provoked, and comes in the one shape with what belongs to it."""

from collections.abc import Iterator

import httpx
import pytest
from msgspec import json

from mergeyard.api.protocol import Protocol
from mergeyard.api.receiving import LIMIT
from mergeyard.service.errors import Code
from tests.contract.api.desk import PROBLEM, StandingDesk, a_standing_desk, problem_of
from tests.contract.api.line import a_line
from tests.contract.api.provocations import PROVOCATIONS

THE_CONTRACT = {
    400: "invalid_json duplicate_key json_too_deep json_too_complex invalid_string invalid_request unknown_field "
    "invalid_repo invalid_branch host_not_allowed",
    401: "missing_token invalid_token",
    403: "insufficient_scope",
    404: "not_found queue_not_found pr_not_found pr_not_submitted test_run_not_found repository_not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    431: "headers_too_large",
    409: "queue_already_exists queue_not_empty pr_already_merged pr_closed pr_not_in_queue merge_in_progress "
    "tests_not_running sha_mismatch sha_required mode_switch_in_progress",
    422: "idempotency_key_reused branch_not_found commit_not_found",
    429: "rate_limited",
    500: "internal_error",
    502: "provider_error",
    503: "provider_unavailable storage_unavailable",
    504: "provider_timeout",
}
OF_WEBHOOKS = {400: "address_not_allowed", 404: "webhook_not_found event_not_found"}
"""The contract names their endpoints, and leaves their refusals open."""
STATUS = {
    Code(code): status
    for told in (THE_CONTRACT, OF_WEBHOOKS)
    for status, codes in told.items()
    for code in codes.split()
}
CANNOT_OCCUR = {
    Code.SHA_REQUIRED: "a plain host has no forks; tests/scenario/forges provokes it",
    Code.PROVIDER_TIMEOUT: "a plain host is a folder: nobody waits for it over a network",
}
OF_ADDRESSES = {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED}
"""They belong to no endpoint."""
HEADERS = {
    Code.MISSING_TOKEN: "www-authenticate",
    Code.INVALID_TOKEN: "www-authenticate",
    Code.METHOD_NOT_ALLOWED: "allow",
    Code.RATE_LIMITED: "retry-after",
    Code.PROVIDER_UNAVAILABLE: "retry-after",
    Code.STORAGE_UNAVAILABLE: "retry-after",
}


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingDesk]:
    with a_standing_desk(tmp_path_factory.mktemp("refused")) as standing:
        yield standing


def provoked(standing: StandingDesk, code: Code, accept: str) -> httpx.Response:
    standing.desk.client.headers["accept"] = accept
    return standing.wait_for(PROVOCATIONS[code](standing.desk))


def test_the_codes_are_those_of_the_contract():
    assert STATUS.keys() == set(Code)


def test_every_code_is_provoked_or_cannot_occur():
    assert PROVOCATIONS.keys() | CANNOT_OCCUR.keys() == set(Code)
    assert not PROVOCATIONS.keys() & CANNOT_OCCUR.keys()


@pytest.mark.parametrize("code", PROVOCATIONS)
def test_a_refusal_has_its_status_its_shape_and_its_headers(standing: StandingDesk, code: Code):
    response = provoked(standing, code, "*/*")
    problem = problem_of(response)
    assert (problem["code"], response.status_code) == (code, STATUS[code]), problem
    assert response.headers["content-type"] == "application/json"
    assert {"www-authenticate", "allow", "retry-after"} & set(response.headers) == (
        {HEADERS[code]} if code in HEADERS else set()
    )


@pytest.mark.parametrize("code", PROVOCATIONS)
def test_a_refusal_is_called_a_problem_where_that_is_accepted(standing: StandingDesk, code: Code):
    response = provoked(standing, code, "application/problem+json, */*;q=0.5")
    assert problem_of(response)["code"] == code
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("code", [code for code in PROVOCATIONS if code not in OF_ADDRESSES])
def test_the_openapi_document_names_the_code_where_it_was_provoked(standing: StandingDesk, code: Code):
    response = provoked(standing, code, "*/*")
    described = standing.wait_for(standing.desk.client.get("/openapi.json")).json()
    operation = described["paths"][response.request.url.path.removeprefix("/v1")][response.request.method.lower()]
    assert f"`{code}`" in operation["responses"][str(response.status_code)]["description"]


def test_what_is_allowed_and_how_to_come_in_is_named(standing: StandingDesk):
    assert provoked(standing, Code.METHOD_NOT_ALLOWED, "*/*").headers["allow"] == "POST"
    assert "x-api-token" in provoked(standing, Code.MISSING_TOKEN, "*/*").headers["www-authenticate"]
    assert int(provoked(standing, Code.STORAGE_UNAVAILABLE, "*/*").headers["retry-after"]) > 0


def test_what_does_not_fit_is_pointed_at(standing: StandingDesk):
    problem = problem_of(standing.wait_for(standing.desk.post("submitPullRequest", pr={"number": "x"})))
    assert problem["errors"] == [{"pointer": "/pr/number", "message": "expected an integer, got a string"}]


# Over a real socket


class Impatient(Protocol):
    head_seconds = 0.05


ABOVE = b"POST /v1/getQueue HTTP/1.1\r\nhost: yard\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"nonsense\r\n\r\n", Code.INVALID_REQUEST),
        (ABOVE + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", Code.INVALID_REQUEST),
        (b"GET /" + b"a" * 9000, Code.URI_TOO_LONG),
        (b"GET / HTTP/1.1\r\nx-much: " + b"a" * 300_000, Code.HEADERS_TOO_LARGE),
        (ABOVE + b"x-slow: a", Code.REQUEST_TIMEOUT),
        (ABOVE + b"content-length: %d\r\n\r\n" % LIMIT, Code.MISSING_TOKEN),
        (ABOVE + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n", Code.MISSING_TOKEN),
    ],
    ids=["nonsense", "two lengths", "address", "headers", "slow", "no token", "asks first"],
)
def test_what_is_refused_above_the_body_has_the_one_shape(standing: StandingDesk, raw: bytes, code: Code):
    async def talk() -> None:
        async with a_line(standing.desk.application, Impatient) as line:
            await line.send(raw)
            status, headers, body = await line.answer()
            problem = json.decode(body)
            assert (problem["code"], status, problem["status"]) == (code, STATUS[code], STATUS[code])
            assert set(problem) == PROBLEM
            assert (headers["content-type"], headers["x-request-id"]) == ("application/json", problem["requestId"])

    standing.wait_for(talk())


@pytest.mark.parametrize("length", ["content-length: 22020096", "transfer-encoding: chunked"])
@pytest.mark.parametrize("code", [Code.MISSING_TOKEN, Code.BODY_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE])
def test_who_sends_too_much_reads_the_answer_and_not_a_reset(standing: StandingDesk, length: str, code: Code):
    """21 MiB, all of it written before the answer is read."""
    token = "" if code is Code.MISSING_TOKEN else f"x-api-token: {standing.desk.secret}\r\n"
    media = "text/plain" if code is Code.UNSUPPORTED_MEDIA_TYPE else "application/json"
    above = f"POST /v1/getQueue HTTP/1.1\r\nhost: yard\r\ncontent-type: {media}\r\n{token}{length}\r\n\r\n".encode()
    chunked = "chunked" in length
    part = b" " * 1024 * 1024
    parts = [b"100000\r\n" + part + b"\r\n"] * 21 + [b"0\r\n\r\n"] if chunked else [part] * 21

    async def talk() -> None:
        async with a_line(standing.desk.application) as line:
            await line.send(above, *parts)
            status, _, body = await line.answer()
            assert (json.decode(body)["code"], status) == (code, STATUS[code])

    standing.wait_for(talk())
