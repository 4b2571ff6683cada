"""The client covers every endpoint, sends valid requests and reads every member of the responses."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import jsonschema_rs
import pytest
from msgspec import inspect, json

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call
from mergeyard.client import AsyncClient, Client, Queue, Settings
from mergeyard.client.transport import Problem, Request, to_camel_case
from tests.contract.client.sample_requests import COMPOSITE_CALLS, REQUESTS


async def unused_handler(_: Call) -> bytes:
    return b"{}"


DOCUMENT = openapi.build_document(routes.build_endpoints(dict.fromkeys(routes.TABLE, unused_handler)))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

every_request = pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())


def operation(request: Request[Any]) -> dict[str, Any]:
    (found,) = DOCUMENT["paths"][f"/{request.endpoint}"].values()
    return found


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def misfits(kind: inspect.Type, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yields every part of the response schema that this type would not read."""
    schema = resolved(schema)
    if "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from misfits(kind, part, where)
    elif isinstance(kind, inspect.UnionType):
        if all(any(True for _ in misfits(part, schema, where)) for part in kind.types):
            yield f"{where} is {schema}, and none of {kind.types}"
    elif isinstance(kind, inspect.StructType):
        yield from missing(kind, schema, where) if schema.get("type") == "object" else [f"{where} is no object"]
    elif isinstance(kind, inspect.VarTupleType):
        if schema.get("type") != "array":
            yield f"{where} is no array"
        else:
            yield from misfits(kind.item_type, schema["items"], f"{where}[]")
    elif not fits(kind, schema):
        yield f"{where} is {schema}, and not {type(kind).__name__}"


def fits(kind: inspect.Type, schema: dict[str, Any]) -> bool:
    match kind:
        case inspect.DateTimeType():
            return schema.get("format") == "date-time"
        case inspect.StrType():
            values = schema.get("enum", [""])
            return schema.get("type", "string") == "string" and all(isinstance(value, str) for value in values)
        case inspect.IntType():
            return schema.get("type") == "integer"
        case inspect.FloatType():
            return schema.get("type") == "number"
        case inspect.BoolType():
            return schema.get("type") == "boolean" or schema.get("enum") == [True]
        case inspect.DictType():
            return schema.get("type") == "object"
        case inspect.NoneType():
            return schema.get("type") == "null"
        case _:
            raise AssertionError(f"nothing is known about {kind}")


def missing(kind: inspect.StructType, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yields required members that one side lacks. Members with a default on either side can be missing."""
    fields = {field.encode_name: field for field in kind.fields}
    members: dict[str, Any] = schema["properties"]
    always = set(schema.get("required", [])) | {name for name, part in members.items() if "default" in part}
    for name, part in members.items():
        if name not in fields:
            yield f"{where}.{name} is not read"
        else:
            yield from misfits(fields[name].type, part, f"{where}.{name}")
    for name, field in fields.items():
        if field.required and name not in always:
            yield f"{where}.{name} may be missing"


# Requests


def test_the_client_calls_every_endpoint_of_the_table():
    assert {request.endpoint for request in REQUESTS.values()} == routes.TABLE.keys()


def test_every_call_of_the_client_is_covered_here():
    calls = {name for name in dir(Client) if not name.startswith("_")} - {"close", "run_exchange"}
    assert calls == {name for name in dir(AsyncClient) if not name.startswith("_")} - {"close", "run_exchange"}
    assert calls == REQUESTS.keys() | COMPOSITE_CALLS
    client = Client("http://x", "t")
    assert all(callable(getattr(client, name)) for name in calls)


@every_request
def test_the_client_and_the_table_agree_on_which_requests_write(request_: Request[Any]):
    assert request_.writes == routes.TABLE[request_.endpoint].get("writes", False)


@every_request
def test_the_client_sends_what_the_document_allows(request_: Request[Any]):
    members = json.decode(json.encode(request_.members))
    if request_.response is str:
        assert members.keys() <= {each["name"] for each in operation(request_)["parameters"]}
        return
    schema = operation(request_)["requestBody"]["content"]["application/json"]["schema"]
    assert jsonschema_rs.is_valid(schema | {"components": DOCUMENT["components"]}, members), members
    assert members.keys() <= resolved(schema)["properties"].keys()


def test_the_client_knows_every_setting_of_a_queue():
    members = SCHEMAS["CreateQueue"]["properties"].keys() - {"repo", "targetBranch"}
    assert {to_camel_case(name) for name in get_type_hints(Settings)} == members
    assert set(get_type_hints(Settings)) <= set(Queue.__struct_fields__)


# Responses


@every_request
def test_the_client_reads_every_member_of_the_response(request_: Request[Any]):
    (content,) = operation(request_)["responses"]["200"]["content"].values()
    if request_.response is not str:
        kind = inspect.type_info(request_.response)
        assert list(misfits(kind, content["schema"], request_.endpoint)) == []


@every_request
def test_a_decoded_response_is_encoded_as_it_was_received(request_: Request[Any]):
    """So JSON output of the CLI has the shape of the API."""
    (content,) = operation(request_)["responses"]["200"]["content"].values()
    if request_.response is not str:
        answer = json.decode(json.encode(content["example"]), type=request_.response)
        assert json.decode(json.encode(answer)).keys() == content["example"].keys()


def test_the_client_reads_every_member_of_an_error_except_constant_ones():
    members = list(missing_of_problem())
    assert members == ["Problem.type is not read"]


def missing_of_problem() -> Iterator[str]:
    kind = inspect.type_info(Problem)
    assert isinstance(kind, inspect.StructType)
    return missing(kind, SCHEMAS["Problem"], "Problem")
