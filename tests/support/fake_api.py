"""The API application with a fake backend: handlers that record calls, and one known token."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from msgspec import json

from mergeyard.api import routes
from mergeyard.api.app import Application, authenticated_metrics_route, build_application
from mergeyard.api.endpoint import Call, Handler
from mergeyard.api.http_server import Protocol
from mergeyard.api.request_body import BodyReader, RequestHead
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.timestamps import Instant
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest

SECRET = "my_secret"
QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}
PR: dict[str, Any] = QUEUE | {"pr": {"number": 12}}


def a_token(*scopes: Scope) -> Token:
    return Token(id="t1", name="tests", digest=b"", scopes=frozenset(scopes), created_at=Instant(0))


class FakeBackend:
    """The part behind the API: known tokens, stored responses and recorded calls."""

    def __init__(self, *scopes: Scope, error: Exception | None = None) -> None:
        self.tokens = {SECRET.encode(): a_token(*(scopes or Scope))}
        self.responses: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self.calls: list[Call] = []
        self.error = error
        self.readiness_error: Exception | None = None

    async def find_token(self, secret: bytes, head: RequestHead) -> Token | None:  # noqa: ARG002
        return self.tokens.get(secret)

    def record_missing_scope(self, token: Token, head: RequestHead) -> None:
        """Not recorded."""

    async def find_stored_response(self, request: IdempotentRequest) -> bytes | None:
        return self.responses.get((request.token_id, request.key), (request.digest, None))[1]

    @asynccontextmanager
    async def execute_once(self, request: IdempotentRequest) -> AsyncGenerator[bytes | None]:
        digest, response = self.responses.get((request.token_id, request.key), (request.digest, None))
        if digest != request.digest:
            raise RequestRefused(Code.IDEMPOTENCY_KEY_REUSED, "Send another key.")
        yield response

    async def handle(self, call: Call) -> bytes:
        if self.error is not None:
            raise self.error
        self.calls.append(call)
        response = json.encode({"answer": len(self.calls)})
        if call.idempotent_request is not None:
            self.responses[call.idempotent_request.token_id, call.idempotent_request.key] = (
                call.idempotent_request.digest,
                response,
            )
        return response

    async def check_ready(self) -> None:
        if self.readiness_error is not None:
            raise self.readiness_error

    def application(self, body_reader: BodyReader | None = None, handler: Handler | None = None) -> Application:
        return build_application(
            routes.build_endpoints(dict.fromkeys(routes.TABLE, handler or self.handle)),
            self,
            check_ready=self.check_ready,
            metrics_route=authenticated_metrics_route(lambda: b"up 1\n", self),
            body_reader=body_reader,
        )


@asynccontextmanager
async def a_client(backend: FakeBackend, body_reader: BodyReader | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=backend.application(body_reader))
    async with httpx.AsyncClient(transport=transport, base_url="http://mergeyard") as client:
        yield client


def send_post(
    path: str, body: Any = None, *, backend: FakeBackend | None = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """One POST with a valid token, unless the headers contain another."""

    async def send() -> httpx.Response:
        content = body if isinstance(body, bytes) else json.encode(PR if body is None else body)
        default_headers = {"x-api-token": SECRET, "content-type": "application/json"}
        async with a_client(backend or FakeBackend()) as client:
            return await client.post(f"/v1/{path}", content=content, headers=default_headers | dict(headers or {}))

    return asyncio.run(send())


def send_get(
    path: str, *, backend: FakeBackend | None = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    async def send() -> httpx.Response:
        async with a_client(backend or FakeBackend()) as client:
            return await client.get(path, headers=headers or {"x-api-token": SECRET})

    return asyncio.run(send())


SocketExchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def exchange_over_socket(exchange: SocketExchange, backend: FakeBackend, protocol: type[Protocol] = Protocol) -> None:
    """Serves the application on a free loopback port and runs the exchange on one connection."""

    async def run() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(backend.application(), http=protocol, ws="none", log_config=None, lifespan="on")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            await exchange(reader, writer)
        finally:
            writer.close()
            server.should_exit = True
            await serving

    asyncio.run(run())
