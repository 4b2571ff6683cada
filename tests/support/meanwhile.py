"""Faults of forges that meddle with what is asked, or with what is answered."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from tests.support.forges.faults import Fault
from tests.support.forges.serving import App, Message, Receive, Scope, Send


class Meanwhile(Struct, frozen=True):
    """Something happens just before the request is answered."""

    act: Callable[[], object]
    then: Fault | None = None
    """What goes wrong besides."""

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.to_thread(self.act)
        if self.then is None:
            await app(scope, receive, send)
        else:
            await self.then.happen(app, scope, receive, send)


class Adds(Struct, frozen=True):
    """The answer carries these headers as well."""

    headers: dict[str, str]

    async def happen(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        added = [(name.encode(), value.encode()) for name, value in self.headers.items()]

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await app(scope, receive, adding)
