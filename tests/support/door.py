"""A door with nobody behind it: handlers that remember what they were asked, and a doorkeeper that keeps its book."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from msgspec import json

from mergeyard.api import routes
from mergeyard.api.app import Application
from mergeyard.api.assembly import application, guarded_metrics
from mergeyard.api.endpoint import Call, Handler
from mergeyard.api.head import Head
from mergeyard.api.protocol import Protocol
from mergeyard.api.receiving import Reception
from mergeyard.domain.instants import Instant
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat

SECRET = "my_secret"
QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}
PR: dict[str, Any] = QUEUE | {"pr": {"number": 12}}


def a_token(*scopes: Scope) -> Token:
    return Token(id="t1", name="tests", digest=b"", scopes=frozenset(scopes), created_at=Instant(0))


class Yard:
    """Everything behind the door: who is known, what was answered, and what was asked."""

    def __init__(self, *scopes: Scope, trouble: Exception | None = None) -> None:
        self.tokens = {SECRET.encode(): a_token(*(scopes or Scope))}
        self.answers: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self.calls: list[Call] = []
        self.trouble = trouble
        self.unready: Exception | None = None

    async def token(self, secret: bytes, head: Head) -> Token | None:  # noqa: ARG002
        return self.tokens.get(secret)

    def scope_is_missing(self, token: Token, head: Head) -> None:
        """Not observed here."""

    async def kept(self, repeat: Repeat) -> bytes | None:
        return self.answers.get((repeat.token, repeat.key), (repeat.digest, None))[1]

    @asynccontextmanager
    async def once(self, repeat: Repeat) -> AsyncGenerator[bytes | None]:
        digest, answer = self.answers.get((repeat.token, repeat.key), (repeat.digest, None))
        if digest != repeat.digest:
            raise Refused(Code.IDEMPOTENCY_KEY_REUSED, "Send another key.")
        yield answer

    async def handle(self, call: Call) -> bytes:
        if self.trouble is not None:
            raise self.trouble
        self.calls.append(call)
        answer = json.encode({"answer": len(self.calls)})
        if call.repeat is not None:
            self.answers[call.repeat.token, call.repeat.key] = (call.repeat.digest, answer)
        return answer

    async def ready(self) -> None:
        if self.unready is not None:
            raise self.unready

    def application(self, reception: Reception | None = None, handler: Handler | None = None) -> Application:
        return application(
            routes.endpoints(dict.fromkeys(routes.TABLE, handler or self.handle)),
            self,
            ready=self.ready,
            own_metrics=guarded_metrics(lambda: b"up 1\n", self),
            reception=reception,
        )


@asynccontextmanager
async def a_client(yard: Yard, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=yard.application(**options))
    async with httpx.AsyncClient(transport=transport, base_url="http://yard") as client:
        yield client


def ask(
    path: str, body: Any = None, *, yard: Yard | None = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """One POST with a good token, unless the headers say otherwise."""

    async def asked() -> httpx.Response:
        content = body if isinstance(body, bytes) else json.encode(PR if body is None else body)
        own = {"x-api-token": SECRET, "content-type": "application/json"}
        async with a_client(yard or Yard()) as client:
            return await client.post(f"/v1/{path}", content=content, headers=own | dict(headers or {}))

    return asyncio.run(asked())


def get(path: str, *, yard: Yard | None = None, headers: Mapping[str, str] | None = None) -> httpx.Response:
    async def asked() -> httpx.Response:
        async with a_client(yard or Yard()) as client:
            return await client.get(path, headers=headers or {"x-api-token": SECRET})

    return asyncio.run(asked())


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def over_a_socket(talk: Talk, yard: Yard, protocol: type[Protocol] = Protocol) -> None:
    """Serves the door on a free port of this machine, and talks to it."""

    async def served() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(yard.application(), http=protocol, ws="none", log_config=None, lifespan="on")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            await talk(reader, writer)
        finally:
            writer.close()
            server.should_exit = True
            await serving

    asyncio.run(served())
