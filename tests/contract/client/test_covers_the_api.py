"""The client knows every endpoint, sends what it takes, and reads every member that it answers."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import jsonschema_rs
import pytest
from msgspec import inspect, json

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call
from mergeyard.client import Client, Queue, Settings
from mergeyard.client.calls import Calls
from mergeyard.client.errors import Problem
from mergeyard.client.request import Request, camel_case
from tests.contract.client.questions import EVERY, TALKS


async def nobody(_: Call) -> bytes:
    return b"{}"


DOCUMENT = openapi.document(routes.endpoints(dict.fromkeys(routes.TABLE, nobody)))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

every_question = pytest.mark.parametrize("request_", EVERY.values(), ids=EVERY.keys())


def operation(request: Request[Any]) -> dict[str, Any]:
    (found,) = DOCUMENT["paths"][f"/{request.endpoint}"].values()
    return found


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def misfits(kind: inspect.Type, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Everything that the server may answer and this type would not read."""
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
            words = schema.get("enum", [""])
            return schema.get("type", "string") == "string" and all(isinstance(word, str) for word in words)
        case inspect.IntType():
            return schema.get("type") == "integer"
        case inspect.FloatType():
            return schema.get("type") == "number"
        case inspect.BoolType():
            return schema.get("type") == "boolean" or schema.get("enum") == [True]
        case inspect.NoneType():
            return schema.get("type") == "null"
        case _:
            raise AssertionError(f"nothing is known about {kind}")


def missing(kind: inspect.StructType, schema: dict[str, Any], where: str) -> Iterator[str]:
    """What has a default here or there may be left out; all else must be said and heard."""
    fields = {field.encode_name: field for field in kind.fields}
    told: dict[str, Any] = schema["properties"]
    always = set(schema.get("required", [])) | {name for name, part in told.items() if "default" in part}
    for name, part in told.items():
        if name not in fields:
            yield f"{where}.{name} is not read"
        else:
            yield from misfits(fields[name].type, part, f"{where}.{name}")
    for name, field in fields.items():
        if field.required and name not in always:
            yield f"{where}.{name} may be missing"


# The questions


def test_the_client_asks_every_endpoint_of_the_table():
    assert {request.endpoint for request in EVERY.values()} == routes.TABLE.keys()


def test_every_call_of_the_client_is_looked_at_here():
    calls = {name for name in vars(Calls) if not name.startswith("_")}
    assert calls == EVERY.keys() | TALKS
    assert all(callable(getattr(Client("http://x", "t"), name)) for name in calls)


@every_question
def test_the_client_writes_where_the_table_says_that_something_is_written(request_: Request[Any]):
    assert request_.writes == routes.TABLE[request_.endpoint].get("writes", False)


@every_question
def test_the_client_sends_what_the_document_allows(request_: Request[Any]):
    members = json.decode(json.encode(request_.members))
    if request_.answer is str:
        assert members.keys() <= {each["name"] for each in operation(request_)["parameters"]}
        return
    schema = operation(request_)["requestBody"]["content"]["application/json"]["schema"]
    assert jsonschema_rs.is_valid(schema | {"components": DOCUMENT["components"]}, members), members
    assert members.keys() <= resolved(schema)["properties"].keys()


def test_the_client_knows_every_setting_of_a_queue():
    told = SCHEMAS["CreateQueue"]["properties"].keys() - {"repo", "targetBranch"}
    assert {camel_case(name) for name in get_type_hints(Settings)} == told
    assert set(get_type_hints(Settings)) <= set(Queue.__struct_fields__)


# The answers


@every_question
def test_the_client_reads_every_member_of_the_answer(request_: Request[Any]):
    (content,) = operation(request_)["responses"]["200"]["content"].values()
    if request_.answer is not str:
        kind = inspect.type_info(request_.answer)
        assert list(misfits(kind, content["schema"], request_.endpoint)) == []


@every_question
def test_what_was_read_is_written_as_it_came(request_: Request[Any]):
    """So that what is printed as JSON has the shape of the API."""
    (content,) = operation(request_)["responses"]["200"]["content"].values()
    if request_.answer is not str:
        answer = json.decode(json.encode(content["example"]), type=request_.answer)
        assert json.decode(json.encode(answer)).keys() == content["example"].keys()


def test_the_client_reads_every_member_of_a_refusal_but_those_that_never_differ():
    told = list(missing_of_problem())
    assert told == ["Problem.type is not read"]


def missing_of_problem() -> Iterator[str]:
    kind = inspect.type_info(Problem)
    assert isinstance(kind, inspect.StructType)
    return missing(kind, SCHEMAS["Problem"], "Problem")
