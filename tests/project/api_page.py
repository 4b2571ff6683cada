"""Generates `docs/reference/api.md` from the OpenAPI document and from examples that it records first."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import json

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call, Endpoint
from mergeyard.api.openapi import EXAMPLES_FILE, Example
from tests.project.api_examples import record_examples

Schema = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
WIDTH = 108
GROUPS = {
    "Pull requests": (
        "submitPullRequest",
        "cancelPullRequest",
        "restartTestsOnPullRequest",
        "previewPullRequestAction",
        "previewCommitMessage",
        "getSubmittedPullRequest",
        "getSubmittedPullRequests",
        "listPullRequests",
        "listOpenPullRequests",
        "getProvenance",
        "setImpactedTargets",
    ),
    "Test runs": ("getMergeQueueTestingDetails", "listMergeQueueTestingResults", "reportCommitStatus"),
    "Queues": (
        "createQueue",
        "getQueue",
        "listQueues",
        "updateQueue",
        "deleteQueue",
        "listEvents",
        "verifyLandings",
        "replayQueue",
        "getMergeQueueMetrics",
    ),
    "Webhooks": (
        "createWebhook",
        "listWebhooks",
        "updateWebhook",
        "deleteWebhook",
        "testWebhook",
        "listWebhookDeliveries",
        "resendWebhookEvent",
    ),
    "Tokens": ("getCurrentToken", "createToken", "listTokens", "revokeToken"),
}
EXPLAINED_ELSEWHERE = {
    "ErrorCode": "a [code](errors.md)",
    "EventType": "a [type of event](webhooks.md#what-is-sent)",
    "PullRequestState": "a [state](states.md#pull-requests)",
    "ReasonCode": "a [reason](states.md#reasons)",
}

OPENING = """\
# API

Every endpoint with its request, its response and an example. A running server shows the same at `/docs`, where you can
try each endpoint, and as an OpenAPI 3.1 document at `/openapi.json`.

```sh
curl https://queue.example.com/v1/getQueue -H "x-api-token: $MERGEYARD_TOKEN" -H "content-type: application/json" \
  -d '{"repo": {"host": "github.com", "owner": "acme", "name": "app"}, "targetBranch": "main"}'
```

`make api-page` generates this page from the OpenAPI document. It records the examples from a real server, and replaces
only ids, commits, cursors and secrets.

## General rules

- **Requests**: `POST https://HOST/v1/ENDPOINT` with a JSON object, except `GET getMergeQueueMetrics`.
- **Authentication**: the header `x-api-token`, with a token from `mergeyard token create`. Most endpoints require a
  *scope*: `read`, `submit`, `targets`, `status`, `priority` or `admin`, which includes all others. What lies outside
  of the repositories of a limited token does not exist for this token.
- **Responses**: 200 with a JSON object, or an [error](errors.md) with a `code`. Each response has the header
  `x-request-id`.
- **Times** are ISO 8601 in UTC with milliseconds.
- **Idempotency**: send the header `Idempotency-Key` (1 to 255 printable characters) with a write. For 24 hours, the
  same request with the same key has no second effect: the server returns the stored response, with
  `Idempotency-Replayed: true`. A stored response does not contain the secret of a new token or webhook.
