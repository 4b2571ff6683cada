"""A bare connection to a server: every byte is ours, and every answer is read to its end."""

import socket
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct, json

SECONDS = 20.0
"""Longer than any answer may take; a test that waits so long has failed."""


class Heard(Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        return json.decode(self.body)

    @property
    def verdict(self) -> tuple[int, str]:
        """The status, and the code that the one shape of errors has; none for what is well."""
        return self.status, self.problem.get("code", "") if self.body.startswith(b"{") else ""


class Wire:
    def __init__(self, url: str, seconds: float = SECONDS) -> None:
        there = urlsplit(url)
        self.socket = socket.create_connection((there.hostname or "", there.port or 0), seconds)
        self._heard = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._heard.close()
        self.socket.close()

    def say(self, *parts: bytes) -> Self:
        for part in parts:
            self.socket.sendall(part)
        return self

    def hear(self) -> Heard:
        """The next answer."""
        first = self._heard.readline()
        assert first.startswith(b"HTTP/1.1 "), first or "the connection ended without an answer"
        headers = dict[str, str]()
        while (line := self._heard.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(first.split()[1])
        if status == 100:
            return Heard(status, headers, b"")
        return Heard(status, headers, self._body(headers))

    def hear_out(self) -> list[Heard]:
        """All answers until the other side ends the connection."""
        answers = list[Heard]()
        while self._heard.peek(1):
            answers.append(self.hear())
        return answers

    def rest(self) -> bytes:
        """Whatever comes until the end, as it comes."""
        return self._heard.read()

    def leave(self) -> None:
        """Nothing more will be said."""
        self.socket.shutdown(socket.SHUT_WR)

    def _body(self, headers: dict[str, str]) -> bytes:
        if "transfer-encoding" not in headers:
            return self._heard.read(int(headers["content-length"]))
        body = b""
        while size := int(self._heard.readline(), 16):
            body += self._heard.read(size)
            self._heard.readline()
        self._heard.readline()
        return body
