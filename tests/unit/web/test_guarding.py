"""Nothing leaves without what tells the browser to trust nobody else, not even the page of what went wrong."""

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mergeyard.web.guarding import HEADERS, Guard
from tests.support.asynchronous import asynchronous


async def fine(_: Request) -> Response:
    return PlainTextResponse("fine")


async def broken(_: Request) -> Response:
    raise RuntimeError("nobody expected this")


async def in_words(_: Request, __: Exception) -> Response:
    return PlainTextResponse("went wrong", 500)


APP = Guard(
    Starlette(routes=[Route("/fine", fine), Route("/broken", broken)], exception_handlers={Exception: in_words})
)


@asynchronous
async def test_only_over_tls_a_browser_is_told_to_come_back_over_tls():
    for app, told in ((Guard(APP, over_tls=True), "max-age=31536000"), (APP, None)):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://yard.example") as client:
            assert (await client.get("/fine")).headers.get("strict-transport-security") == told


@asynchronous
async def test_every_answer_is_guarded_and_kept_by_nobody():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://yard.example") as client:
        for path, status in (("/fine", 200), ("/broken", 500), ("/nowhere", 404)):
            answer = await client.get(path)
            assert answer.status_code == status
            assert HEADERS.items() <= dict(answer.headers).items()
            assert answer.headers["cache-control"] == "no-store"