- **Tolerance**: pull request numbers can be strings of digits, and enumerations can be in any case. Unknown members are
  ignored, except in `createQueue`, `updateQueue` and `replayQueue`, where a mistyped setting is refused; the member
  `pr` of other requests is ignored there too."""


async def _unused_handler(_: Call) -> bytes:
    return b""


HANDLERS = dict.fromkeys(routes.TABLE, _unused_handler)
ENDPOINTS = {endpoint.name: endpoint for endpoint in routes.build_endpoints(HANDLERS)}
DOCUMENT: Schema = openapi.build_document(tuple(ENDPOINTS.values()))
SCHEMAS: dict[str, Schema] = DOCUMENT["components"]["schemas"]
REQUESTS = {openapi.component_name(endpoint.request) for endpoint in ENDPOINTS.values()}


def render_page(examples: Mapping[str, Example]) -> str:
    parts = [OPENING, *_common_errors(), *_contents()]
    for group, names in GROUPS.items():
        parts += [f"## {group}", *(part for name in names for part in _endpoint(ENDPOINTS[name], examples[name]))]
    return "\n\n".join([*parts, *_objects()]) + "\n"


def _common_errors() -> Iterable[str]:
    yield f"Every endpoint can respond with {_codes(openapi.COMMON_ERRORS)}."
    yield f"Endpoints that take a body can also respond with {_codes(openapi.BODY_ERRORS)}."
    yield f"A write with an idempotency key can respond with {_codes(openapi.IDEMPOTENCY_ERRORS)}."
    yield "Each endpoint lists its other errors."


def _contents() -> Iterable[str]:
    rows = (
        (f"[`{name}`](#{name.lower()})", f"{ENDPOINTS[name].summary}.", f"`{ENDPOINTS[name].scope or 'any'}`")
        for names in GROUPS.values()
        for name in names
    )
    yield _table(("endpoint", "what it does", "scope"), rows)


def _endpoint(endpoint: Endpoint, example: Example) -> Iterable[str]:
    yield f"### {endpoint.name}"
    yield f"{endpoint.summary}. {openapi.describe_scope(endpoint)}"
    if endpoint.method == "GET":
        yield f"`GET {endpoint.path}`"
        yield _table(("parameter", "type", "meaning"), _parameters(endpoint))
    else:
        yield from _members(SCHEMAS[openapi.component_name(endpoint.request)], "The request has no members: send `{}`.")
        yield _block("json", format_json(example.request))
    response = (
        f"an object [{openapi.component_name(endpoint.response)}](#{openapi.component_name(endpoint.response).lower()})"
        if endpoint.response
        else "text"
    )
    yield f"The response is {response}:"
    yield (
        _block("json", format_json(example.response))
        if endpoint.response
        else _block("text", example.response.rstrip())
    )
    if endpoint.refusals:
        yield f"It can also respond with {_codes(dict.fromkeys(endpoint.refusals))}."


def _parameters(endpoint: Endpoint) -> Iterable[tuple[str, str, str]]:
    operation: Schema = DOCUMENT["paths"][f"/{endpoint.name}"]["get"]
    for each in operation["parameters"]:
        yield f"`{each['name']}`", describe_type(each["schema"]), each["description"]


def _objects() -> Iterable[str]:
    yield "## Objects"
    for name, schema in sorted(SCHEMAS.items()):
        if "properties" in schema and name not in REQUESTS:
            yield f"### {name}"
            yield from _members(schema, "It has no members.")


def _members(schema: Schema, if_empty: str) -> Iterable[str]:
    if "description" in schema:
        yield schema["description"]
    required = schema.get("required", ())
    rows = [
        (f"`{name}`" if name in required else f"`{name}`, optional", describe_type(member), _meaning(member))
        for name, member in cast(dict[str, Schema], schema["properties"]).items()
    ]
    yield _table(("member", "type", "meaning"), rows) if rows else if_empty


def _meaning(member: Schema) -> str:
    description = member.get("description", "")
    default = member.get("default")
    return (
        description
        if default in (None, [], True)
        else f"{description} Default `{json.encode(default).decode()}`.".strip()
    )


def describe_type(schema: Schema) -> str:
    """The type of a value, in words."""
    match schema:
        case {"$ref": str(ref)}:
            return _describe_reference(ref.rpartition("/")[2])
        case {"anyOf": _}:
            return " or ".join(map(describe_type, cast(list[Schema], schema["anyOf"])))
        case {"enum": _}:
            return " ".join(f"`{'true' if value is True else value}`" for value in cast(list[Any], schema["enum"]))
        case {"type": "array"}:
            return f"list of {describe_type(schema['items'])}"
        case {"type": "integer", "minimum": int(least), "maximum": int(most)}:
            return f"integer, {least} to {most}"
        case {"format": "date-time"}:
            return "time"
        case {"type": "string"}:
            return "text"
        case {"type": str(name)}:
            return f"`{name}`" if name == "null" else name
        case _:
            raise LookupError(f"the page cannot describe {schema}")


def _describe_reference(name: str) -> str:
    if name in EXPLAINED_ELSEWHERE:
        return EXPLAINED_ELSEWHERE[name]
    return f"[{name}](#{name.lower()})" if "properties" in SCHEMAS[name] else describe_type(SCHEMAS[name])


def format_json(value: Any, indent: int = 0) -> str:
    """Formats as JSON; a part that fits on one line is not broken."""
    short = json.format(json.encode(value), indent=0).decode()
    if len(short) + indent <= WIDTH:
        return short
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value).items()
        lines = [f"{inner}{format_json(name)}: {format_json(member, indent + 2)}" for name, member in members]
        return "\n".join(["{", ",\n".join(lines), " " * indent + "}"])
    lines = [f"{inner}{format_json(each, indent + 2)}" for each in cast(list[Any], value)]
    return "\n".join(["[", ",\n".join(lines), " " * indent + "]"])


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"[`{code}`](errors.md#{code})" for code in codes)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    recorded = record_examples()
    lines = (f"{json.encode(name).decode()}: {json.encode(example).decode()}" for name, example in recorded.items())
    EXAMPLES_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    PAGE.write_text(render_page(recorded), encoding="utf-8")
