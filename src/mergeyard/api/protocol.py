"""Speaks HTTP below the application: what never becomes a request is refused in the same shape as all the rest."""

import asyncio
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mergeyard.api import at_once, head
from mergeyard.api.errors import ApiError, misfit
from mergeyard.api.head import ADDRESS_BYTES, HEADER_BYTES, new_request_id
from mergeyard.api.patience import Deadline, Taking
from mergeyard.api.reply import refusal, written

LINGERING_SECONDS = 1.0
LINGERING_BYTES = 1024 * 1024
"""What is still read after a refusal, so that the client reads the answer and not a reset."""
VERSIONS = ("1.1", "1.0")


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with limits: on what is no body, on how long a client takes, and on how many there are."""

    head_seconds: float = 30.0
    """So long a client may take to the end of its headers; one that never began is not answered."""
    rest_seconds: float = 10.0
    """And to the end of a body that nobody wanted."""
    taking_seconds: float = 20.0
    """So often it is looked whether a client takes the answer."""
    silent_seconds: int = 75
    """So long a connection is kept between two requests: a proxy keeps its own for a minute, and what it sends over one
    that we are just closing would be lost."""
    most_connections: int = 2048

    in_head = in_body = False
    """Of the request that is being received, if one has begun."""
    overhead = 0
    """Bytes received since the last that led to anything."""
    has_led_on = False
    trailing = 0
    """Bytes of headers that follow the body."""
    refused: ApiError | None = None
    put_off: ApiError | None = None
    """Told when all who asked before are answered."""
    lingering: int | None = None
    """Bytes received since the connection was given up."""
    answering: RequestResponseCycle | None = None

    # The line

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.timeout_keep_alive = self.silent_seconds
        self.head_due = Deadline(self.loop, self.head_seconds, self._head_did_not_come)
        self.rest_due = Deadline(self.loop, self.rest_seconds, self._close)
        self.taking = Taking(self.loop, self.taking_seconds, transport)
        self.head_due.begin()
        if len(self.connections) > self.most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self.head_due, self.rest_due, self.taking):
            waiting.end()
        if self.answering is not None and not self.answering.response_complete:
            self.answering.disconnected = True
            self.answering.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.taking.watch()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def data_received(self, data: bytes) -> None:
        if self.lingering is not None:
            self._linger(len(data))
            return
        self._unset_keepalive_if_required()
        self.has_led_on = False
        self.overhead += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(self.refused or misfit("", "this is not how HTTP is spoken"))
            return
        if self.has_led_on:
            self.overhead = 0
        elif self.overhead > ADDRESS_BYTES + HEADER_BYTES:
            self._refuse(head.headers_too_large())
            return
        if self.in_head or self._owes_a_request:
            self.head_due.begin()

    def _parse(self, data: bytes) -> None:
        """Nobody changes to another protocol here: who wishes to is read as if they had not said so."""
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:
                plain = b"".join(b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade")
                asked = (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                data = b"%b %b HTTP/%b\r\n" % asked + plain + b"\r\n" + data[wish.args[0] :]
            else:
                return

    # What the parser finds

    def on_message_begin(self) -> None:
        self.in_head = True
        self.trailing = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self._stop(head.address_too_long())

    def on_header(self, name: bytes, value: bytes) -> None:
        """What follows the body means nothing: it comes after all was decided."""
        if self.in_head:
            super().on_header(name, value)
            return
        self.trailing += len(name) + len(value)
        if self.trailing > HEADER_BYTES:
            self._stop(head.headers_too_large())

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            return
        self._refuse_too_much()
        self._refuse_other_framing()
        super().on_headers_complete()
        self.in_head, self.in_body, self.has_led_on = False, True, True
        self.head_due.end()

    def on_body(self, body: bytes) -> None:
        self.has_led_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.in_body:
            self.in_body = False
            self.rest_due.end()
            super().on_message_complete()

    def _refuse_too_much(self) -> None:
        if self.overhead <= HEADER_BYTES:
            return
        if sum(len(name) + len(value) + 4 for name, value in self.headers) > HEADER_BYTES:
            self._stop(head.headers_too_large())

    def _refuse_other_framing(self) -> None:
        version = self.parser.get_http_version()
        if self.parser.get_method() == b"CONNECT":
            self._stop(misfit("", "this server leads nowhere else"))
        if version not in VERSIONS:
            self._stop(misfit("", "this server speaks HTTP/1.1"))
        if b"transfer-encoding" in dict(self.headers):
            encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if encodings != [b"chunked"] or version == "1.0":
                self._stop(misfit("", "the only Transfer-Encoding is chunked, in HTTP/1.1"))

    def _stop(self, refused: ApiError) -> None:
        """The parser ends when it is raised, and tells nobody what it was."""
        self.refused = refused
        raise refused

    # Answers, in the order of the questions

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.answering = cycle
        at_once.offer(cycle)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if self.transport.is_closing():
            self.taking.watch()
        elif was_last and self.put_off is not None:
            self._tell(self.put_off)
        elif was_last and self.in_body:
            self.rest_due.begin()

    def _refuse(self, refused: ApiError) -> None:
        self.lingering = 0
        self.head_due.end()
        if self.in_body and self.answering is self.cycle:
            self._refuse_instead_of_answering(refused)
            return
        if self.in_body:
            self.pipeline.popleft()
        if self.answering is None or self.answering.response_complete:
            self._tell(refused)
        else:
            self.put_off = refused

    def _refuse_instead_of_answering(self, refused: ApiError) -> None:
        """Unless the answer is on its way already."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if self.cycle.response_started:
            self._give_up()
        else:
            self._tell(refused)

    def _tell(self, refused: ApiError) -> None:
        last_words = written(refusal(refused, request_id := new_request_id()), request_id, (b"connection", b"close"))
        self.transport.write(last_words)
        self._give_up()

    # Those who take too long, and too many of them

    @property
    def _owes_a_request(self) -> bool:
        return not self.in_body and (self.answering is None or self.answering.response_complete)

    def _head_did_not_come(self) -> None:
        self.head_due.end()
        if self.in_head:
            self._refuse(head.head_too_slow())
        else:
            self._close()

    @property
    def _idle_since(self) -> float | None:
        """None while a request is under way."""
        if self.head_due.at is not None:
            return self.head_due.at - self.head_seconds
        kept = self.timeout_keep_alive_task
        return None if kept is None else kept.when() - self.timeout_keep_alive

    def _make_room(self) -> None:
        """Whoever owes us a request for the longest goes; if nobody does, whoever came last."""
        others = cast(set[Protocol], self.connections) - {self}
        idle = {other: other._idle_since for other in others if not other.transport.is_closing()}
        since = {other: at for other, at in idle.items() if at is not None}
        if since:
            min(since, key=since.__getitem__).transport.abort()
        else:
            self._refuse(head.too_many_connections())

    def _close(self) -> None:
        self.transport.close()
        self.taking.watch()

    def _give_up(self) -> None:
        self.lingering = 0
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGERING_SECONDS, self.transport.abort)

    def _linger(self, received: int) -> None:
        self.lingering = (self.lingering or 0) + received
        if self.lingering > LINGERING_BYTES:
            self.transport.abort()
