"""Planned faults in front of a fake forge.

faults = Faults(app)
faults.plan(RespondsWith(503), "/repos/acme/app/pulls/1", times=2)
faults.plan(LosesResponse(), "/merge", method="PUT")
"""

import asyncio
import re
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from tests.support.http_server import App, Message, Receive, Scope, Send, read_body, respond

ALWAYS = 1_000_000


class Fault(Protocol):
    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None: ...


class RespondsWith(Struct, frozen=True):
    """Responds with this and does nothing: a 503, or a rate limit with its headers."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b'{"message": "planned fault"}'

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await read_body(receive)
        await respond(send, self.status, {"content-type": "application/json"} | self.headers, self.body)


class Hangs(Struct, frozen=True):
    """Does not respond until the client disconnects."""

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        while (await receive())["type"] != "http.disconnect":
            pass


class LosesResponse(Struct, frozen=True):
    """Handles the request, then breaks the connection before the response is complete."""

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, discard_message)
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


class RepeatsFirstResponse(Struct, frozen=True):
    """Repeats the first response to each request, whatever has changed since."""

    responses: dict[bytes, list[Message]] = field(default_factory=dict[bytes, list[Message]])

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["raw_path"] + b"?" + scope["query_string"]
        if key not in self.responses:
            messages = self.responses[key] = list[Message]()

            async def keep(message: Message) -> None:
                messages.append(message)

            await app(scope, receive, keep)
        for message in self.responses[key]:
            await send(message)


class PlannedFault(Struct):
    fault: Fault
    path: re.Pattern[str]
    method: str | None
    times: int

    def matches(self, scope: Scope) -> bool:
        method_matches = self.method in (None, scope["method"])
        return self.times > 0 and method_matches and self.path.search(scope["path"]) is not None


class Faults:
    def __init__(self, app: App) -> None:
        self.calls: list[str] = []
        """All requests, as `GET /path?query`."""
        self._app = app
        self._planned: list[PlannedFault] = []

    def plan(self, fault: Fault, path: str = "", *, method: str | None = None, times: int = 1) -> None:
        """Applies to the next `times` requests whose path matches the pattern."""
        self._planned.append(PlannedFault(fault, re.compile(path), method, times))

    def clear(self) -> None:
        self._planned.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode()
        self.calls.append(f"{scope['method']} {scope['path']}" + (f"?{query}" if query else ""))
        planned = next((planned for planned in self._planned if planned.matches(scope)), None)
        if planned is None:
            return await self._app(scope, receive, send)
        planned.times -= 1
        return await planned.fault.apply(self._app, scope, receive, send)


async def discard_message(message: Message) -> None:
    """Discards a message of a response that is lost."""


class ActsFirst(Struct, frozen=True):
    """Runs an action before the request is handled."""

    act: Callable[[], object]
    then: Fault | None = None
    """An additional fault."""

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.to_thread(self.act)
        if self.then is None:
            await app(scope, receive, send)
        else:
            await self.then.apply(app, scope, receive, send)


class AddsHeaders(Struct, frozen=True):
    """Adds headers to the response, in place of those with the same name."""

    headers: dict[str, str]

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        added = [(name.encode(), value.encode()) for name, value in self.headers.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].decode() not in self.headers]
                message["headers"] = [*kept, *added]
            await send(message)

        await app(scope, receive, send_with_headers)
