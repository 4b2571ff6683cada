"""Writes `docs/api.md` from the OpenAPI document and its examples, so that the page cannot say anything else."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from msgspec import json

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call, Endpoint
from mergeyard.api.examples import EXAMPLES

Schema = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
WIDTH = 108
GROUPS = {
    "About pull requests": (
        "submitPullRequest",
        "cancelPullRequest",
        "restartTestsOnPullRequest",
        "getSubmittedPullRequest",
        "getSubmittedPullRequests",
        "listPullRequests",
        "setImpactedTargets",
    ),
    "About runs": ("getMergeQueueTestingDetails", "listMergeQueueTestingResults", "reportCommitStatus"),
    "About queues": (
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
    "About webhooks": (
        "createWebhook",
        "listWebhooks",
        "updateWebhook",
        "deleteWebhook",
        "testWebhook",
        "listWebhookDeliveries",
        "resendWebhookEvent",
    ),
}
EXPLAINED_ELSEWHERE = {
    "Code": "a [code](errors.md)",
    "EventType": "a [type of event](webhooks.md#what-is-sent)",
    "PrState": "a [state](states.md#pull-requests)",
    "Reason": "a [reason](states.md#reasons)",
}

OPENING = """\
# API

Every endpoint with what it asks, what it answers and an example. A running server shows the same at `/docs`, where each
can be tried, and as an OpenAPI 3.1 document at `/openapi.json`.

This page is written by `make api-page` from that document. Change the code in `src/mergeyard/api`, not the page.

## In general

- **Where**: `POST https://HOST/v1/ENDPOINT` with a JSON object, unless it says `GET`.
- **Who**: the header `x-api-token`, with a token from `mergeyard token create`. What each endpoint needs is its
  *scope*: `read`, `submit`, `targets`, `status`, `priority` or `admin`, which holds all others.
- **What comes back**: 200 with a JSON object, or an [error](errors.md) with a `code`. Each answer has `x-request-id`.
- **Times** are ISO 8601 in UTC with milliseconds.
- **Twice is once**: send the header `Idempotency-Key` (1 to 255 printable characters) with a write, and the same
  request under the same key has no second effect; its answer is given again, with
  `Idempotency-Replayed: true`, for 24 hours.
