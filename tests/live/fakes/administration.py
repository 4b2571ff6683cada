"""Requests of administrators that a fake does not serve itself, and a limit that it reaches on request."""

import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from tests.support.forges.faults import ALWAYS, Faults
from tests.support.http_server import App, Receive, Scope, Send, read_body, read_headers, respond

OWNER, SECOND = "kit-owner", "kit-second"
Answer = tuple[int, Any]


class Request(Struct, frozen=True):
    headers: dict[str, str]
    params: tuple[str, ...]
    body: dict[str, Any]


Handler = Callable[[Request], Answer | None]
"""None leaves the request, perhaps with another body, to the fake."""


class Administration:
    """Answers requests that the fake does not know."""

    def __init__(self, api_root: str) -> None:
        self._api_root = api_root
        self._handlers: list[tuple[str, re.Pattern[str], Handler]] = []

    def add(self, method: str, path: str, handler: Handler) -> None:
        """`*` in the path is a parameter."""
        pattern = re.escape(self._api_root + path).replace(r"\*", "([^/?]+)")
        self._handlers.append((method, re.compile(pattern), handler))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answers the request, or returns what the fake must read instead."""
        path = scope["raw_path"].decode().partition("?")[0]
        found = [
            (handler, match)
            for method, pattern, handler in self._handlers
            if method == scope["method"] and (match := pattern.fullmatch(path))
        ]
        if not found:
            return receive
        handler, match = found[0]
        raw = await read_body(receive)
        request = Request(read_headers(scope), tuple(map(unquote, match.groups())), json.loads(raw) if raw else {})
        answer = handler(request)
        if answer is not None:
            content = b"" if answer[1] is None else json.dumps(answer[1]).encode()
            await respond(send, answer[0], {"content-type": "application/json"}, content)
            return None

        async def read_again() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(request.body).encode(), "more_body": False}

        return read_again


class RequestLimiter:
    """A fault that refuses the requests of Mergeyard for some seconds, and tells it to wait."""

    def __init__(self, faults: Faults, status: int) -> None:
        """`status` is what the Git host answers beyond its limit."""
        self._faults = faults
        self._status = status
        self._seconds = 0.0
        self._refused: list[float] = []

    def start(self, seconds: float) -> None:
        """From the next request of Mergeyard on."""
        self._seconds = seconds
        self._faults.plan(self, times=ALWAYS)

    def count_late(self) -> int | None:
        """Requests that were under way with the first one do not count, which a third of the time leaves out."""
        return sum(at > self._refused[0] + self._seconds / 3 for at in self._refused) if self._refused else None

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        now, sender = time.monotonic(), read_headers(scope).get("user-agent", "")
        end = (self._refused[0] if self._refused else now) + self._seconds
        if sender != MERGEYARD or now >= end:
            return await app(scope, receive, send)
        self._refused.append(now)
        await read_body(receive)
        headers = {"content-type": "application/json", "retry-after": str(max(1, round(end - now)))}
        return await respond(send, self._status, headers, b'{"message": "You have exceeded a secondary rate limit."}')


MERGEYARD = "mergeyard"
"""How Mergeyard names itself in its requests to the API."""
