"""The HTTP protocol of the server: limits what a client can send before the application sees a request.

Uvicorn limits neither the size of headers nor the time that they take, and httptools gives a header to Python only when
it is complete. So the bytes are counted here as they arrive, and the count starts again with each part of a request
that the parser completes.
"""

from asyncio import TimerHandle, Transport
from http import HTTPStatus
from random import getrandbits
from typing import Any

from msgspec import json
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mergeyard.api.responses import ERROR_KINDS, JSON, Problem
from mergeyard.service.errors import Code

MAX_HEADER_BYTES = 64 * 1024
"""Of the address and all headers. The shipped proxy has the same limit."""
HEADER_TIMEOUT_S = 10.0
"""From the first byte of a request, or from the start of the connection, to the end of the headers."""
HEADER_SEPARATOR_BYTES = len(": \r\n")

TOO_LARGE = f"The address and the headers have more than {MAX_HEADER_BYTES // 1024} KiB: send fewer or shorter headers."
TOO_SLOW = f"The headers did not arrive within {HEADER_TIMEOUT_S:.0f} seconds: send the request in one piece."
MALFORMED = "The request is not valid HTTP: check the program that sends it."


class HeadersTooLarge(Exception):
    """Makes the parser stop before the request reaches the application."""


class LimitedProtocol(HttpToolsProtocol):
    header_timeout_s = HEADER_TIMEOUT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_body = False
        self._held_bytes = 0
        """Received since the parser last completed a part of a request."""
        self._refusal = (Code.INVALID_REQUEST, MALFORMED)
        self._header_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._held_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._held_bytes > MAX_HEADER_BYTES:
            self._refuse(Code.HEADERS_TOO_LARGE, TOO_LARGE)
        elif self._held_bytes and not self._is_in_body:
            # Uvicorn no longer counts the connection as idle, also after a blank line that begins no request.
            self._start_header_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_header_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are not added to the headers: a proxy in front has checked only those."""
        if not self._is_in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        sizes = (len(name) + len(value) + HEADER_SEPARATOR_BYTES for name, value in self.headers)
        if len(self.url) + sum(sizes) > MAX_HEADER_BYTES:
            self._refusal = (Code.HEADERS_TOO_LARGE, TOO_LARGE)
            raise HeadersTooLarge  # the parser reports it as an invalid request
        self._is_in_body = True
        self._held_bytes = 0
        self._stop_header_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._held_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._held_bytes = 0
        super().on_message_complete()

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_timeout_s, self._end_slow_headers)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _end_slow_headers(self) -> None:
        self._header_timer = None
        if self.transport.is_closing():
            return
        if self._is_responding:
            return  # to an earlier request: afterwards, uvicorn closes the connection as an idle one
        if self._held_bytes:
            self._refuse(Code.REQUEST_TIMEOUT, TOO_SLOW)
        else:
            self.transport.close()  # browsers open connections ahead: they expect no response on these

    @property
    def _is_responding(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Uvicorn calls it for a request that the parser refuses."""
        self._refuse(*self._refusal)

    def _refuse(self, code: Code, detail: str) -> None:
        """Responds, unless a response to an earlier request has begun, and closes the connection."""
        self._stop_header_timer()
        if not (self._is_responding and self.cycle.response_started):
            self.transport.write(self._build_refusal(code, detail))
        self.transport.close()

    def _build_refusal(self, code: Code, detail: str) -> bytes:
        kind = ERROR_KINDS[code]
        request_id = f"{getrandbits(128):032x}"
        body = json.encode(
            Problem(
                title=kind.title,
                status=kind.status,
                code=code,
                detail=detail,
                request_id=request_id,
                retryable=kind.retryable,
            )
        )
        headers = [
            *self.server_state.default_headers,
            (b"content-type", JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return STATUS_LINE[HTTPStatus(kind.status)] + lines + b"\r\n" + body
