"""Random requests drawn from our own OpenAPI document, and what must be true of every response to them."""

from collections.abc import Callable, Iterable
from json import dumps
from typing import Any, cast

import httpx2
import schemathesis.checks
import schemathesis.specs.openapi.checks
from msgspec import Struct
from schemathesis import Case, GenerationMode
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest import _test_builder

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call
from mergeyard.api.responses import ERROR_KINDS
from mergeyard.service.errors import Code
from tests.contract.api.harness import problem_of


async def unused_handler(_: Call) -> bytes:
    return b"{}"


DOCUMENT = openapi.build_document(routes.build_endpoints(dict.fromkeys(routes.TABLE, unused_handler)))
SCHEMA: Any = schemathesis.openapi.from_dict(DOCUMENT)
SCHEMA.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])

server: Any = schemathesis.checks
conformance: Any = schemathesis.specs.openapi.checks
builder: Any = _test_builder
RESPONSE_CHECKS = [
    server.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_headers_conformance,
    conformance.response_schema_conformance,
]


def operations() -> list[Any]:
    return [found.ok() for found in SCHEMA.get_all_operations()]


def make_request_test(operation: Any, judged: Callable[[Case[Any]], None]) -> Callable[[], None]:
    """Makes a test of one operation, with requests at every bound of the document and with random ones.

    `SCHEMA.parametrize()` would do the same, but it generates requests for all operations during collection.
    """
    return builder.build_operation_test(
        config=SCHEMA.config, operation=operation, test_func=judged, given_kwargs={}, feedback=FeedbackSources()
    )


class OutgoingRequest(Struct, frozen=True):
    """A request as it is sent, with our token."""

    method: str
    url: str
    params: Any
    headers: list[tuple[bytes, bytes]]
    content: Any


def to_outgoing_request(case: Case[Any], base_url: str, token: str) -> OutgoingRequest:
    sent = case.as_transport_kwargs(base_url=base_url, headers={"x-api-token": token})
    content = dumps(sent["json"]).encode() if "json" in sent else sent.get("data")
    given = dict(sent["headers"]) | {"x-api-token": token}
    if given.get("Idempotency-Key") == "0":
        del given["Idempotency-Key"]  # With one key in every request, each would be refused as a reuse of the key.
    return OutgoingRequest(sent["method"], sent["url"], sent.get("params"), list(_in_bytes(given.items())), content)


def _in_bytes(headers: Iterable[tuple[str, Any]]) -> Iterable[tuple[bytes, bytes]]:
    return ((name.encode("latin-1"), str(value).encode("latin-1")) for name, value in headers)


def check_response(case: Case[Any], response: httpx2.Response) -> None:
    """Checks that a response matches the document; an error also has the error shape and a listed code."""
    cast(Any, case).validate_response(response, checks=RESPONSE_CHECKS)
    assert response.is_success or is_documented_error(problem_of(response)["code"], case)


def is_documented_error(code: str, case: Case[Any]) -> bool:
    """Whether the document lists the error code at this operation."""
    operation = DOCUMENT["paths"][case.path].get(case.method.lower())
    if operation is None:
        return code == Code.METHOD_NOT_ALLOWED
    return f"`{code}`" in operation["responses"][str(ERROR_KINDS[Code(code)].status)]["description"]
