"""Random requests, drawn from our own OpenAPI document, and what must be true of every answer to them."""

from collections.abc import Callable, Iterable
from json import dumps
from typing import Any, cast

import httpx
import schemathesis.checks
import schemathesis.specs.openapi.checks
from msgspec import Struct
from schemathesis import Case, GenerationMode
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest import _test_builder

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call
from mergeyard.api.errors import KINDS
from mergeyard.service.errors import Code
from tests.contract.api.desk import problem_of


async def nobody(_: Call) -> bytes:
    return b"{}"


DOCUMENT = openapi.document(routes.endpoints(dict.fromkeys(routes.TABLE, nobody)))
SCHEMA: Any = schemathesis.openapi.from_dict(DOCUMENT)
SCHEMA.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])

server: Any = schemathesis.checks
conformance: Any = schemathesis.specs.openapi.checks
builder: Any = _test_builder
EVERY_ANSWER = [
    server.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_headers_conformance,
    conformance.response_schema_conformance,
]


def operations() -> list[Any]:
    return [found.ok() for found in SCHEMA.get_all_operations()]


def drawn(operation: Any, judged: Callable[[Case[Any]], None]) -> Callable[[], None]:
    """A test of one operation: with requests at every bound that the document sets, and with random ones.

    As `SCHEMA.parametrize()` would make it; but that draws for all operations wherever tests are only counted.
    """
    return builder.build_operation_test(
        config=SCHEMA.config, operation=operation, test_func=judged, given_kwargs={}, feedback=FeedbackSources()
    )


class Sent(Struct, frozen=True):
    """A request as it goes out, with our token in it."""

    method: str
    url: str
    params: Any
    headers: list[tuple[bytes, bytes]]
    content: Any


def as_sent(case: Case[Any], base_url: str, token: str) -> Sent:
    sent = case.as_transport_kwargs(base_url=base_url, headers={"x-api-token": token})
    content = dumps(sent["json"]).encode() if "json" in sent else sent.get("data")
    given = dict(sent["headers"]) | {"x-api-token": token}
    if given.get("Idempotency-Key") == "0":
        del given["Idempotency-Key"]  # Sent everywhere, it would have everything refused as a repetition.
    return Sent(sent["method"], sent["url"], sent.get("params"), list(_in_bytes(given.items())), content)


def _in_bytes(headers: Iterable[tuple[str, Any]]) -> Iterable[tuple[bytes, bytes]]:
    return ((name.encode("latin-1"), str(value).encode("latin-1")) for name, value in headers)


def judge(case: Case[Any], response: httpx.Response) -> None:
    """It fits the document; and if it refuses, then in the one shape, with a code that is listed there."""
    cast(Any, case).validate_response(response, checks=EVERY_ANSWER)
    assert response.is_success or is_named(problem_of(response)["code"], case)


def is_named(code: str, case: Case[Any]) -> bool:
    """A refusal that the document lists where it came up."""
    operation = DOCUMENT["paths"][case.path].get(case.method.lower())
    if operation is None:
        return code == Code.METHOD_NOT_ALLOWED
    return f"`{code}`" in operation["responses"][str(KINDS[Code(code)].status)]["description"]
