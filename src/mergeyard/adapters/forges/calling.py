"""Calls the web API of a forge: never beyond its limits, and without paying twice for what has not changed."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from functools import cache
from typing import Any, Self, TypeVar, cast

import httpx
import msgspec
from msgspec import Struct

from mergeyard.adapters.forges.limits import Limits
from mergeyard.adapters.forges.remembering import Remembered, Remembering
from mergeyard.ports.host import HostRefused, HostTrouble

SECONDS = 30
LARGEST = 20 * 1024 * 1024
MOST_PAGES = 50
AT_ONCE = 8
UNANSWERED = 599
"""What counts as the status of an answer that never came."""
WORDS = 300
PASSING = (401, 408, 429)
"""What may be different the next time, also for credentials that are being renewed."""
MOVED = (301, 302, 303, 307, 308)
"""Never followed: our credentials go only where we were told to go."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
Query = Mapping[str, str | int]
Credentials = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that prove who we are, good for this call."""
LockedOut = Callable[[], None]
"""What is done when they were not taken."""


class Reply(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300

    def well_received(self, *, also: Collection[int] = ()) -> Self:
        """Itself; raises what is wrong, unless its status is as good as done."""
        if not self.fine and self.status not in also:
            raise self.trouble()
        return self

    def read(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except UNREADABLE as error:
            raise HostTrouble(f"{self.url} answered something that we do not understand: {error}") from error

    @property
    def limited(self) -> bool:
        """Whether we asked too often, which some forges say by forbidding it."""
        if self.status != 403:
            return self.status == 429
        if "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0":
            return True
        words = words_of(self.body).lower()
        return "rate limit" in words or "abuse" in words

    def trouble(self) -> HostTrouble:
        for_good = 400 <= self.status < 500 and self.status not in PASSING and not self.limited
        kind = HostRefused if for_good else HostTrouble
        return kind(f"{self.url} answered {self.status}: {words_of(self.body)}")


def unmoved() -> None:
    """Whoever has no other credentials can only try again."""


class Connections:
    """To one forge; opened when they are first needed."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        if self._client is None:
            headers = {"user-agent": "mergeyard"}
            self._client = httpx.AsyncClient(timeout=SECONDS, headers=headers, verify=certificates())
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


class Caller:
    def __init__(self, base: str, credentials: Credentials, limits: Limits, locked_out: LockedOut = unmoved) -> None:
        """`base` is the address that every path is appended to, without a slash at its end."""
        self._base = base
        self._credentials = credentials
        self._limits = limits
        self._locked_out = locked_out
        self._remembering = Remembering()
        self._connections = Connections()
        self._places = asyncio.Semaphore(AT_ONCE)

    def with_credentials(self, credentials: Credentials, locked_out: LockedOut) -> Self:
        """Calls with other credentials, but over the same connections, within the same limits."""
        other = copy(self)
        other._credentials, other._locked_out = credentials, locked_out
        return other

    async def get(self, path: str, kind: type[T], query: Query | None = None) -> T | None:
        """What is there now, or None where nothing is. The last of the budget is kept for those that must land."""
        self._limits.spare()
        return await self.get_now(path, kind, query)

    async def get_now(self, path: str, kind: type[T], query: Query | None = None) -> T | None:
        """Like `get`, for a landing: as long as anything is left."""
        reply = await self._ask(path, query)
        return None if reply.status in (404, 410) else reply.well_received().read(kind)

    async def every(self, path: str, kind: type[list[T]], query: Query | None = None) -> list[T]:
        """All pages of a list; nothing where there is none."""
        self._limits.spare()
        return await self.every_now(path, kind, query)

    async def every_now(self, path: str, kind: type[list[T]], query: Query | None = None) -> list[T]:
        """Like `every`, for a landing: as long as anything is left."""
        found, at = list[T](), cast(str | None, path)
        for _ in range(MOST_PAGES):
            reply = await self._ask(cast(str, at), query)
            if reply.status in (404, 410):
                return found
            found += reply.well_received().read(kind)
            at, query = self._next(reply), None
            if at is None:
                return found
        raise HostTrouble(f"{self._base}{path} goes on for more than {MOST_PAGES} pages")

    async def send(self, method: str, path: str, body: Any = None) -> Reply:
        """Changes something: whether that was well received is for the caller to judge."""
        content = None if body is None else msgspec.json.encode(body)
        return await self._call(method, path, None, {"content-type": "application/json"}, content)

    async def close(self) -> None:
        await self._connections.close()

    async def _ask(self, path: str, query: Query | None) -> Reply:
        place = str(httpx.URL(self._base + path, params=query or None))
        known = self._remembering.get(place)
        headers = {} if known is None else {"if-none-match": known.tag}
        reply = await self._call("GET", path, query, headers, None)
        if reply.status == 304 and known is not None:
            return msgspec.structs.replace(reply, status=200, body=known.body, headers={"link": known.link})
        if reply.fine and "etag" in reply.headers:
            answer = Remembered(reply.headers["etag"], reply.headers.get("link", ""), reply.body)
            self._remembering.keep(place, answer)
        return reply

    async def _call(
        self, method: str, path: str, query: Query | None, headers: Mapping[str, str], content: bytes | None
    ) -> Reply:
        self._limits.check()
        client = self._connections.client
        address = self._base + path
        headers = {"accept": "application/json", **await self._credentials(), **headers}
        try:
            request = client.build_request(method, address, params=query, headers=headers, content=content)
            async with self._places:
                reply = await _answered(client, request)
        except httpx.HTTPError as error:
            self._limits.note(UNANSWERED, {})
            raise HostTrouble(f"{address} does not answer: {str(error) or type(error).__name__}") from error
        if reply.status == 401:
            self._locked_out()
        self._limits.note(429 if reply.limited else reply.status, reply.headers)
        if reply.limited or reply.status >= 500 or reply.status in PASSING or reply.status in MOVED:
            raise reply.trouble()
        return reply

    def _next(self, reply: Reply) -> str | None:
        """Only to where we are: what a list says of its next page is not to be trusted with our credentials."""
        for link in reply.headers.get("link", "").split(","):
            address, _, rest = link.strip().partition(">")
            if 'rel="next"' in rest:
                here, path = address[1 : 1 + len(self._base)], address[1 + len(self._base) :]
                if here != self._base or not path.startswith("/"):
                    raise HostTrouble(
                        f"{reply.url} goes on at {address[1:]}: configure {self._base} as it is called there"
                    )
                return path
        return None


@cache
def certificates() -> ssl.SSLContext:
    """Whom we believe; reading that takes longer than many a call."""
    return httpx.create_ssl_context()


def words_of(body: bytes) -> str:
    """What a person would want to read of an error."""
    try:
        told = msgspec.json.decode(body)
    except UNREADABLE:
        told = body.decode(errors="replace")
    words = cast(dict[str, Any], told).get("message", told) if isinstance(told, dict) else told
    return " ".join(str(words).split())[:WORDS]


async def _answered(client: httpx.AsyncClient, request: httpx.Request) -> Reply:
    answer = await client.send(request, stream=True)
    try:
        address = str(request.url.copy_with(query=None))
        return Reply(answer.status_code, dict(answer.headers), await _body(answer), address)
    finally:
        await answer.aclose()


async def _body(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise HostTrouble(f"{answer.url} answers with more than {LARGEST} bytes")
    return bytes(body)
