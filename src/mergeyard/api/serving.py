"""Serves one endpoint, in the order of checks that the contract promises."""

from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct

from mergeyard.api import door, head, query
from mergeyard.api.apart import Question, understood_by
from mergeyard.api.endpoint import Call, Doorkeeper, Endpoint
from mergeyard.api.head import Head
from mergeyard.api.receiving import Body, Reception
from mergeyard.api.reply import Reply
from mergeyard.api.understanding import understand
from mergeyard.domain.tokens import Token
from mergeyard.ports.scribe import Scribe
from mergeyard.ports.store import Answered
from mergeyard.service.errors import Refused
from mergeyard.service.repeating import Repeat

Route = Callable[[Head, Body], Awaitable[Reply]]

REPLAYED = ((b"idempotency-replayed", b"true"),)


def served(endpoint: Endpoint, doorkeeper: Doorkeeper, reception: Reception, scribe: Scribe | None = None) -> Route:
    """The way of a request with a body: token → media type → size → JSON → schema → scope → handler."""
    content_type = endpoint.media_type.encode()
    plainly = partial(understand, endpoint.request, None)
    plainly_apart = partial(understood_by, scribe, Question(endpoint.name, repeatable=False))
    repeatably = partial(understand, endpoint.request, endpoint.path)
    repeatably_apart = partial(understood_by, scribe, Question(endpoint.name, repeatable=True))

    async def route(above: Head, body: Body) -> Reply:
        token = await door.admitted(doorkeeper, above)
        head.refuse_other_media(above)
        if endpoint.writes and b"idempotency-key" in above.values:
            request, digest = await reception.understood(body, repeatably, repeatably_apart)
        else:
            request, digest = await reception.understood(body, plainly, plainly_apart)
        with door.scope_checked(doorkeeper, token, above):
            door.refuse_without(token, endpoint.scope)
            if digest is None:
                return Reply(await endpoint.handler(Call(token, request, above.request_id)), content_type=content_type)
            return await _once(endpoint, doorkeeper, token, above, request, digest)

    return route


def served_by_query(endpoint: Endpoint, doorkeeper: Doorkeeper) -> Route:
    async def route(above: Head, _: Body) -> Reply:
        token = await door.admitted(doorkeeper, above)
        request = query.metrics_request(above.query)
        with door.scope_checked(doorkeeper, token, above):
            door.refuse_without(token, endpoint.scope)
            answer = await endpoint.handler(Call(token, request, above.request_id))
        return Reply(answer, content_type=endpoint.media_type.encode())

    return route


async def _once(
    endpoint: Endpoint, doorkeeper: Doorkeeper, token: Token, above: Head, request: Struct, digest: bytes
) -> Reply:
    """What refuses a request may be its own twin, which another replica has just carried out."""
    key = head.idempotency_key(above)
    assert key is not None
    repeat = Repeat(token.id, key, digest)
    call = Call(token, request, above.request_id, repeat)
    async with doorkeeper.once(repeat) as stored:
        if stored is not None:
            return await _again(endpoint, call, stored)
        try:
            return Reply(await endpoint.handler(call))
        except (Answered, Refused):
            elsewhere = await doorkeeper.kept(repeat)
            if elsewhere is None:
                raise
            return await _again(endpoint, call, elsewhere)


async def _again(endpoint: Endpoint, call: Call, answer: bytes) -> Reply:
    await endpoint.settle(call)
    return Reply(answer, headers=REPLAYED)
