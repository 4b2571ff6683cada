"""Servers that the real one is compared with, each in its own process under the same uvicorn."""

import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import uvicorn
from msgspec import json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def echo_application(file: str, path: str) -> Starlette:
    """Starlette that reads the JSON of a request and responds with the JSON of the file: the minimum of an endpoint."""
    content = json.decode(Path(file).read_bytes())

    async def echo(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse(content)

    return Starlette(routes=[Route(path, echo, methods=["POST"])])


Message = MutableMapping[str, Any]
Application = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]


def plain_application(file: str) -> Application:
    """A function that reads the body of a request and responds with the file: the minimum of uvicorn."""
    content = Path(file).read_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]

    async def respond(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return respond


@contextmanager
def reference_server(factory: Callable[..., Any], *arguments: str) -> Generator[int]:
    """Runs the application that this function makes, and yields its port."""
    command = [sys.executable, "-m", __name__, factory.__module__, factory.__name__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def serve(module: str, factory: str, *arguments: str) -> None:
    application = getattr(import_module(module), factory)(*arguments)
    config = uvicorn.Config(application, http="httptools", loop="uvloop", log_config=None, access_log=False)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(*sys.argv[1:])
