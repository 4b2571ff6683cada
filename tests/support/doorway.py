"""Lets others come in over HTTP to an application that lives in the event loop of a test."""

import asyncio
from collections.abc import Callable

from tests.support.forges.serving import App, Message, Receive, Scope, Send, Serving, body_of


class Doorway:
    """Listens in a thread of its own, and passes every request on as a whole."""

    def __init__(self, application: Callable[[], App]) -> None:
        self._application = application
        self._loop = asyncio.get_running_loop()
        self._serving = Serving(self)
        self.url = self._serving.url

    def close(self) -> None:
        self._serving.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(receive)
        asked = asyncio.run_coroutine_threadsafe(self._ask(scope, body), self._loop)
        for message in await asyncio.wrap_future(asked):
            await send(message)

    async def _ask(self, scope: Scope, body: bytes) -> list[Message]:
        said = list[Message]()

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            said.append(message)

        await self._application()(scope, receive, send)
        return said
