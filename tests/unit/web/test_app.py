"""Every response has the security headers, error pages too; an error is a page only for a client that prefers HTML."""

import re
from collections.abc import Mapping, Sequence

import httpx2
import pytest
from msgspec import json
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from mergeyard.api.app import build_app
from mergeyard.api.middleware import ErrorHandler
from mergeyard.api.responses import ERROR_KINDS, ApiError
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.web.app import DETAILS, QUEUE_DELETED, SECURITY_HEADERS, TITLES, SecurityHeadersMiddleware
from tests.support.asynchronous import asynchronous

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def succeed(_: Request) -> Response:
    return PlainTextResponse("ok")


async def fail(_: Request) -> Response:
    raise RuntimeError("unexpected")


async def refuse(_: Request) -> Response:
    raise ApiError(Code.RATE_LIMITED, "Wait a while.", headers={"x-more": "1"})


async def refuse_method(_: Request) -> Response:
    raise HTTPException(405, headers={"Allow": "GET"})


class FakePages:
    exception_handlers: Mapping[type[Exception], ErrorHandler] = {}

    def __init__(self, *, over_tls: bool = False) -> None:
        self.middleware = [Middleware(SecurityHeadersMiddleware, over_tls=over_tls)]

    @property
    def routes(self) -> Sequence[Route]:
        paths = {"/ok": succeed, "/error": fail, "/busy": refuse, "/method": refuse_method, "/v1/error": fail}
        return [Route(path, respond) for path, respond in paths.items()]

    async def render_error(self, request: Request, refused: RequestRefused, status: int, title: str) -> Response:
        return PlainTextResponse(f"{request.state.request_id} {title}: {refused.detail}", status)


async def get(path: str, headers: Mapping[str, str] = BROWSER, *, over_tls: bool = False) -> httpx2.Response:
    transport = httpx2.ASGITransport(build_app((), FakePages(over_tls=over_tls)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://mergeyard.example") as client:
        with capture_logs():
            return await client.get(path, headers=headers)


@asynchronous
async def test_strict_transport_security_is_sent_only_over_tls():
    assert (await get("/ok", over_tls=True)).headers["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in (await get("/ok")).headers


@asynchronous
async def test_every_response_has_security_headers_and_is_not_cached():
    for path, status in (("/ok", 200), ("/error", 500), ("/busy", 429), ("/missing", 404)):
        for accept in (BROWSER, {"accept": "*/*"}):
            response = await get(path, accept)
            assert response.status_code == status
            assert SECURITY_HEADERS.items() <= dict(response.headers).items()
            assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("headers", [BROWSER, {"accept": "TEXT/HTML"}, {"hx-request": "true"}], ids=str)
@pytest.mark.parametrize(("path", "status"), [("/error", 500), ("/missing", 404), ("/busy", 429), ("/method", 405)])
@asynchronous
async def test_an_error_is_a_page_for_a_client_that_prefers_html(path: str, status: int, headers: dict[str, str]):
    response = await get(path, headers)
    assert response.status_code == status
    assert response.text.startswith(f"{response.headers['x-request-id']} ")


@pytest.mark.parametrize("headers", [{"accept": "*/*"}, {"accept": "application/json"}, {"accept": ""}], ids=str)
@pytest.mark.parametrize(("path", "status"), [("/error", 500), ("/missing", 404), ("/busy", 429), ("/method", 405)])
@asynchronous
async def test_an_error_is_json_for_other_clients(path: str, status: int, headers: dict[str, str]):
    problem = json.decode((await get(path, headers)).content)
    assert problem["status"] == status


@pytest.mark.parametrize(("path", "status"), [("/v1/error", 500), ("/v1/missing", 404), ("/v1", 404), ("/v1/", 404)])
@asynchronous
async def test_an_error_of_the_api_is_always_json(path: str, status: int):
    for headers in (BROWSER, {"hx-request": "true"}):
        assert json.decode((await get(path, headers)).content)["status"] == status


def test_title_of_an_error_page_says_what_kind_of_error_it_is():
    """Other statuses than these mean that the request is invalid."""
    assert {kind.status for kind in ERROR_KINDS.values()} - TITLES.keys() == {400, 401, 408, 413, 415, 422, 431}


@pytest.mark.parametrize("text", [*DETAILS.values(), *QUEUE_DELETED], ids=str)
def test_text_of_an_error_page_names_no_operation_of_the_api(text: str):
    assert not re.search(r"[a-z](Queue|PullRequest|Webhook|TestingDetails)|`", text)


@asynchronous
async def test_an_error_page_keeps_the_headers_of_the_error():
    busy = (await get("/busy")).headers
    assert (busy["retry-after"], busy["x-more"]) == ("1", "1")
    assert (await get("/method")).headers["allow"] == "GET"
