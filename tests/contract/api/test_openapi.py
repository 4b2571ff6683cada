"""Our OpenAPI document agrees with `spec/api.md`: the same fields, enum values, endpoints and parameters."""

import asyncio
from typing import Any

import pytest

from tests.contract.api import spec_tables as doc
from tests.contract.api.harness import api_with_queue
from tests.contract.api.spec_tables import Row


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    async def fetched() -> dict[str, Any]:
        async with api_with_queue(tmp_path_factory.mktemp("described")) as api:
            return (await api.client.get("/openapi.json")).json()

    return asyncio.run(fetched())


def schema_of(described: dict[str, Any], name: str) -> dict[str, Any]:
    return described["components"]["schemas"][name]


def kind_of(described: dict[str, Any], schema: dict[str, Any]) -> str:
    """Returns the type as the tables of `spec/api.md` name it."""
    if "$ref" in schema:
        return kind_of(described, schema_of(described, schema["$ref"].rpartition("/")[2]))
    if "enum" in schema:
        return "string enum"
    if schema["type"] == "array":
        return kind_of(described, schema["items"]) + "[]"
    return "number" if schema["type"] == "integer" else schema["type"]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("SubmittedPullRequest", doc.SUBMITTED_PULL_REQUEST),
        ("Readiness", doc.READINESS),
        ("TestRun", doc.TEST_RUN_DETAILS),
        ("CheckSuite", doc.CHECK_SUITE),
        ("CheckRun", doc.CHECK_RUN),
        ("StatusCheck", doc.STATUS_CHECK),
        ("TestedPullRequest", doc.TESTED_PULL_REQUEST),
    ],
)
def test_the_openapi_document_has_the_same_fields(name: str, table: list[Row], described: dict[str, Any]):
    schema = schema_of(described, name)
    for row in table:
        assert kind_of(described, schema["properties"][row.name]) == row.kind, row.name
        assert row.name in schema["required"] or not row.required, row.name


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("PullRequestState", doc.PR_STATES),
        ("QueueState", doc.QUEUE_STATES),
        ("RequiredStatusesSource", doc.REQUIRED_STATUSES_SOURCES),
    ],
)
def test_the_openapi_document_has_the_same_enum_values(name: str, values: set[str], described: dict[str, Any]):
    assert set(schema_of(described, name)["enum"]) == values


def test_the_openapi_document_has_the_same_statuses_of_runs(described: dict[str, Any]):
    assert set(schema_of(described, "TestRun")["properties"]["status"]["enum"]) == doc.RUN_STATUSES


@pytest.mark.parametrize("path", doc.ENDPOINTS)
def test_the_openapi_document_has_the_endpoint(path: str, described: dict[str, Any]):
    method, members = doc.ENDPOINTS[path]
    assert described["servers"] == [{"url": doc.PREFIX}]
    (operation,) = described["paths"][path].values()
    assert list(described["paths"][path]) == [method.lower()]
    if method == "POST":
        (asked,) = operation["requestBody"]["content"].items()
        assert asked[0] == "application/json"
        assert set(schema_of(described, asked[1]["schema"]["$ref"].rpartition("/")[2])["required"]) == members


def test_the_openapi_document_has_the_parameters_of_metrics_and_the_header(described: dict[str, Any]):
    operation = described["paths"]["/getMergeQueueMetrics"]["get"]
    found = [(each["name"], each["in"], each["required"]) for each in operation["parameters"]]
    assert found == [(name, "query", False) for name in doc.METRICS_PARAMETERS]
    assert list(operation["responses"]["200"]["content"]) == [doc.METRICS_TYPE]
    assert described["components"]["securitySchemes"]["token"]["name"] == doc.TOKEN_HEADER
    assert set(schema_of(described, "Repository")["required"]) == set(doc.REPO_MEMBERS)
