"""The OpenAPI document describes what the API does, in a form that tools accept."""

from typing import Any, cast

import jsonschema_rs
import pytest
import schemathesis

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Call
from mergeyard.api.openapi import EXAMPLES
from mergeyard.api.response_schemas import EnqueuedPullRequest
from mergeyard.api.responses import ERROR_KINDS
from mergeyard.service.errors import Code
from tests.support.fake_api import send_get


async def unused_handler(_: Call) -> bytes:
    return b"{}"


ENDPOINTS = routes.build_endpoints(dict.fromkeys(routes.TABLE, unused_handler))
DOCUMENT: dict[str, Any] = openapi.build_document(ENDPOINTS)
SCHEMAS = DOCUMENT["components"]["schemas"]


def fits(name: str, value: Any) -> bool:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    return jsonschema_rs.is_valid(schema, value)


def test_the_document_is_served_without_a_token():
    assert send_get("/openapi.json", headers={"accept": "*/*"}).json()["openapi"] == "3.1.0"


def test_the_document_is_accepted_by_testing_tools():
    loaded: Any = schemathesis.openapi.from_dict(DOCUMENT)
    loaded.validate()
    assert len(list(loaded.get_all_operations())) == len(ENDPOINTS)


@pytest.mark.parametrize("name", [name for name, schema in SCHEMAS.items() if "properties" in schema])
def test_every_member_is_described(name: str):
    members = cast(dict[str, dict[str, Any]], SCHEMAS[name]["properties"])
    assert [member for member, schema in members.items() if not schema.get("description")] == []


def test_no_name_of_a_class_is_renamed_in_vain():
    """A name that is no longer in the document would stay in the list unnoticed."""
    assert set(openapi.COMPONENT_NAMES.values()) <= SCHEMAS.keys()
    assert not (openapi.COMPONENT_NAMES.keys() - openapi.COMPONENT_NAMES.values()) & SCHEMAS.keys()


def test_a_table_without_a_handler_or_with_one_too_many_is_refused():
    with pytest.raises(LookupError, match="getQueue"):
        routes.build_endpoints({name: unused_handler for name in routes.TABLE if name != "getQueue"})


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_examples_fit_what_they_are_examples_of(endpoint: Any):
    example = EXAMPLES[endpoint.name]
    if endpoint.method == "POST":
        assert fits(endpoint.request.__name__, example.request)
    if endpoint.response is not None:
        assert fits(endpoint.response.__name__, example.response)


@pytest.mark.parametrize("number", [1, "1", 2**31 - 1], ids=repr)
def test_the_schema_accepts_numbers_that_the_api_accepts(number: Any):
    assert fits("PullRequestRef", {"number": number})


@pytest.mark.parametrize("number", [0, "0", "x", 2**31, 1.5, None, True], ids=repr)
def test_the_schema_refuses_numbers_that_the_api_refuses(number: Any):
    assert not fits("PullRequestRef", {"number": number})


@pytest.mark.parametrize("branch", ["main", "release/1.0", "é", "@", "mergeyards"])
def test_valid_branches_match_the_pattern(branch: str):
    assert fits("GetQueue", EXAMPLES["getQueue"].request | {"targetBranch": branch})


@pytest.mark.parametrize(
    "branch", ["", "-x", "a..b", "a b", "a.lock", "a.lock/b", "mergeyard/x", "HEAD", "a/", "/a", "a/.b"]
)
def test_invalid_branches_do_not_match_the_pattern(branch: str):
    assert not fits("GetQueue", EXAMPLES["getQueue"].request | {"targetBranch": branch})


@pytest.mark.parametrize(
    ("member", "value", "is_valid"),
    [
        ("priority", None, True),
        ("priority", "high", True),
        ("priority", "highest", False),
        ("noBatch", None, False),
        ("force", None, False),
    ],
)
def test_the_schema_of_a_submission_accepts_null_only_as_a_priority(member: str, value: Any, is_valid: bool):
    assert fits("SubmitPullRequest", EXAMPLES["submitPullRequest"].request | {member: value}) is is_valid


