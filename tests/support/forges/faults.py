"""Stands before a forge and lets go wrong what was planned to.

faults = Faults(app)
faults.plan(Answers(503), "/repos/acme/app/pulls/1", times=2)
faults.plan(LosesReply(), "/merge", method="PUT")
"""

import re
from typing import Protocol

from msgspec import Struct, field

from tests.support.forges.serving import App, Message, Receive, Scope, Send, answer, body_of

ALWAYS = 1_000_000


class Fault(Protocol):
    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None: ...


class Answers(Struct, frozen=True):
    """Something else than what was asked for, and nothing is done: a 503, a rate limit with its headers."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b'{"message": "planned trouble"}'

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await body_of(receive)
        await answer(send, self.status, {"content-type": "application/json"} | self.headers, self.body)


class Hangs(Struct, frozen=True):
    """Says nothing until the caller gives up."""

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        while (await receive())["type"] != "http.disconnect":
            pass


class LosesReply(Struct, frozen=True):
    """Does what was asked for, and hangs up."""

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, unheard)
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


class Stale(Struct, frozen=True):
    """Goes on giving the first answer that it gave, whatever has happened since."""

    told: dict[bytes, list[Message]] = field(default_factory=dict[bytes, list[Message]])

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        place = scope["raw_path"] + b"?" + scope["query_string"]
        if place not in self.told:
            messages = self.told[place] = list[Message]()

            async def keep(message: Message) -> None:
                messages.append(message)

            await app(scope, receive, keep)
        for message in self.told[place]:
            await send(message)


class Plan(Struct):
    fault: Fault
    path: re.Pattern[str]
    method: str | None
    times: int

    def meets(self, scope: Scope) -> bool:
        method_fits = self.method in (None, scope["method"])
        return self.times > 0 and method_fits and self.path.search(scope["path"]) is not None


class Faults:
    def __init__(self, app: App) -> None:
        self.calls: list[str] = []
        """Every request that came, as `GET /path?query`."""
        self._app = app
        self._plans: list[Plan] = []

    def plan(self, fault: Fault, path: str = "", *, method: str | None = None, times: int = 1) -> None:
        """Happens to the next so many requests whose path holds this pattern."""
        self._plans.append(Plan(fault, re.compile(path), method, times))

    def clear(self) -> None:
        self._plans.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode()
        self.calls.append(f"{scope['method']} {scope['path']}" + (f"?{query}" if query else ""))
        plan = next((plan for plan in self._plans if plan.meets(scope)), None)
        if plan is None:
            return await self._app(scope, receive, send)
        plan.times -= 1
        return await plan.fault.happen(self._app, scope, receive, send)


async def unheard(message: Message) -> None:
    """Where words go that nobody will hear."""
