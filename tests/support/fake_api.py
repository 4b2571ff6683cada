"""The API application with a fake backend: handlers that record calls, and one known token."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import uvicorn
from msgspec import json
from starlette.applications import Starlette

from mergeyard.api import openapi, pages, routes
from mergeyard.api.app import build_app
from mergeyard.api.auth import Authenticator
from mergeyard.api.dispatch import Dispatcher
from mergeyard.api.endpoint import Call, Handler
from mergeyard.api.request_body import BodyReader
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.timestamps import Instant
from mergeyard.service.audit_log import RefusalLog
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import Idempotency, IdempotentRequest
from mergeyard.service.tokens import Tokens, TokenUses
from tests.support.clock import ManualClock
from tests.support.http_server import listen_on_loopback

SECRET = "my_secret"
QUEUE: dict[str, Any] = {"repo": {"host": "git.local", "owner": "acme", "name": "app"}, "targetBranch": "main"}
PR: dict[str, Any] = QUEUE | {"pr": {"number": 12}}


def a_token(*scopes: Scope) -> Token:
    return Token(id="t1", name="tests", digest=b"", scopes=frozenset(scopes), created_at=Instant(0))


class FakeTokens:
    def __init__(self, token: Token) -> None:
        self._token = token

    async def find(self, secret: bytes) -> Token | None:
        return self._token if secret == SECRET.encode() else None

    def record(self, token: Token, address: str) -> None:
        """Uses are not recorded."""


class FakeIdempotency:
    def __init__(self) -> None:
        self.responses: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    async def find_response(self, request: IdempotentRequest) -> bytes | None:
        return self.responses.get((request.token_id, request.key), (request.digest, None))[1]

    @asynccontextmanager
    async def execute_once(self, request: IdempotentRequest) -> AsyncGenerator[bytes | None]:
        digest, response = self.responses.get((request.token_id, request.key), (request.digest, None))
        if digest != request.digest:
            raise RequestRefused(Code.IDEMPOTENCY_KEY_REUSED, "Send another key.")
        yield response


class FakeBackend:
    """The part behind the API: known tokens, stored responses and recorded calls."""

    def __init__(self, *scopes: Scope, error: Exception | None = None) -> None:
        self.token = a_token(*(scopes or Scope))
        self.idempotency = FakeIdempotency()
        self.calls: list[Call] = []
        self.error = error
        self.readiness_error: Exception | None = None
        self.readiness_checks = 0
        self.clock = ManualClock()

    async def handle(self, call: Call) -> bytes:
        if self.error is not None:
            raise self.error
        self.calls.append(call)
        response = json.encode({"answer": len(self.calls)})
        if call.idempotent_request is not None:
            self.idempotency.responses[call.idempotent_request.token_id, call.idempotent_request.key] = (
                call.idempotent_request.digest,
                response,
            )
        return response

    async def check_ready(self) -> None:
        self.readiness_checks += 1
        if self.readiness_error is not None:
            raise self.readiness_error

    def application(self, body_reader: BodyReader | None = None, handler: Handler | None = None) -> Starlette:
        tokens = FakeTokens(self.token)
        authenticator = Authenticator(
            cast(Tokens, tokens), cast(TokenUses, tokens), RefusalLog(self.clock, Background(self.clock)), self.clock
        )
        endpoints = routes.build_endpoints(dict.fromkeys(routes.TABLE, handler or self.handle))
        dispatcher = Dispatcher(authenticator, cast(Idempotency, self.idempotency), body_reader)
        return build_app(
            [
                *(dispatcher.build_route(endpoint) for endpoint in endpoints),
                *pages.Probes(self.check_ready, self.clock).routes(),
                pages.metrics_route(lambda: b"up 1\n", authenticator),
                *pages.docs_routes(json.encode(openapi.build_document(endpoints))),
            ]
        )


@asynccontextmanager
async def a_client(backend: FakeBackend, body_reader: BodyReader | None = None) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=backend.application(body_reader))
    async with httpx2.AsyncClient(transport=transport, base_url="http://mergeyard") as client:
        yield client


def send_post(
    path: str, body: Any = None, *, backend: FakeBackend | None = None, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    """One POST with a valid token, unless the headers contain another."""

    async def send() -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.encode(PR if body is None else body)
        default_headers = {"x-api-token": SECRET, "content-type": "application/json"}
        async with a_client(backend or FakeBackend()) as client:
            return await client.post(f"/v1/{path}", content=content, headers=default_headers | dict(headers or {}))

    return asyncio.run(send())


def send_get(
    path: str, *, backend: FakeBackend | None = None, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    async def send() -> httpx2.Response:
        async with a_client(backend or FakeBackend()) as client:
            return await client.get(path, headers=headers or {"x-api-token": SECRET})

    return asyncio.run(send())


SocketExchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def exchange_over_socket(exchange: SocketExchange, backend: FakeBackend) -> None:
    """Serves the application on a free loopback port and runs the exchange on one connection."""

    async def run() -> None:
        listening = listen_on_loopback()
        config = uvicorn.Config(backend.application(), ws="none", log_config=None, lifespan="off")
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
