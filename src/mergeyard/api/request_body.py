"""Reads request bodies: with a size limit, a deadline, and a limit on concurrent large bodies."""

import asyncio
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from starlette.requests import Request

from mergeyard.api.responses import ApiError, invalid_request
from mergeyard.service.errors import Code

T = TypeVar("T")

MAX_BODY_BYTES = 20 * 1024 * 1024
MAX_WEBHOOK_BODY_BYTES = 26 * 1024 * 1024
"""GitHub sends up to 25 MB."""
"""A webhook of GitHub can have 25 MB. A larger one than this is refused, and polling finds the change."""
LARGE_BODY_BYTES = 1024 * 1024
"""A thread decodes a larger body: on the event loop it would delay other requests."""
IDEMPOTENCY_KEY_PATTERN = re.compile(r"[\x20-\x7e]{1,255}")


class BodyReader:
    def __init__(
        self,
        *,
        timeout_s: float = 60.0,
        max_large_bodies: int = 8,
        max_bodies: int | None = None,
        max_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        """`max_bodies` limits how many bodies arrive at the same time: for requests that are not authenticated, which
        any number of clients can send."""
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._large_slots = asyncio.Semaphore(max_large_bodies)
        self._slots = None if max_bodies is None else asyncio.Semaphore(max_bodies)
        self._decoder_lock = asyncio.Lock()

    async def read(self, request: Request, decode: Callable[[bytes], T]) -> T:
        """Reads the complete body and returns what `decode` makes of it. A body over 1 MiB waits for a free slot before
        it takes up more memory, and is decoded in a thread, one at a time."""
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._max_bytes):
            raise body_too_large(self._max_bytes)
        if self._slots is not None and self._slots.locked():
            raise ApiError(Code.RATE_LIMITED, "Too many requests are being received at once: retry shortly.")
        try:
            async with self._slots or nullcontext(), asyncio.timeout(self._timeout_s) as deadline:
                return await self._read(request, decode, deadline)
        except TimeoutError:
            detail = f"The body did not arrive within {self._timeout_s:g} s: send the request again."
            raise ApiError(Code.REQUEST_TIMEOUT, detail) from None

    async def _read(self, request: Request, decode: Callable[[bytes], T], deadline: asyncio.Timeout) -> T:
        chunks, size, stream = list[bytes](), 0, request.stream()
        async for chunk in stream:
            chunks.append(chunk)
            size += len(chunk)
            if size > LARGE_BODY_BYTES:
                break
        else:
            deadline.reschedule(None)
            return decode(b"".join(chunks))
        async with self._large_slots:
            async for chunk in stream:
                chunks.append(chunk)
                size += len(chunk)
                if size > self._max_bytes:
                    raise body_too_large(self._max_bytes)
            deadline.reschedule(None)
            async with self._decoder_lock:
                return await asyncio.to_thread(lambda: decode(b"".join(chunks)))


def body_too_large(max_bytes: int) -> ApiError:
    limit = f"The body is larger than {max_bytes // 1024**2} MiB: send a smaller one."
    return ApiError(Code.BODY_TOO_LARGE, f'{limit} Send a list of targets that long as "ALL".')


def require_json(request: Request) -> None:
    media_types = request.headers.getlist("content-type")
    if [media_type.partition(";")[0].strip().lower() for media_type in media_types] != ["application/json"]:
        detail = "The body has another media type: send it with `Content-Type: application/json`."
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, detail)
    if "content-encoding" in request.headers:
        detail = "The body has a Content-Encoding: send it without compression."
        raise ApiError(Code.UNSUPPORTED_MEDIA_TYPE, detail)


def read_idempotency_key(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1 or not IDEMPOTENCY_KEY_PATTERN.fullmatch(keys[0]):
        raise invalid_request("", "send the header Idempotency-Key once, with 1 to 255 printable ASCII characters")
    return keys[0]
