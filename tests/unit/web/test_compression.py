"""Pages and static files are compressed; the API, event streams and responses to requests from other sites are not."""

import gzip
from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from mergeyard.web.compression import CompressionMiddleware, compress_once
from tests.support.asynchronous import asynchronous

TEXT = "All pull requests of the queue. " * 100
STATIC = TEXT.encode()
HEADERS = {"accept-encoding": "gzip, deflate, br"}
COOKIE = "session=x"


async def page(_: Request) -> Response:
    return HTMLResponse(TEXT)


async def short(_: Request) -> Response:
    return HTMLResponse("short")


async def static_file(_: Request) -> Response:
    return Response(STATIC, media_type="text/css", headers={"cache-control": "public"})


async def missing(_: Request) -> Response:
    return HTMLResponse(TEXT, 404)


async def stream(_: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        yield "event: change\ndata:\n\n" * 100

    return StreamingResponse(events(), media_type="text/event-stream")


async def export(_: Request) -> Response:
    async def rows() -> AsyncIterator[str]:
        for _ in range(3):
            yield TEXT

    return StreamingResponse(rows(), media_type="text/csv")


async def in_two_parts(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    half = len(STATIC) // 2
    headers = [(b"content-length", str(len(STATIC)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": STATIC[:half], "more_body": scope["type"] == "http"})
    await send({"type": "http.response.body", "body": STATIC[half:]})


ROUTES = [
    Route("/", page, methods=["GET", "POST"]),
    Route("/short", short),
    Route("/static/style.css", static_file),
    Route("/static/missing.css", missing),
    Mount("/static/parts.css", in_two_parts),
    Route("/v1/getQueue", page),
    Route("/live", stream),
    Route("/export", export),
]


async def get(path: str, *, method: str = "GET", over_tls: bool = False, **headers: str) -> httpx2.Response:
    app = Starlette(routes=ROUTES)
    app.add_middleware(CompressionMiddleware, over_tls=over_tls)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://yard.example") as client:
        return await client.request(method, path, headers=HEADERS | named)


def is_compressed(response: httpx2.Response) -> bool:
    return response.headers.get("content-encoding") == "gzip"


@pytest.mark.parametrize(("path", "expected"), [("/", TEXT), ("/export", TEXT * 3), ("/static/style.css", TEXT)])
@asynchronous
async def test_pages_exports_and_static_files_are_compressed(path: str, expected: str):
    response = await get(path)
    assert is_compressed(response)
    assert response.text == expected
    assert response.num_bytes_downloaded < len(expected) / 5
    plain = await get(path, accept_encoding="identity")
    assert not is_compressed(plain)
    assert plain.text == expected


@pytest.mark.parametrize("path", ["/short", "/v1/getQueue", "/live", "/static/missing.css"])
@asynchronous
async def test_short_responses_the_api_event_streams_and_missing_files_are_not_compressed(path: str):
    assert not is_compressed(await get(path))


@asynchronous
async def test_responses_to_forms_are_not_compressed():
    """One that closes the connection is sent in two parts, and the first one can be empty."""
    assert not is_compressed(await get("/", method="POST"))


@asynchronous
async def test_a_static_file_has_the_length_of_what_is_sent_and_says_what_it_depends_on():
    compressed, plain = await get("/static/style.css"), await get("/static/style.css", accept_encoding="identity")
    assert int(compressed.headers["content-length"]) == compressed.num_bytes_downloaded
    assert int(plain.headers["content-length"]) == len(STATIC)
    assert compressed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert compressed.headers["cache-control"] == "public"


@asynchronous
async def test_a_static_file_in_two_parts_is_complete():
    response = await get("/static/parts.css/")
    assert response.content == STATIC


@asynchronous
async def test_a_static_file_is_compressed_once():
    compress_once.cache_clear()
    for _ in range(3):
        await get("/static/style.css")
    assert (compress_once.cache_info().misses, compress_once.cache_info().hits) == (1, 2)
    assert gzip.decompress(compress_once(STATIC)) == STATIC


@pytest.mark.parametrize(
    ("site", "expected"), [("same-origin", True), ("none", True), ("cross-site", False), ("same-site", False)]
)
@asynchronous
async def test_a_page_that_another_site_requests_is_not_compressed(site: str, expected: bool):
    assert is_compressed(await get("/", over_tls=True, sec_fetch_site=site, cookie=COOKIE)) is expected
    assert is_compressed(await get("/static/style.css", over_tls=True, sec_fetch_site=site))


@asynchronous
async def test_a_browser_that_does_not_name_the_site_gets_a_page_with_secrets_uncompressed_over_tls():
    assert not is_compressed(await get("/", over_tls=True, cookie=COOKIE))
    assert is_compressed(await get("/", over_tls=True))
    assert is_compressed(await get("/", cookie=COOKIE))
