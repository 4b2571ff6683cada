"""Reads request bodies: with a size limit, a deadline, and a limit on concurrent large bodies."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from random import getrandbits
from typing import Any, TypeVar

from msgspec import Struct

from mergeyard.api.responses import ApiError, Reply, invalid_request
from mergeyard.service.errors import Code

MAX_URL_BYTES = 8 * 1024
MAX_HEADER_BYTES = 64 * 1024
REQUEST_ID_PATTERN = re.compile(rb"[\x20-\x7e]{1,128}")
IDEMPOTENCY_KEY_PATTERN = re.compile(rb"[\x20-\x7e]{1,255}")


class RequestHead(Struct, frozen=True):
    values: dict[bytes, bytes]
    repeated: frozenset[bytes]
    """Names of repeated headers. A repeated header that decides something is rejected: it would be ambiguous."""
    size: int
    request_id: str
    query: bytes
    path: str = ""
    client: str = ""
    """The client's IP address, as the server derives it from its trusted proxies."""

    def get(self, name: bytes) -> bytes:
        return self.values.get(name, b"")

    @property
    def accept(self) -> bytes:
        return self.get(b"accept")


NO_REPEATED = frozenset[bytes]()


def parse_head(headers: Iterable[tuple[bytes, bytes]], query: bytes, path: str = "", client: str = "") -> RequestHead:
    values: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    size = 0
    for name, value in headers:
        if name in values:
            repeated.add(name)
        values[name] = value
        size += len(name) + len(value) + 4  # ": " and CRLF
    names = frozenset(repeated) if repeated else NO_REPEATED
    return RequestHead(values, names, size, _choose_request_id(values, repeated), query, path, client)


def _choose_request_id(values: dict[bytes, bytes], repeated: set[bytes]) -> str:
    given = values.get(b"x-request-id", b"")
    if REQUEST_ID_PATTERN.fullmatch(given) and b"x-request-id" not in repeated:
        return given.decode()
    return new_request_id()


def new_request_id() -> str:
    """Not a secret, so a pseudo-random number is enough and saves the system call of a secure one."""
    return f"{getrandbits(128):032x}"


def refuse_oversized(head: RequestHead, path: bytes) -> None:
    if len(path) + len(head.query) > MAX_URL_BYTES:
        raise url_too_long()
    if head.size > MAX_HEADER_BYTES:
        raise headers_too_large()


def url_too_long() -> ApiError:
    return ApiError(Code.URI_TOO_LONG, f"The URL is longer than {MAX_URL_BYTES:,} bytes: send a shorter one.")


def headers_too_large() -> ApiError:
    return ApiError(
        Code.HEADERS_TOO_LARGE, f"The headers are larger than {MAX_HEADER_BYTES:,} bytes: send fewer of them."
    )


def head_too_slow() -> ApiError:
    return ApiError(Code.REQUEST_TIMEOUT, "The headers did not arrive in time: send the request again.")


def too_many_connections() -> ApiError:
    return ApiError(
        Code.RATE_LIMITED, "Too many connections are open: close those that are not needed, and retry shortly."
    )


def require_json(head: RequestHead) -> None:
    media_type = head.get(b"content-type").partition(b";")[0].strip().lower()
    if media_type != b"application/json" or b"content-type" in head.repeated:
        detail = "The body has another media type: send it with `Content-Type: application/json`."
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, detail)
    if b"content-encoding" in head.values:
        detail = "The body has a Content-Encoding: send it without compression."
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, detail)


def read_idempotency_key(head: RequestHead) -> str | None:
    key = head.values.get(b"idempotency-key")
    if key is None:
        return None
    if not IDEMPOTENCY_KEY_PATTERN.fullmatch(key) or b"idempotency-key" in head.repeated:
        raise invalid_request("", "send the header Idempotency-Key once, with 1 to 255 printable ASCII characters")
    return key.decode()