@pytest.mark.parametrize("targets", [[], [""], ["a"], "ALL"], ids=repr)
def test_the_schema_accepts_empty_names_of_targets(targets: Any):
    assert fits("SetImpactedTargets", EXAMPLES["setImpactedTargets"].request | {"impactedTargets": targets})


@pytest.mark.parametrize(
    ("setting", "value", "is_valid"),
    [
        ("batchingRules", [{"any": {"shape": [1]}}], True),
        ("batchingRules", [1], False),
        ("batchingRules", [{"size": at} for at in range(101)], False),
        ("batchingRules", None, False),
        ("allowedBotSubmitters", ["a[bot]"], True),
        ("allowedBotSubmitters", [1], False),
    ],
)
def test_settings_without_effect_are_lists_in_requests_and_responses(setting: str, value: Any, is_valid: bool):
    assert fits("UpdateQueue", EXAMPLES["updateQueue"].request | {setting: value}) is is_valid
    assert fits("Queue", EXAMPLES["getQueue"].response | {setting: value}) is is_valid


def find_enums(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in cast(list[Any], schema) for found in find_enums(part)]
    if not isinstance(schema, dict):
        return []
    parts = cast(dict[str, Any], schema)
    own = [parts] if isinstance(parts.get("enum"), list) else []
    return own + [found for part in parts.values() for found in find_enums(part)]


def test_every_enumeration_has_a_type():
    types = {(schema["type"], type(schema["enum"][0]).__name__) for schema in find_enums(SCHEMAS)}
    assert types == {("string", "str"), ("boolean", "bool")}


def test_settings_are_closed_and_other_requests_are_open():
    assert SCHEMAS["CreateQueue"]["additionalProperties"] is False
    assert "additionalProperties" not in SCHEMAS["SubmitPullRequest"]
    assert "state" not in SCHEMAS["CreateQueue"]["properties"]


def test_every_write_takes_an_idempotency_key():
    accepting = {
        endpoint.name
        for endpoint in ENDPOINTS
        if openapi.IDEMPOTENCY_KEY_PARAMETER in _operation(endpoint)["parameters"]
    }
    assert accepting == {endpoint.name for endpoint in ENDPOINTS if endpoint.writes}


def _operation(endpoint: Any) -> dict[str, Any]:
    return DOCUMENT["paths"][f"/{endpoint.name}"][endpoint.method.lower()]


def test_every_code_except_routing_codes_is_documented_at_some_endpoint():
    shown = {code for endpoint in ENDPOINTS for code in openapi.list_error_codes(endpoint)}
    assert set(Code) - shown == {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED, Code.HEADERS_TOO_LARGE}


def test_every_refusal_is_documented_under_its_status():
    for endpoint in ENDPOINTS:
        responses = _operation(endpoint)["responses"]
        for code in openapi.list_error_codes(endpoint):
            assert f"`{code}`" in responses[str(ERROR_KINDS[code].status)]["description"]


def test_members_are_spelled_as_the_contract_spells_them():
    contract = (
        "id state stateChangedAt priorityValue priorityName usedDefaultPriorityName skipTheLine noBatch prNumber "
        "prTitle prSha prBaseBranch"
    )
    assert list(SCHEMAS[EnqueuedPullRequest.__name__]["properties"])[:12] == contract.split()
    assert "usedDefaultPriorityName" not in SCHEMAS[EnqueuedPullRequest.__name__]["required"]
    assert "estimatedMergeAtP90" in SCHEMAS["SubmittedPullRequest"]["required"]
    assert "usedDefaultPriorityName" not in SCHEMAS["SubmittedPullRequest"]["required"]
    assert "from" in SCHEMAS["TimelineEntry"]["properties"]
    assert "preparing" not in str(SCHEMAS["TestRun"])


def test_schema_overrides_are_not_in_the_document():
    assert "x-schema-override" not in str(DOCUMENT)
    assert "Targets" not in SCHEMAS
