"""The fake Gitea has only operations and shapes that the OpenAPI document of a real one describes."""

from typing import Any

import httpx2
import pytest

from tests.forge.gitea_admin import GiteaAdmin
from tests.support.forges.gitea.schema import FORMER_NAMES, OPERATIONS, SHAPES


@pytest.fixture(scope="session")
def openapi(admin: GiteaAdmin) -> dict[str, Any]:
    return httpx2.get(f"{admin.url}/swagger.v1.json", trust_env=False).raise_for_status().json()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_of_the_fake_is_described_by_a_real_gitea(operation: str, openapi: dict[str, Any]):
    method, _, path = operation.partition(" ")
    real, fake = openapi["paths"][path][method.lower()], OPERATIONS[operation]
    responses = {int(status): shape_of(reply, openapi) for status, reply in real["responses"].items()}
    assert {status: shape for status, shape in responses.items() if status < 400} == fake.responses
    assert {status for status in responses if status >= 400} >= {*fake.error_statuses}
    assert [name_of(taken["schema"]) for taken in real.get("parameters", []) if taken["in"] == "body"] == (
        [fake.request_shape] if fake.request_shape else []
    )


@pytest.mark.parametrize("name", SHAPES)
def test_shape_of_the_fake_is_described_by_a_real_gitea(name: str, openapi: dict[str, Any]):
    real = openapi["definitions"][name]["properties"]
    for field, kind in SHAPES[name].items():
        if field not in FORMER_NAMES:
            assert kind_of(real[field], openapi) in (kind, "array" if kind.startswith("[") else kind)


def shape_of(reply: dict[str, Any], openapi: dict[str, Any]) -> str:
    if "$ref" in reply:
        return shape_of(openapi["responses"][name_of(reply)], openapi)
    schema: dict[str, Any] = reply.get("schema", {})
    return f"[{name_of(schema['items'])}]" if schema.get("type") == "array" else name_of(schema)


def kind_of(field: dict[str, Any], openapi: dict[str, Any]) -> str:
    """What the fake does not distinguish is an object or a text."""
    if field.get("type") == "array":
        inner = kind_of(field["items"], openapi)
        return f"[{inner}]" if inner in (*SHAPES, "string") else "array"
    if "$ref" not in field:
        return field.get("type", "any")
    name = name_of(field)
    return name if name in SHAPES else openapi["definitions"][name].get("type", "string")


def name_of(reference: dict[str, Any]) -> str:
    return reference.get("$ref", "").rpartition("/")[2]
