"""Speaks HTTP below the application: what never becomes a request is refused in the same shape as all the rest."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mergeyard.api import request_body
from mergeyard.api.request_body import MAX_HEADER_BYTES, MAX_URL_BYTES, new_request_id
from mergeyard.api.responses import ApiError, Reply, build_error_reply, encode_reply, invalid_request

EXTENSION = "mergeyard.at_once"
AtOnce = Callable[[Reply, str], bool]


def offer(cycle: RequestResponseCycle) -> None:
    """To the application, as an extension of ASGI."""

    def answer(reply: Reply, request_id: str) -> bool:
        if not _is_free(cycle):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.transport.write(encode_reply(reply, request_id, *cycle.default_headers))
        cycle.on_response()
        return True

    def body() -> bytes | None:
        return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)

    cycle.scope["extensions"] = {EXTENSION: {"answer": answer, "body": body}}


def offered(scope: Mapping[str, Any]) -> AtOnce:
    """By the server below, or nothing that ever answers."""
    return _extension(scope).get("answer", _never)


def body_of(scope: Mapping[str, Any]) -> bytes | None:
    """None: it has to be waited for."""
    return _extension(scope).get("body", _nothing)()


def _extension(scope: Mapping[str, Any]) -> Mapping[str, Any]:
    return scope.get("extensions", {}).get(EXTENSION, {})


def _is_free(cycle: RequestResponseCycle) -> bool:
    """The client is there and takes what it is sent, and the connection lives on after a whole answer."""
    return (
        cycle.keep_alive
        and not cycle.disconnected
        and not cycle.response_started
        and not cycle.flow.write_paused
        and cycle.scope["method"] != "HEAD"
    )


def _nothing() -> None:
    """Without the extension it is unknown what has arrived."""


def _never(_: Reply, __: str) -> bool:
    return False


LEAST_TAKEN = 16 * 1024
"""Bytes between two looks: who takes less of a long answer only holds our memory."""


class Deadline:
    """Acts when its time is over, unless what it waits for came before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Again and again, and still the first time counts."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._act)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def at(self) -> float | None:
        """None when nothing is waited for."""
        return None if self._timer is None else self._timer.when()


class Taking:
    """Looks now and then whether a client takes what it is sent, and breaks off when it does not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._next_look = Deadline(loop, seconds, self._look)
        self._left = 0

    def watch(self) -> None:
        if self._next_look.at is None:
            self._left = self._transport.get_write_buffer_size()
            self._next_look.begin()

    def end(self) -> None:
        self._next_look.end()

    def _look(self) -> None:
        self._next_look.end()
        left = self._transport.get_write_buffer_size()
        if not left:
            return
        if left > self._left - LEAST_TAKEN:
            self._transport.abort()
        else:
            self.watch()


LINGERING_SECONDS = 1.0
LINGERING_BYTES = 1024 * 1024
"""What is still read after a refusal, so that the client reads the answer and not a reset."""
VERSIONS = ("1.1", "1.0")


class Protocol(HttpToolsProtocol):
    """uvicorn's own, with limits: on what is no body, on how long a client takes, and on how many there are."""

    head_seconds: float = 30.0
    """So long a client may take to the end of its headers; one that never began is not answered."""
    rest_seconds: float = 10.0
    """And to the end of a body that is not read."""
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
            self._refuse(self.refused or invalid_request("", "this is not how HTTP is spoken"))
            return
        if self.has_led_on:
            self.overhead = 0
        elif self.overhead > MAX_URL_BYTES + MAX_HEADER_BYTES:
            self._refuse(request_body.headers_too_large())
            return
        if self.in_head or self._owes_a_request:
            self.head_due.begin()

    def _parse(self, data: bytes) -> None:
        """Protocol upgrades are not supported: the request is parsed again without its Upgrade header."""
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
        if len(self.url) > MAX_URL_BYTES:
            self._stop(request_body.url_too_long())

    def on_header(self, name: bytes, value: bytes) -> None:
        """What follows the body means nothing: it comes after all was decided."""
        if self.in_head:
            super().on_header(name, value)
            return
        self.trailing += len(name) + len(value)
        if self.trailing > MAX_HEADER_BYTES:
            self._stop(request_body.headers_too_large())

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
        if self.overhead <= MAX_HEADER_BYTES:
            return
        if sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEADER_BYTES:
            self._stop(request_body.headers_too_large())

    def _refuse_other_framing(self) -> None:
        version = self.parser.get_http_version()
        if self.parser.get_method() == b"CONNECT":
            self._stop(invalid_request("", "this server leads nowhere else"))
        if version not in VERSIONS:
            self._stop(invalid_request("", "this server speaks HTTP/1.1"))
        if b"transfer-encoding" in dict(self.headers):
            encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if encodings != [b"chunked"] or version == "1.0":
                self._stop(invalid_request("", "the only Transfer-Encoding is chunked, in HTTP/1.1"))

    def _stop(self, refused: ApiError) -> None:
        """The parser stops when this is raised and loses the exception, so it is stored."""
        self.refused = refused
        raise refused

    # Answers, in the order of the questions

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.answering = cycle
        offer(cycle)
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
        last_words = encode_reply(
            build_error_reply(refused, request_id := new_request_id()), request_id, (b"connection", b"close")
        )
        self.transport.write(last_words)
        self._give_up()

    # Those who take too long, and too many of them

    @property
    def _owes_a_request(self) -> bool:
        return not self.in_body and (self.answering is None or self.answering.response_complete)

    def _head_did_not_come(self) -> None:
        self.head_due.end()
        if self.in_head:
            self._refuse(request_body.head_too_slow())
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
        """Closes the connection that has been idle longest; if none is idle, refuses the new one."""
        others = cast(set[Protocol], self.connections) - {self}
        idle = {other: other._idle_since for other in others if not other.transport.is_closing()}
        since = {other: at for other, at in idle.items() if at is not None}
        if since:
            min(since, key=since.__getitem__).transport.abort()
        else:
            self._refuse(request_body.too_many_connections())

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
