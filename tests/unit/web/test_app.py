"""Every response has the security headers, error pages too."""

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mergeyard.web.app import SECURITY_HEADERS, SecurityHeadersMiddleware
from tests.support.asynchronous import asynchronous


async def succeed(_: Request) -> Response:
    return PlainTextResponse("ok")


async def fail(_: Request) -> Response:
    raise RuntimeError("unexpected")


async def show_error(_: Request, __: Exception) -> Response:
    return PlainTextResponse("went wrong", 500)


APP = SecurityHeadersMiddleware(
    Starlette(routes=[Route("/ok", succeed), Route("/error", fail)], exception_handlers={Exception: show_error})
)


@asynchronous
async def test_strict_transport_security_is_sent_only_over_tls():
    for app, expected in ((SecurityHeadersMiddleware(APP, over_tls=True), "max-age=31536000"), (APP, None)):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://mergeyard.example") as client:
            assert (await client.get("/ok")).headers.get("strict-transport-security") == expected


@asynchronous
async def test_every_response_has_security_headers_and_is_not_cached():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://mergeyard.example") as client:
        for path, status in (("/ok", 200), ("/error", 500), ("/missing", 404)):
            response = await client.get(path)
            assert response.status_code == status
            assert SECURITY_HEADERS.items() <= dict(response.headers).items()
            assert response.headers["cache-control"] == "no-store"
