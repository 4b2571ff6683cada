"""Speaks HTTP below the application: what never becomes a request is refused in the same shape as all the rest."""

import asyncio
from http import HTTPStatus
from secrets import token_hex

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mergeyard.api.errors import ApiError, misfit
from mergeyard.api.head import ADDRESS_BYTES, HEADER_BYTES, address_too_long, head_too_slow, headers_too_large
from mergeyard.api.reply import Reply, refusal

LINGERING_SECONDS = 1.0
LINGERING_BYTES = 1024 * 1024
"""What is still read after a refusal, so that the client reads the answer and not a reset."""


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with a limit on what stands above the body."""

    refused: ApiError | None = None
    above: int | None = None
    """Bytes received of a head that is not complete yet."""
    lingering: int | None = None
    """Bytes received since the connection was given up."""
    head_seconds: float = 30.0
    """So long a client may take to the end of its headers; one that never began is not answered."""
    too_slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.lingering is not None:
            self._linger(len(data))
            return
        super().data_received(data)
        if self.above is None or self.lingering is not None:
            return
        self.above += len(data)
        self._await_head()
        if self.above > ADDRESS_BYTES + HEADER_BYTES:
            self.refused = headers_too_large()
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        self.above = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self.refused = address_too_long()
            raise self.refused

    def on_headers_complete(self) -> None:
        self.above = None
        self._head_is_there()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Called for whatever the parser refuses, also because a method above raised."""
        refused = self.refused or misfit("", msg.rstrip("."))
        self.transport.write(_written(refusal(refused, request_id := token_hex(16)), request_id))
        self._give_up()

    def _await_head(self) -> None:
        if self.too_slow is None:
            self.too_slow = self.loop.call_later(self.head_seconds, self._head_did_not_come)

    def _head_is_there(self) -> None:
        if self.too_slow is not None:
            self.too_slow.cancel()
            self.too_slow = None

    def _head_did_not_come(self) -> None:
        if self.above is None:
            self.transport.close()
        elif self.lingering is None:
            self.refused = head_too_slow()
            self.send_400_response("The headers did not come in time.")

    def _give_up(self) -> None:
        self.lingering = 0
        if self.cycle and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGERING_SECONDS, self.transport.close)

    def _linger(self, received: int) -> None:
        self.lingering = (self.lingering or 0) + received
        if self.lingering > LINGERING_BYTES:
            self.transport.close()


def _written(reply: Reply, request_id: str) -> bytes:
    return (
        b"HTTP/1.1 %d %s\r\n" % (reply.status, HTTPStatus(reply.status).phrase.encode())
        + b"content-type: %s\r\ncontent-length: %d\r\n" % (reply.content_type, len(reply.body))
        + b"x-request-id: %s\r\nconnection: close\r\n\r\n" % request_id.encode()
        + reply.body
    )