T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MAX_BODY_BYTES = 20 * 1024 * 1024
MAX_INLINE_BYTES = 256 * 1024
"""Up to this size a body is parsed on the event loop; a larger one would delay other requests and goes to a thread."""
MAX_DISCARDED_BYTES = 64 * 1024
"""Up to this size the server itself discards an unread body, so the connection can be kept alive."""
MAX_DRAINED_BYTES = 32 * 1024 * 1024
DRAIN_TIMEOUT_S = 10.0
"""More than LIMIT: a client that writes its whole body before it reads gets the error instead of a connection reset."""


class ClientDisconnected(Exception):
    """The client closed the connection, so no response can be sent."""


class RequestBody:
    def __init__(self, receive: Receive, head: RequestHead, whole: bytes | None = None) -> None:
        """`whole` is the complete body, if it has already arrived."""
        self._receive = receive
        self._declared = head.values.get(b"content-length")
        self._chunked = b"transfer-encoding" in head.values
        self._waits = head.get(b"expect").lower() == b"100-continue"
        self.content = bytearray(whole or b"")
        self.finished = whole is not None

    async def collect(self, at_most: int) -> None:
        """Receives until the body is complete or longer than `at_most` bytes. Refuses a body over LIMIT."""
        self._refuse_declared()
        while not self.finished and len(self.content) <= at_most:
            self.content += await self._next()
            if len(self.content) > MAX_BODY_BYTES:
                raise body_too_large()

    def take_content(self) -> bytearray:
        """Returns the content and drops it here, so that large bodies are not held twice."""
        content, self.content = self.content, bytearray()
        return content

    @property
    def is_discardable(self) -> bool:
        """True if the body is read, or small enough for the server to discard it and keep the connection alive."""
        return self.finished or (not self._chunked and (self._length or 0) <= MAX_DISCARDED_BYTES)

    async def drain(self) -> None:
        drained = 0
        with suppress(TimeoutError, ClientDisconnected):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                while not self.finished and not self._waits and drained < MAX_DRAINED_BYTES:
                    drained += len(await self._next())

    @property
    def _length(self) -> int | None:
        # 19 digits suffice: a longer number is beyond every limit, and int() of many digits is slow.
        return int(self._declared[:19]) if self._declared is not None and self._declared.isdigit() else None

    def _refuse_declared(self) -> None:
        if self._length is not None and self._length > MAX_BODY_BYTES:
            raise body_too_large()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        self._waits = False
        self.finished = not message.get("more_body", False)
        return message.get("body", b"")


def body_too_large() -> ApiError:
    return ApiError(
        Code.BODY_TOO_LARGE,
        'The body is larger than 20 MiB: send a smaller one. Send a list of targets that long as "ALL".',
    )


class BodyReader:
    def __init__(self, *, timeout_s: float = 60.0, max_large_bodies: int = 8, max_concurrent_parses: int = 1) -> None:
        self._seconds = timeout_s
        self._large_slots = asyncio.Semaphore(max_large_bodies)
        self._parser_slots = asyncio.Semaphore(max_concurrent_parses)

    async def read(
        self, body: RequestBody, parse: Callable[[bytes], T], parse_large: Callable[[bytearray], T] | None = None
    ) -> T:
        """Reads the complete body and returns what `parse` makes of it.

        A large body waits for a free slot before it takes up memory. A thread parses it, with `parse_large` if given.
        """
        deadline = asyncio.get_running_loop().time() + self._seconds
        if not body.finished:
            await self._before(deadline, body.collect(MAX_INLINE_BYTES))
        if body.finished and len(body.content) <= MAX_INLINE_BYTES:
            return parse(bytes(body.content))
        await self._before(deadline, self._large_slots.acquire())
        try:
            await self._before(deadline, body.collect(MAX_BODY_BYTES))
            async with self._parser_slots:
                if parse_large is None:
                    return await asyncio.to_thread(parse, bytes(body.content))
                return await asyncio.to_thread(parse_large, body.take_content())
        finally:
            self._large_slots.release()

    async def _before(self, deadline: float, receiving: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await receiving
        except TimeoutError:
            detail = f"The body did not arrive within {self._seconds:g} s: send the request again."
            raise ApiError(Code.REQUEST_TIMEOUT, detail) from None


Route = Callable[[RequestHead, RequestBody], Awaitable[Reply]]
