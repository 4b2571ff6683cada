"""Dispatches a request to its endpoint, with the checks in the order of the contract."""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.api.auth import Authenticator, require_scope
from mergeyard.api.endpoint import Call, Endpoint
from mergeyard.api.queues import parse_metrics_query
from mergeyard.api.request_body import BodyReader, read_idempotency_key, require_json
from mergeyard.api.responses import JSON, request_id
from mergeyard.api.validation import decode_request, decode_request_with_digest
from mergeyard.domain.access import Token
from mergeyard.ports.store import DuplicateRequest
from mergeyard.service.errors import RequestRefused
from mergeyard.service.idempotency import Idempotency, IdempotentRequest

REPLAYED_HEADER = {"idempotency-replayed": "true"}

RequestHandler = Callable[[Request], Awaitable[Response]]


class Dispatcher:
    def __init__(
        self, authenticator: Authenticator, idempotency: Idempotency, body_reader: BodyReader | None = None
    ) -> None:
        self._authenticator = authenticator
        self._idempotency = idempotency
        self._body_reader = body_reader or BodyReader()

    def build_route(self, endpoint: Endpoint) -> Route:
        handler = self._handle_query(endpoint) if endpoint.method == "GET" else self._handle_body(endpoint)
        return Route(endpoint.path, handler, methods=[endpoint.method])

    def _handle_body(self, endpoint: Endpoint) -> RequestHandler:
        """Order of checks for a request with a body: token → media type → size → JSON → schema → scope → handler."""

        def decode(body: bytes) -> tuple[Struct, None]:
            return decode_request(endpoint.request, body), None

        def decode_with_digest(body: bytes) -> tuple[Struct, bytes]:
            return decode_request_with_digest(endpoint.request, endpoint.path, body)

        async def handle(request: Request) -> Response:
            token = await self._authenticator.authenticate(request)
            require_json(request)
            is_repeatable = endpoint.writes and "idempotency-key" in request.headers
            body, digest = await self._body_reader.read(request, decode_with_digest if is_repeatable else decode)
            with self._authenticator.log_missing_scope(token, request):
                require_scope(token, endpoint.scope)
                if digest is not None:
                    return await self._run_idempotently(endpoint, token, request, body, digest)
                return await _respond(endpoint, Call(token, body, request_id(request)))

        return handle

    def _handle_query(self, endpoint: Endpoint) -> RequestHandler:
        async def handle(request: Request) -> Response:
            token = await self._authenticator.authenticate(request)
            query = parse_metrics_query(request.scope["query_string"])
            with self._authenticator.log_missing_scope(token, request):
                require_scope(token, endpoint.scope)
                return await _respond(endpoint, Call(token, query, request_id(request)))

        return handle

    async def _run_idempotently(
        self, endpoint: Endpoint, token: Token, request: Request, body: Struct, digest: bytes
    ) -> Response:
        """Runs the handler, or replays the stored response of an earlier request with the same idempotency key.

        A refusal can be the effect of the same request, completed by another replica meanwhile (for example
        `queue_already_exists`), so the stored response is looked up once more before the refusal is sent.
        """
        key = read_idempotency_key(request)
        assert key is not None
        idempotent_request = IdempotentRequest(token.id, key, digest)
        call = Call(token, body, request_id(request), idempotent_request)
        async with self._idempotency.execute_once(idempotent_request) as stored:
            if stored is not None:
                return await _replay(endpoint, call, stored)
            try:
                return await _respond(endpoint, call)
            except (DuplicateRequest, RequestRefused):
                completed = await self._idempotency.find_response(idempotent_request)
                if completed is None:
                    raise
                return await _replay(endpoint, call, completed)


async def _respond(endpoint: Endpoint, call: Call) -> Response:
    return Response(await endpoint.handler(call), media_type=endpoint.media_type)


async def _replay(endpoint: Endpoint, call: Call, response: bytes) -> Response:
    if endpoint.wait_for_effect is not None:
        await endpoint.wait_for_effect(call)
    return Response(response, headers=REPLAYED_HEADER, media_type=JSON)
