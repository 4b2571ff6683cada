"""The fake Gitea knows nothing that a real one does not describe."""

from typing import Any

import httpx
import pytest

from tests.forge.people import People
from tests.support.forges.gitea.facts import FORMER_NAMES, OPERATIONS, SHAPES


@pytest.fixture(scope="session")
def described(people: People) -> dict[str, Any]:
    return httpx.get(f"{people.url}/swagger.v1.json", trust_env=False).raise_for_status().json()


@pytest.mark.parametrize("words", OPERATIONS)
def test_every_operation_of_the_fake_is_described_by_a_real_one(words: str, described: dict[str, Any]):
    method, _, path = words.partition(" ")
    real, ours = described["paths"][path][method.lower()], OPERATIONS[words]
    shown = {int(status): shape_of(reply, described) for status, reply in real["responses"].items()}
    assert {status: shape for status, shape in shown.items() if status < 400} == ours.answers
    assert {status for status in shown if status >= 400} >= {*ours.refuses}
    assert [name_of(taken["schema"]) for taken in real.get("parameters", []) if taken["in"] == "body"] == (
        [ours.takes] if ours.takes else []
    )


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_the_fake_is_described_by_a_real_one(name: str, described: dict[str, Any]):
    real = described["definitions"][name]["properties"]
    for field, kind in SHAPES[name].items():
        if field not in FORMER_NAMES:
            assert kind_of(real[field], described) in (kind, "array" if kind.startswith("[") else kind)


def shape_of(reply: dict[str, Any], described: dict[str, Any]) -> str:
    if "$ref" in reply:
        return shape_of(described["responses"][name_of(reply)], described)
    schema: dict[str, Any] = reply.get("schema", {})
    return f"[{name_of(schema['items'])}]" if schema.get("type") == "array" else name_of(schema)


def kind_of(field: dict[str, Any], described: dict[str, Any]) -> str:
    """What the fake does not tell apart is an object, or a text."""
    if field.get("type") == "array":
        inner = kind_of(field["items"], described)
        return f"[{inner}]" if inner in (*SHAPES, "string") else "array"
    if "$ref" not in field:
        return field.get("type", "any")
    name = name_of(field)
    return name if name in SHAPES else described["definitions"][name].get("type", "string")


def name_of(reference: dict[str, Any]) -> str:
    return reference.get("$ref", "").rpartition("/")[2]
