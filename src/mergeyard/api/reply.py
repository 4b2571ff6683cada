"""What goes back over the wire, also when a request is refused: status, headers and body in one value."""

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from msgspec import Struct, json

from mergeyard.api.errors import KINDS, ApiError, Flaw
from mergeyard.service.errors import Code, Refused

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
PATIENCE = {Code.RATE_LIMITED: 1, Code.PROVIDER_UNAVAILABLE: 5, Code.STORAGE_UNAVAILABLE: 5}
"""Seconds after which to ask again, where the refusal itself does not say."""

FIRST_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}


class Reply(Struct, frozen=True):
    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The one body of every error, with the members of RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    code: Code
    detail: str
    request_id: str
    retryable: bool
    errors: tuple[Flaw, ...] = ()


def refusal(refused: Refused, request_id: str, accept: bytes = b"") -> Reply:
    kind = KINDS[refused.code]
    problem = Problem(
        title=kind.title,
        status=kind.status,
        code=refused.code,
        detail=refused.detail,
        request_id=request_id,
        retryable=kind.retryable,
        errors=refused.errors if isinstance(refused, ApiError) else (),
    )
    content_type = PROBLEM if PROBLEM in accept.lower() else JSON
    return Reply(json.encode(problem), kind.status, content_type, (*_patience(refused), *_headers(refused)))


def _headers(refused: Refused) -> tuple[tuple[bytes, bytes], ...]:
    return refused.headers if isinstance(refused, ApiError) else ()


def _patience(refused: Refused) -> tuple[tuple[bytes, bytes], ...]:
    seconds = PATIENCE.get(refused.code) if refused.retry_after is None else refused.retry_after
    return () if seconds is None else ((b"retry-after", b"%d" % seconds),)


async def answer(send: Send, reply: Reply, request_id: str) -> None:
    await begin(send, reply, request_id)
    await send({"type": "http.response.body", "body": reply.body})


async def begin(send: Send, reply: Reply, request_id: str) -> None:
    headers = [
        (b"content-type", reply.content_type),
        (b"content-length", b"%d" % len(reply.body)),
        (b"x-request-id", request_id.encode()),
        *reply.headers,
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})


def written(reply: Reply, request_id: str, *headers: tuple[bytes, bytes]) -> bytes:
    """All of it as it stands on the wire, with these headers besides its own."""
    above = (
        *headers,
        (b"content-type", reply.content_type),
        (b"content-length", b"%d" % len(reply.body)),
        (b"x-request-id", request_id.encode()),
        *reply.headers,
    )
    lines = b"".join([b"%b: %b\r\n" % header for header in above])
    return b"%b%b\r\n%b" % (FIRST_LINES[reply.status], lines, reply.body)
