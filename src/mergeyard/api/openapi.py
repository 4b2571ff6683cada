"""Draws the OpenAPI document from the table of endpoints and the structs of the wire."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Any, cast

from msgspec import json

from mergeyard import __version__
from mergeyard.api import wire
from mergeyard.api.endpoint import Endpoint
from mergeyard.api.errors import KINDS
from mergeyard.api.examples import EXAMPLES
from mergeyard.api.reply import Problem
from mergeyard.service.errors import Code

Schema = dict[str, Any]

REF = "#/components/schemas/{name}"
ALWAYS = (
    Code.INVALID_REQUEST,
    Code.MISSING_TOKEN,
    Code.INVALID_TOKEN,
    Code.INSUFFICIENT_SCOPE,
    Code.URI_TOO_LONG,
    Code.HEADERS_TOO_LARGE,
    Code.RATE_LIMITED,
    Code.INTERNAL_ERROR,
    Code.STORAGE_UNAVAILABLE,
)
WITH_A_BODY = (
    Code.INVALID_JSON,
    Code.DUPLICATE_KEY,
    Code.JSON_TOO_DEEP,
    Code.JSON_TOO_COMPLEX,
    Code.INVALID_STRING,
    Code.REQUEST_TIMEOUT,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
)
WITH_A_KEY = (Code.IDEMPOTENCY_KEY_REUSED,)
KEY_PARAMETER: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Send the same key with the same request again, and it has no second effect; kept for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}
REQUEST_ID: Schema = {"description": "Names this request in logs and errors.", "schema": {"type": "string"}}


def document(endpoints: Sequence[Endpoint]) -> Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mergeyard",
            "version": __version__,
            "summary": "A merge queue: the bytes that were tested are the bytes that land.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/v1"}],
        "security": [{"token": []}],
        "paths": {f"/{endpoint.name}": {endpoint.method.lower(): _operation(endpoint)} for endpoint in endpoints},
        "components": {
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "x-api-token"}},
            "schemas": _schemas(endpoints),
        },
    }


def _operation(endpoint: Endpoint) -> Schema:
    operation: Schema = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"Needs a token with the scope `{endpoint.scope}`.",
        "parameters": _parameters(endpoint),
        "responses": {"200": _answer(endpoint)} | _refusals(endpoint),
        "x-scope": endpoint.scope,
    }
    if endpoint.method == "POST":
        content = {"schema": _ref(endpoint.request.__name__), "example": EXAMPLES[endpoint.name].request}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _parameters(endpoint: Endpoint) -> list[Schema]:
    if endpoint.method == "GET":
        members = _components((endpoint.request,))[endpoint.request.__name__]["properties"]
        return [_query(name, **schema) for name, schema in members.items()]
    return [KEY_PARAMETER] if endpoint.writes else []


def _query(name: str, description: str, **schema: Any) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _answer(endpoint: Endpoint) -> Schema:
    schema = {"type": "string"} if endpoint.answer is None else _ref(endpoint.answer.__name__)
    content = {"schema": schema, "example": EXAMPLES[endpoint.name].answer}
    headers = {"x-request-id": REQUEST_ID}
    return {"description": "Done.", "headers": headers, "content": {endpoint.media_type: content}}


def codes(endpoint: Endpoint) -> tuple[Code, ...]:
    """Every code with which this endpoint may refuse."""
    body = WITH_A_BODY if endpoint.method == "POST" else ()
    return (*ALWAYS, *body, *(WITH_A_KEY if endpoint.writes else ()), *endpoint.refusals)


def _refusals(endpoint: Endpoint) -> Schema:
    by_status = sorted(dict.fromkeys(codes(endpoint)), key=lambda code: KINDS[code].status)
    return {
        str(status): _refusal(tuple(group)) for status, group in groupby(by_status, lambda code: KINDS[code].status)
    }


def _refusal(codes: tuple[Code, ...]) -> Schema:
    kind = KINDS[codes[0]]
    example = Problem(
        title=kind.title,
        status=kind.status,
        code=codes[0],
        detail=f"{kind.title}.",
        request_id="0f8fad5bd9cb469fa165708677289502",
        retryable=kind.retryable,
    )
    content: Schema = {"schema": _ref("Problem"), "example": json.decode(json.encode(example))}
    return {
        "description": " ".join(f"`{code}`" for code in codes),
        "headers": {"x-request-id": REQUEST_ID},
        "content": {"application/json": content, "application/problem+json": {"schema": _ref("Problem")}},
    }


def _schemas(endpoints: Iterable[Endpoint]) -> Schema:
    kinds: list[Any] = [Problem]
    for endpoint in endpoints:
        kinds += [endpoint.request] if endpoint.method == "POST" else []
        kinds += [endpoint.answer] if endpoint.answer else []
    return _components(tuple(kinds))


@cache
def _components(kinds: tuple[Any, ...]) -> Schema:
    """To draw them takes longer than all the rest, and they stay as they are."""
    _, components = json.schema_components(kinds, ref_template=REF)
    for kind in kinds:
        if kind.__struct_config__.forbid_unknown_fields:
            components[kind.__name__]["additionalProperties"] = False
    shown = cast(Schema, _as_shown(components))
    reached = _reached(shown, {kind.__name__ for kind in kinds})
    return {name: schema for name, schema in shown.items() if name in reached}


def _reached(schemas: Schema, names: set[str]) -> set[str]:
    """These, and all to which they refer."""
    referred = {ref.rpartition("/")[2] for name in names for ref in _refs(schemas[name])}
    return names if referred <= names else _reached(schemas, names | referred)


def _refs(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set[str]().union(*map(_refs, cast(list[Any], schema)))
    if not isinstance(schema, dict):
        return set()
    parts = cast(Schema, schema)
    own = {parts["$ref"]} if "$ref" in parts else set[str]()
    return own.union(*map(_refs, parts.values()))


def _as_shown(schema: Any) -> Any:
    """Kinds that are read otherwise than they are kept are shown as they are read."""
    if isinstance(schema, list):
        return [_as_shown(part) for part in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast(Schema, schema)
    if wire.SHOWN in parts:
        described = {key: parts[key] for key in ("description", "default") if key in parts}
        return described | parts[wire.SHOWN]
    return {key: _as_shown(part) for key, part in parts.items()}


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}
