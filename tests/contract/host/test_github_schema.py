"""The GraphQL queries of the GitHub adapter, and the schema of the fake, agree with what GitHub publishes."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    parse,
    validate,
)

from mergeyard.adapters.forges.github import pull_requests, requirements
from tests.support.forges.github.graphql import schema as fake_schema

CACHE = Path(__file__).parents[3] / ".graphql"
QUERIES = {
    name: text
    for module in (pull_requests, requirements)
    for name, text in vars(module).items()
    if name.endswith("_QUERY") and isinstance(text, str)
}
pytestmark = pytest.mark.xdist_group("GitHub's GraphQL schema")


@cache
def read_published() -> GraphQLSchema | None:
    """Cached, because it is large. None if `make setup-schema` has not run."""
    files = sorted(CACHE.glob("schema-*.graphql"))
    return build_schema(files[-1].read_text(), assume_valid=True, assume_valid_sdl=True) if files else None


@pytest.fixture
def published() -> GraphQLSchema:
    found = read_published()
    if found is None:
        pytest.skip("NOT TESTED against GitHub's GraphQL schema: `make setup-schema` gets it")
    return found


def differences(ours: GraphQLSchema, theirs: GraphQLSchema) -> list[str]:
    """What our schema has and theirs does not, or has with another type."""
    named = {name: kind for name, kind in ours.type_map.items() if not name.startswith("__")}
    return [
        f"{name}{difference}"
        for name, kind in named.items()
        for difference in _differences_of_type(kind, theirs.type_map.get(name))
    ]


def _differences_of_type(ours: Any, theirs: Any) -> list[str]:
    if type(ours) is not type(theirs):
        return [" is missing or of another kind"]
    if isinstance(ours, GraphQLEnumType):
        return [f".{value}" for value in ours.values if value not in theirs.values]
    if isinstance(ours, GraphQLUnionType):
        return [f" | {kind}" for kind in ours.types if kind.name not in {each.name for each in theirs.types}]
    if not isinstance(ours, GraphQLObjectType | GraphQLInterfaceType):
        return []
    interfaces = {each.name for each in theirs.interfaces}
    found = [f" implements {each}" for each in ours.interfaces if each.name not in interfaces]
    for name, field in ours.fields.items():
        other = theirs.fields.get(name)
        arguments = {key: str(argument.type) for key, argument in other.args.items()} if other else {}
        found += [f".{name}"] if other is None or str(other.type) != str(field.type) else []
        found += [f".{name}({key})" for key, each in field.args.items() if arguments.get(key) != str(each.type)]
    return found


def test_the_schema_of_the_fake_is_a_part_of_the_published_one(published: GraphQLSchema):
    assert differences(fake_schema, published) == []


@pytest.mark.parametrize("name", QUERIES)
def test_queries_are_valid_for_the_published_schema(published: GraphQLSchema, name: str):
    assert validate(published, parse(QUERIES[name])) == []


@pytest.mark.parametrize("name", QUERIES)
def test_queries_are_valid_for_the_fake(name: str):
    assert validate(fake_schema, parse(QUERIES[name])) == []


def test_the_adapter_has_queries():
    assert QUERIES


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        ("type Query { a: Int! }", "type Query { a: Int }", "Query.a"),
        ("type Query { a: Int, b: Int }", "type Query { a: Int }", "Query.b"),
        ("type Query { a(b: Int): Int }", "type Query { a(b: Int!): Int }", "Query.a(b)"),
        ("type Query { a(b: Int): Int }", "type Query { a: Int }", "Query.a(b)"),
        ("type Query { a: E } enum E { X Y }", "type Query { a: E } enum E { X }", "E.Y"),
        ("type Query { a: Int } type T { b: Int }", "type Query { a: Int }", "T is missing or of another kind"),
        (
            "type Query { a: U } union U = S | T type S { b: Int } type T { b: Int }",
            "type Query { a: U } union U = S type S { b: Int } type T { b: Int }",
            "U | T",
        ),
        (
            "type Query { a: T } interface I { b: Int } type T implements I { b: Int }",
            "type Query { a: T } interface I { b: Int } type T { b: Int }",
            "T implements I",
        ),
    ],
)
def test_a_difference_between_the_schemas_is_found(ours: str, theirs: str, difference: str):
    assert differences(build_schema(ours), build_schema(theirs)) == [difference]