- **Tolerance**: numbers of pull requests may be strings of digits, enumerations may be in any case, and members that
  nobody knows are passed over, except in `createQueue`, `updateQueue` and `replayQueue`, where a mistyped setting is
  refused."""


async def _nobody(_: Call) -> bytes:
    return b""


ENDPOINTS = {endpoint.name: endpoint for endpoint in routes.endpoints(dict.fromkeys(routes.TABLE, _nobody))}
DOCUMENT: Schema = openapi.document(tuple(ENDPOINTS.values()))
SCHEMAS: dict[str, Schema] = DOCUMENT["components"]["schemas"]
REQUESTS = {endpoint.request.__name__ for endpoint in ENDPOINTS.values()}


def page() -> str:
    parts = [OPENING, *_common_refusals(), *_contents()]
    for group, names in GROUPS.items():
        parts += [f"## {group}", *(part for name in names for part in _endpoint(ENDPOINTS[name]))]
    return "\n\n".join([*parts, *_objects()]) + "\n"


def _common_refusals() -> Iterable[str]:
    yield f"Every endpoint may refuse with {_codes(openapi.ALWAYS)}."
    yield f"Those that take a body may also refuse with {_codes(openapi.WITH_A_BODY)}."
    yield f"A write with a key may refuse with {_codes(openapi.WITH_A_KEY)}. What else each may say stands with it."


def _contents() -> Iterable[str]:
    rows = (
        (f"[`{name}`](#{name.lower()})", f"{ENDPOINTS[name].summary}.", f"`{ENDPOINTS[name].scope}`")
        for names in GROUPS.values()
        for name in names
    )
    yield _table(("endpoint", "what it does", "scope"), rows)


def _endpoint(endpoint: Endpoint) -> Iterable[str]:
    example = EXAMPLES[endpoint.name]
    yield f"### {endpoint.name}"
    yield f"{endpoint.summary}. Needs the scope `{endpoint.scope}`."
    if endpoint.method == "GET":
        yield f"`GET {endpoint.path}`"
        yield _table(("parameter", "kind", "what it means"), _parameters(endpoint))
    else:
        yield from _members(SCHEMAS[endpoint.request.__name__], "It asks for nothing: send `{}`.")
        yield _block("json", written(example.request))
    answer = (
        f"an object [{endpoint.answer.__name__}](#{endpoint.answer.__name__.lower()})" if endpoint.answer else "text"
    )
    yield f"The answer is {answer}:"
    yield _block("json", written(example.answer)) if endpoint.answer else _block("text", example.answer.rstrip())
    if endpoint.refusals:
        yield f"It may also refuse with {_codes(dict.fromkeys(endpoint.refusals))}."


def _parameters(endpoint: Endpoint) -> Iterable[tuple[str, str, str]]:
    operation: Schema = DOCUMENT["paths"][f"/{endpoint.name}"]["get"]
    for each in operation["parameters"]:
        yield f"`{each['name']}`", kind(each["schema"]), each["description"]


def _objects() -> Iterable[str]:
    yield "## Objects"
    for name, schema in sorted(SCHEMAS.items()):
        if "properties" in schema and name not in REQUESTS:
            yield f"### {name}"
            yield from _members(schema, "It has no members.")


def _members(schema: Schema, otherwise: str) -> Iterable[str]:
    if "description" in schema:
        yield schema["description"]
    required = schema.get("required", ())
    rows = [
        (f"`{name}`" if name in required else f"`{name}`, optional", kind(member), _meaning(member))
        for name, member in cast(dict[str, Schema], schema["properties"]).items()
    ]
    yield _table(("member", "kind", "what it means"), rows) if rows else otherwise


def _meaning(member: Schema) -> str:
    said = member.get("description", "")
    default = member.get("default")
    return said if default in (None, [], True) else f"{said} Default `{json.encode(default).decode()}`.".strip()


def kind(schema: Schema) -> str:
    """What a value may be, in words."""
    match schema:
        case {"$ref": str(ref)}:
            return _named(ref.rpartition("/")[2])
        case {"anyOf": _}:
            return " or ".join(map(kind, cast(list[Schema], schema["anyOf"])))
        case {"enum": _}:
            return " ".join(f"`{'true' if value is True else value}`" for value in cast(list[Any], schema["enum"]))
        case {"type": "array"}:
            return f"list of {kind(schema['items'])}"
        case {"type": "integer", "minimum": int(least), "maximum": int(most)}:
            return f"integer, {least} to {most}"
        case {"format": "date-time"}:
            return "time"
        case {"type": "string"}:
            return "text"
        case {"type": str(name)}:
            return f"`{name}`" if name == "null" else name
        case _:
            raise LookupError(f"the page has no words for {schema}")


def _named(name: str) -> str:
    if name in EXPLAINED_ELSEWHERE:
        return EXPLAINED_ELSEWHERE[name]
    return f"[{name}](#{name.lower()})" if "properties" in SCHEMAS[name] else kind(SCHEMAS[name])


def written(value: Any, indent: int = 0) -> str:
    """As JSON, with what is short on one line."""
    short = json.format(json.encode(value), indent=0).decode()
    if len(short) + indent <= WIDTH:
        return short
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value).items()
        lines = [f"{inner}{written(name)}: {written(member, indent + 2)}" for name, member in members]
        return "\n".join(["{", ",\n".join(lines), " " * indent + "}"])
    lines = [f"{inner}{written(each, indent + 2)}" for each in cast(list[Any], value)]
    return "\n".join(["[", ",\n".join(lines), " " * indent + "]"])


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"[`{code}`](errors.md#{code})" for code in codes)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
