"""Runs an ASGI application on a loopback port, in its own thread."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SHUTDOWN_TIMEOUT_S = 1
KEEP_ALIVE_TIMEOUT_S = 3600
"""So long that the client always closes first: a request on a connection that the server closes would be lost."""


def listen_on_loopback() -> socket.socket:
    """Connections inherit TCP_NODELAY. asyncio sets it only where the socket's protocol is given, which it is not here;
    without it, the body of each response waits 40 ms until the client has confirmed the headers."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class ThreadedServer:
    """Listens as soon as it is constructed; connections before the server runs wait in the backlog."""

    def __init__(self, app: App, protocol: type[HttpToolsProtocol] = HttpToolsProtocol) -> None:
        self._socket = listen_on_loopback()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            app,
            http=protocol,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_TIMEOUT_S,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run, name=f"serving {self.url}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def stop(self) -> None:
        """Asks the server to end and does not wait for it."""
        self._server.should_exit = True


@contextmanager
def serve_in_thread(app: App, protocol: type[HttpToolsProtocol] = HttpToolsProtocol) -> Generator[str]:
    """Yields the URL."""
    serving = ThreadedServer(app, protocol)
    try:
        yield serving.url
    finally:
        serving.stop()


async def read_body(receive: Receive) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


async def respond(send: Send, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def read_headers(scope: Scope) -> dict[str, str]:
    """Headers by lower-case name."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


class BridgeServer:
    """Listens in a thread and forwards each request, with its whole body, to the application in the test's loop."""

    def __init__(self, application: Callable[[], App]) -> None:
        self._application = application
        self._loop = asyncio.get_running_loop()
        self._serving = ThreadedServer(self)
        self.url = self._serving.url

    def close(self) -> None:
        self._serving.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        future = asyncio.run_coroutine_threadsafe(self._call(scope, body), self._loop)
        for message in await asyncio.wrap_future(future):
            await send(message)

    async def _call(self, scope: Scope, body: bytes) -> list[Message]:
        messages = list[Message]()

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            messages.append(message)

        await self._application()(scope, receive, send)
        return messages
