"""Asks a provider over HTTP: bounded in time and size, and never led elsewhere."""

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

from mergeyard.ports.identity import IdentityTrouble

SECONDS = 10
LARGEST = 1024 * 1024
WORDS = 300
HEADERS = {"user-agent": "mergeyard", "accept": "application/json"}
SILENT = "The identity provider does not answer. Try again soon, or sign in with a token."
CONFUSING = (
    "The identity provider answered something unexpected. Try again, or tell your administrator: the log says what."
)

T = TypeVar("T")


class Answer(Struct, frozen=True):
    address: str
    status: int
    body: bytes

    def read(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise IdentityTrouble(CONFUSING, f"{self.address} is not understood: {error}") from error

    def trouble(self) -> IdentityTrouble:
        """A redirect is one as well: what we send is meant for this address alone."""
        words = SILENT if self.status >= 500 else CONFUSING
        said = " ".join(self.body.decode(errors="replace").split())[:WORDS]
        return IdentityTrouble(words, f"{self.address} answered {self.status}: {said}")


async def ask(address: str, kind: type[T], headers: Mapping[str, str] | None = None) -> T:
    answer = await _answer(httpx.Request("GET", address, headers=HEADERS | dict(headers or {})))
    if answer.status != 200:
        raise answer.trouble()
    return answer.read(kind)


async def post(address: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
    return await _answer(httpx.Request("POST", address, data=dict(form), headers=HEADERS | dict(headers)))


async def _answer(request: httpx.Request) -> Answer:
    """People sign in so seldom that no connection is kept."""
    address = str(request.url.copy_with(query=None))
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(timeout=SECONDS, verify=_certificates(), follow_redirects=False) as client,
        ):
            response = await client.send(request, stream=True)
            return Answer(address, response.status_code, await _body(response, address))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise IdentityTrouble(SILENT, f"{address}: {str(error) or type(error).__name__}") from error


async def _body(response: httpx.Response, address: str) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise IdentityTrouble(CONFUSING, f"{address} answers with more than {LARGEST} bytes")
    return bytes(body)


@cache
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context()
