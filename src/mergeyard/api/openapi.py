"""Generates the OpenAPI document from the table of endpoints and the request and response structs."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, json

from mergeyard import __version__
from mergeyard.api import request_schemas
from mergeyard.api.endpoint import Endpoint
from mergeyard.api.responses import ERROR_KINDS, Problem
from mergeyard.service.errors import Code

Schema = dict[str, Any]


class Example(Struct, frozen=True):
    """A request and its response; `make api-page` records them from a real service in `examples.json`."""

    request: Any
    """None if the endpoint takes no body."""
    response: Any


EXAMPLES_FILE = Path(__file__).with_name("examples.json")
EXAMPLES = json.decode(EXAMPLES_FILE.read_bytes(), type=dict[str, Example])
"""By the name of the endpoint."""

REF = "#/components/schemas/{name}"
COMPONENT_NAMES = {
    "Action": "PullRequestAction",
    "AssumptionKind": "ReplayAssumptionKind",
    "Code": "ErrorCode",
    "Confidence": "ReplayConfidence",
    "DisabledReason": "WebhookDisabledReason",
    "Mode": "QueueMode",
    "Reason": "ReasonCode",
    "ReasonDetails": "Reason",
    "RequiredSource": "RequiredStatusesSource",
    "StatusState": "CheckState",
    "Verdict": "LandingVerdict",
}
"""The public names of classes that have a shorter or another name in the code. All others keep the name of the class.
"""
COMMON_ERRORS = (
    Code.INVALID_REQUEST,
    Code.MISSING_TOKEN,
    Code.INVALID_TOKEN,
    Code.INSUFFICIENT_SCOPE,
    Code.RATE_LIMITED,
    Code.INTERNAL_ERROR,
    Code.STORAGE_UNAVAILABLE,
)
BODY_ERRORS = (
    Code.INVALID_JSON,
    Code.REQUEST_TIMEOUT,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
)
IDEMPOTENCY_ERRORS = (Code.IDEMPOTENCY_KEY_REUSED,)
IDEMPOTENCY_KEY_PARAMETER: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request with the same key is executed once; the response is stored for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}
ENUM_TYPES = {str: "string", bool: "boolean"}
REQUEST_ID_HEADER: Schema = {"description": "Identifies this request in logs and errors.", "schema": {"type": "string"}}


def build_document(endpoints: Sequence[Endpoint]) -> Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mergeyard",
            "version": __version__,
            "summary": "A merge queue that you host yourself.",
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
        "description": describe_scope(endpoint),
        "parameters": _parameters(endpoint),
        "responses": {"200": _success(endpoint)} | _errors(endpoint),
        "x-scope": endpoint.scope or "any",
    }
    if endpoint.method == "POST":
        content = {"schema": _ref(component_name(endpoint.request))} | _example(endpoint, "request")
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def describe_scope(endpoint: Endpoint) -> str:
    return "Needs any valid token." if endpoint.scope is None else f"Needs a token with the scope `{endpoint.scope}`."


def _parameters(endpoint: Endpoint) -> list[Schema]:
    if endpoint.method == "GET":
        members = _components((endpoint.request,))[component_name(endpoint.request)]["properties"]
        return [_query_parameter(name, **schema) for name, schema in members.items()]
    return [IDEMPOTENCY_KEY_PARAMETER] if endpoint.writes else []


def _query_parameter(name: str, description: str, **schema: Any) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _success(endpoint: Endpoint) -> Schema:
    schema = {"type": "string"} if endpoint.response is None else _ref(component_name(endpoint.response))
    content = {"schema": schema} | _example(endpoint, "response")
    headers = {"x-request-id": REQUEST_ID_HEADER}
    return {"description": "Success.", "headers": headers, "content": {endpoint.media_type: content}}


def _example(endpoint: Endpoint, part: str) -> Schema:
    """Empty for a new endpoint until its example is recorded: the recorder needs a service with this document."""
    return {"example": getattr(EXAMPLES[endpoint.name], part)} if endpoint.name in EXAMPLES else {}


def list_error_codes(endpoint: Endpoint) -> tuple[Code, ...]:
    """Every error code that this endpoint can return."""
    body = BODY_ERRORS if endpoint.method == "POST" else ()
    return (*COMMON_ERRORS, *body, *(IDEMPOTENCY_ERRORS if endpoint.writes else ()), *endpoint.refusals)


def _errors(endpoint: Endpoint) -> Schema:
    by_status = sorted(dict.fromkeys(list_error_codes(endpoint)), key=lambda code: ERROR_KINDS[code].status)
    return {
        str(status): _error(tuple(group)) for status, group in groupby(by_status, lambda code: ERROR_KINDS[code].status)
    }


def _error(codes: tuple[Code, ...]) -> Schema:
    kind = ERROR_KINDS[codes[0]]
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
        "headers": {"x-request-id": REQUEST_ID_HEADER},
        "content": {"application/json": content, "application/problem+json": {"schema": _ref("Problem")}},
    }


def _schemas(endpoints: Iterable[Endpoint]) -> Schema:
    structs: list[Any] = [Problem]
    for endpoint in endpoints:
        structs += [endpoint.request] if endpoint.method == "POST" else []
        structs += [endpoint.response] if endpoint.response else []
    return _components(tuple(structs))


@cache
def _components(structs: tuple[Any, ...]) -> Schema:
    """Cached: this is the slowest part of the document, and the structs are constant."""
    _, components = json.schema_components(structs, ref_template=REF)
    for struct in structs:
        if struct.__struct_config__.forbid_unknown_fields:
            components[struct.__name__]["additionalProperties"] = False
    named = {_rename(name): schema for name, schema in _apply_overrides(components).items()}
    reachable = _find_reachable(named, set(map(component_name, structs)))
    return {name: schema for name, schema in named.items() if name in reachable}


def component_name(struct: type[Struct]) -> str:
    """The name of the struct in the document, which becomes the name of a class in generated clients."""
    return _rename(struct.__name__)


def _rename(class_name: str) -> str:
    return COMPONENT_NAMES.get(class_name, class_name)


def _find_reachable(schemas: Schema, names: set[str]) -> set[str]:
    """The named schemas and all that they refer to, directly or not."""
    referred = {ref.rpartition("/")[2] for name in names for ref in _refs(schemas[name])}
    return names if referred <= names else _find_reachable(schemas, names | referred)


def _refs(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set[str]().union(*map(_refs, cast(list[Any], schema)))
    if not isinstance(schema, dict):
        return set()
    parts = cast(Schema, schema)
    own = {parts["$ref"]} if "$ref" in parts else set[str]()
    return own.union(*map(_refs, parts.values()))


def _apply_overrides(schema: Any) -> Any:
    """Replaces the schema of a type whose JSON form differs from its Python form, such as times and SHAs, uses the
    public names in references, and adds the type to enumerations, because generators of clients need it."""
    if isinstance(schema, list):
        return [_apply_overrides(part) for part in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast(Schema, schema)
    if request_schemas.SCHEMA_OVERRIDE_KEY in parts:
        described = {key: parts[key] for key in ("description", "default") if key in parts}
        return described | parts[request_schemas.SCHEMA_OVERRIDE_KEY]
    if isinstance(ref := parts.get("$ref"), str):
        parts = parts | _ref(_rename(ref.rpartition("/")[2]))
    typed = {"type": ENUM_TYPES[type(parts["enum"][0])]} if isinstance(parts.get("enum"), list) else {}
    return typed | {key: _apply_overrides(part) for key, part in parts.items()}


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}
