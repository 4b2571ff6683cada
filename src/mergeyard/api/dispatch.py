"""Dispatches a request to its endpoint, with the checks in the order of the contract."""

from functools import partial
from urllib.parse import parse_qsl

from msgspec import UNSET, Struct

from mergeyard.api import auth, request_body
from mergeyard.api.endpoint import AccessControl, Call, Endpoint
from mergeyard.api.json_parser import parse_request
from mergeyard.api.large_bodies import Question, understood_by
from mergeyard.api.request_body import BodyReader, RequestBody, RequestHead, Route
from mergeyard.api.request_schemas import GetMergeQueueMetrics
from mergeyard.api.responses import Reply, invalid_request
from mergeyard.domain.access import Token
from mergeyard.ports.external import BodyParser
from mergeyard.ports.store import DuplicateRequest
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import is_owner, is_repository_name
from mergeyard.service.idempotency import IdempotentRequest


def parse_metrics_query(query: bytes) -> GetMergeQueueMetrics:
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise invalid_request("", "expected a query of `name=value` pairs in UTF-8") from None
    given = [(name, value) for name, value in pairs if name in ("repo", "repoHost")]
    parameters = dict(given)
    if len(parameters) != len(given):
        raise invalid_request("", "`repo` and `repoHost` must not be repeated in the query")
    request = GetMergeQueueMetrics(repo=parameters.get("repo", UNSET), repo_host=parameters.get("repoHost", UNSET))
    if (request.repo is UNSET) != (request.repo_host is UNSET):
        raise invalid_request("", "`repo` and `repoHost` must be given together in the query")
    if request.repo_filter is not None and not _is_valid_name(
        request.repo_filter.host, request.repo_filter.owner, request.repo_filter.name
    ):
        raise invalid_request("", "`repo` must be `owner/name`, and `repoHost` the name of its Git host")
    return request


def _is_valid_name(host: str, owner: str, name: str) -> bool:
    return bool(host) and is_owner(owner) and is_repository_name(name)


REPLAYED_HEADER = ((b"idempotency-replayed", b"true"),)


def build_body_route(
    endpoint: Endpoint, access: AccessControl, body_reader: BodyReader, body_parser: BodyParser | None = None
) -> Route:
    """Order of checks for a request with a body: token → media type → size → JSON → schema → scope → handler."""
    content_type = endpoint.media_type.encode()
    parse = partial(parse_request, endpoint.request, None)
    parse_large = partial(understood_by, body_parser, endpoint.request, Question(endpoint.name, repeatable=False))
    parse_with_digest = partial(parse_request, endpoint.request, endpoint.path)
    parse_large_with_digest = partial(
        understood_by, body_parser, endpoint.request, Question(endpoint.name, repeatable=True)
    )

    async def route(request_head: RequestHead, body: RequestBody) -> Reply:
        token = await auth.authenticate(access, request_head)
        request_body.require_json(request_head)
        if endpoint.writes and b"idempotency-key" in request_head.values:
            request, digest = await body_reader.read(body, parse_with_digest, parse_large_with_digest)
        else:
            request, digest = await body_reader.read(body, parse, parse_large)
        with auth.log_missing_scope(access, token, request_head):
            auth.require_scope(token, endpoint.scope)
            if digest is None:
                return Reply(
                    await endpoint.handler(Call(token, request, request_head.request_id)), content_type=content_type
                )
            return await _run_idempotently(endpoint, access, token, request_head, request, digest)

    return route


def build_query_route(endpoint: Endpoint, access: AccessControl) -> Route:
    async def route(request_head: RequestHead, _: RequestBody) -> Reply:
        token = await auth.authenticate(access, request_head)
        request = parse_metrics_query(request_head.query)
        with auth.log_missing_scope(access, token, request_head):
            auth.require_scope(token, endpoint.scope)
            response = await endpoint.handler(Call(token, request, request_head.request_id))
        return Reply(response, content_type=endpoint.media_type.encode())

    return route


async def _run_idempotently(
    endpoint: Endpoint, access: AccessControl, token: Token, request_head: RequestHead, request: Struct, digest: bytes
) -> Reply:
    """Runs the handler, or replays the stored response of an earlier request with the same idempotency key.

    A refusal can be the effect of the same request, completed by another replica meanwhile (for example
    `queue_already_exists`), so the stored response is looked up once more before the refusal is sent.
    """
    key = request_body.read_idempotency_key(request_head)
    assert key is not None
    idempotent_request = IdempotentRequest(token.id, key, digest)
    call = Call(token, request, request_head.request_id, idempotent_request)
    async with access.execute_once(idempotent_request) as stored:
        if stored is not None:
            return await _replay(endpoint, call, stored)
        try:
            return Reply(await endpoint.handler(call))
        except (DuplicateRequest, RequestRefused):
            completed = await access.find_stored_response(idempotent_request)
            if completed is None:
                raise
            return await _replay(endpoint, call, completed)


async def _replay(endpoint: Endpoint, call: Call, response: bytes) -> Reply:
    await endpoint.wait_for_effect(call)
    return Reply(response, headers=REPLAYED_HEADER)
