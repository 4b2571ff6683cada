"""A raw connection to a server: the test sends every byte itself and reads whole responses."""

import socket
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct, json

TIMEOUT_S = 20.0
"""Longer than any response takes; a test that waits this long has failed."""


class RawResponse(Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        return json.decode(self.body)

    @property
    def status_and_code(self) -> tuple[int, str]:
        """The status and the error code; an empty code for a success."""
        return self.status, self.problem.get("code", "") if self.body.startswith(b"{") else ""


class RawConnection:
    def __init__(self, url: str, seconds: float = TIMEOUT_S) -> None:
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname or "", address.port or 0), seconds)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, *parts: bytes) -> Self:
        for part in parts:
            self.socket.sendall(part)
        return self

    def receive(self) -> RawResponse:
        """The next response."""
        first = self._file.readline()
        assert first.startswith(b"HTTP/1.1 "), first or "the connection was closed without a response"
        headers = dict[str, str]()
        while (line := self._file.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(first.split()[1])
        if status == 100:
            return RawResponse(status, headers, b"")
        return RawResponse(status, headers, self._body(headers))

    def receive_all(self) -> list[RawResponse]:
        """All responses until the server closes the connection, or resets it because it did not read all requests."""
        responses = list[RawResponse]()
        with suppress(ConnectionResetError):
            while self._file.peek(1):
                responses.append(self.receive())
        return responses

    def read_rest(self) -> bytes:
        """All remaining bytes."""
        return self._file.read()

    def close_sending(self) -> None:
        """Closes the sending side."""
        self.socket.shutdown(socket.SHUT_WR)

    def _body(self, headers: dict[str, str]) -> bytes:
        if "transfer-encoding" not in headers:
            return self._file.read(int(headers["content-length"]))
        body = b""
        while size := int(self._file.readline(), 16):
            body += self._file.read(size)
            self._file.readline()
        self._file.readline()
        return body
