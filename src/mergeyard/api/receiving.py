"""Receives bodies: counted while they stream, within a deadline, and the large ones a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from mergeyard.api.errors import ApiError
from mergeyard.api.head import Head
from mergeyard.service.errors import Code

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

LIMIT = 20 * 1024 * 1024
SMALL = 256 * 1024
"""Up to this size a body is understood at once; a larger one would hold everybody up, and goes to a thread."""
DISCARDED = 64 * 1024
"""So small a rest the server reads past by itself, and the connection lives on."""
DRAINED_BYTES = 32 * 1024 * 1024
DRAINED_SECONDS = 10.0
"""More than the limit, so that a client that writes first and reads then finds the answer, and not a reset."""


class Disconnected(Exception):
    """The client went away, so there is nobody to answer."""


class Body:
    def __init__(self, receive: Receive, head: Head, whole: bytes | None = None) -> None:
        """`whole` is all of it, where all of it has come already."""
        self._receive = receive
        self._declared = head.values.get(b"content-length")
        self._chunked = b"transfer-encoding" in head.values
        self._waits = head.get(b"expect").lower() == b"100-continue"
        self.content = bytearray(whole or b"")
        self.finished = whole is not None

    async def collect(self, at_most: int) -> None:
        """Receives until it is there or has more than `at_most`. More than the limit is refused."""
        self._refuse_declared()
        while not self.finished and len(self.content) <= at_most:
            self.content += await self._next()
            if len(self.content) > LIMIT:
                raise too_large()

    def handed_over(self) -> bytearray:
        """All of it, which is held here no longer."""
        content, self.content = self.content, bytearray()
        return content

    @property
    def passes_by_itself(self) -> bool:
        """Nothing is left of it, or so little that the connection may go on."""
        return self.finished or (not self._chunked and (self._length or 0) <= DISCARDED)

    async def drain(self) -> None:
        drained = 0
        with suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(DRAINED_SECONDS):
                while not self.finished and not self._waits and drained < DRAINED_BYTES:
                    drained += len(await self._next())

    @property
    def _length(self) -> int | None:
        # The first digits suffice: a length with more of them is beyond every limit.
        return int(self._declared[:19]) if self._declared is not None and self._declared.isdigit() else None

    def _refuse_declared(self) -> None:
        if self._length is not None and self._length > LIMIT:
            raise too_large()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._waits = False
        self.finished = not message.get("more_body", False)
        return message.get("body", b"")


def too_large() -> ApiError:
    return ApiError(
        Code.BODY_TOO_LARGE,
        'The body has more than 20 MiB: send less; a list of targets that long can be sent as "ALL".',
    )


class Reception:
    def __init__(self, *, seconds: float = 60.0, large_at_once: int = 8, understood_at_once: int = 1) -> None:
        self._seconds = seconds
        self._large = asyncio.Semaphore(large_at_once)
        self._understood = asyncio.Semaphore(understood_at_once)

    async def understood(
        self, body: Body, understand: Callable[[bytes], T], aside: Callable[[bytearray], T] | None = None
    ) -> T:
        """What the whole body means. The large ones wait for a place before they take up memory; on a thread they are
        understood `aside`, where there is another way for them."""
        deadline = asyncio.get_running_loop().time() + self._seconds
        if not body.finished:
            await self._in_time(deadline, body.collect(SMALL))
        if body.finished and len(body.content) <= SMALL:
            return understand(bytes(body.content))
        await self._in_time(deadline, self._large.acquire())
        try:
            await self._in_time(deadline, body.collect(LIMIT))
            async with self._understood:
                if aside is None:
                    return await asyncio.to_thread(understand, bytes(body.content))
                return await asyncio.to_thread(aside, body.handed_over())
        finally:
            self._large.release()

    async def _in_time(self, deadline: float, receiving: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await receiving
        except TimeoutError:
            words = f"The body was not there after {self._seconds:g} s: send it again, on a better line or in parts."
            raise ApiError(Code.REQUEST_TIMEOUT, words) from None
