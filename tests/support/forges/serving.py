"""Runs an ASGI application on a loopback port, in a thread of its own."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SECONDS_FOR_LAST_WORDS = 1
SECONDS_OF_SILENCE = 3600
"""Whoever calls hangs up first: a call upon a line that is just being cut would be lost."""


class Serving:
    """Listens as soon as it is made; whoever comes before it is up waits in line."""

    def __init__(self, app: App) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            timeout_keep_alive=SECONDS_OF_SILENCE,
            timeout_graceful_shutdown=SECONDS_FOR_LAST_WORDS,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run, name=f"serving {self.url}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def stop(self) -> None:
        """It ends within moments, for which nobody waits."""
        self._server.should_exit = True


@contextmanager
def served(app: App) -> Generator[str]:
    """The address at which it answers."""
    serving = Serving(app)
    try:
        yield serving.url
    finally:
        serving.stop()


async def body_of(receive: Receive) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


async def answer(send: Send, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
