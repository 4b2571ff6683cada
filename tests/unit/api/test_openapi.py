"""The OpenAPI document says what the door does, in a form that machines take."""

from typing import Any

import jsonschema_rs
import pytest
import schemathesis

from mergeyard.api import openapi, routes
from mergeyard.api.answers import EnqueuedPullRequest
from mergeyard.api.endpoint import Call
from mergeyard.api.errors import KINDS
from mergeyard.api.examples import EXAMPLES
from mergeyard.service.errors import Code
from tests.support.door import get


async def nobody(_: Call) -> bytes:
    return b"{}"


ENDPOINTS = routes.endpoints(dict.fromkeys(routes.TABLE, nobody))
DOCUMENT: dict[str, Any] = openapi.document(ENDPOINTS)
SCHEMAS = DOCUMENT["components"]["schemas"]


def fits(name: str, value: Any) -> bool:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    return jsonschema_rs.is_valid(schema, value)


def test_the_document_is_served_to_everybody():
    assert get("/openapi.json", headers={"accept": "*/*"}).json()["openapi"] == "3.1.0"


def test_the_document_is_one_that_testing_tools_take():
    loaded: Any = schemathesis.openapi.from_dict(DOCUMENT)
    loaded.validate()
    assert len(list(loaded.get_all_operations())) == len(ENDPOINTS)


def test_a_table_without_a_handler_or_with_one_too_many_is_refused():
    with pytest.raises(LookupError, match="getQueue"):
        routes.endpoints({name: nobody for name in routes.TABLE if name != "getQueue"})


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_examples_fit_what_they_are_examples_of(endpoint: Any):
    example = EXAMPLES[endpoint.name]
    if endpoint.method == "POST":
        assert fits(endpoint.request.__name__, example.request)
    if endpoint.answer is not None:
        assert fits(endpoint.answer.__name__, example.answer)


@pytest.mark.parametrize("number", [1, "1", 2**31 - 1], ids=repr)
def test_a_number_is_shown_as_it_is_taken(number: Any):
    assert fits("Numbered", {"number": number})


@pytest.mark.parametrize("number", [0, "0", "x", 2**31, 1.5, None, True], ids=repr)
def test_a_number_is_not_shown_as_it_is_not_taken(number: Any):
    assert not fits("Numbered", {"number": number})


@pytest.mark.parametrize("branch", ["main", "release/1.0", "é", "@", "mergeyards"])
def test_good_branches_fit_the_shown_pattern(branch: str):
    assert fits("GetQueue", EXAMPLES["getQueue"].request | {"targetBranch": branch})


@pytest.mark.parametrize(
    "branch", ["", "-x", "a..b", "a b", "a.lock", "a.lock/b", "mergeyard/x", "HEAD", "a/", "/a", "a/.b"]
)
def test_bad_branches_do_not(branch: str):
    assert not fits("GetQueue", EXAMPLES["getQueue"].request | {"targetBranch": branch})


def test_settings_are_closed_and_other_requests_are_open():
    assert SCHEMAS["CreateQueue"]["additionalProperties"] is False
    assert "additionalProperties" not in SCHEMAS["SubmitPullRequest"]
    assert "state" not in SCHEMAS["CreateQueue"]["properties"]


def test_every_write_takes_an_idempotency_key():
    taking = {endpoint.name for endpoint in ENDPOINTS if openapi.KEY_PARAMETER in _operation(endpoint)["parameters"]}
    assert taking == {endpoint.name for endpoint in ENDPOINTS if endpoint.writes}


def _operation(endpoint: Any) -> dict[str, Any]:
    return DOCUMENT["paths"][f"/{endpoint.name}"][endpoint.method.lower()]


def test_every_code_but_those_of_addresses_stands_at_some_endpoint():
    shown = {code for endpoint in ENDPOINTS for code in openapi.codes(endpoint)}
    assert set(Code) - shown == {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED}


def test_every_refusal_stands_under_its_status():
    for endpoint in ENDPOINTS:
        responses = _operation(endpoint)["responses"]
        for code in openapi.codes(endpoint):
            assert f"`{code}`" in responses[str(KINDS[code].status)]["description"]


def test_members_are_spelled_as_the_contract_spells_them():
    contract = (
        "id state stateChangedAt priorityValue priorityName skipTheLine noBatch prNumber prTitle prSha prBaseBranch"
    )
    assert list(SCHEMAS[EnqueuedPullRequest.__name__]["properties"])[:11] == contract.split()
    assert "estimatedMergeAtP90" in SCHEMAS["SubmittedPullRequest"]["required"]
    assert "usedDefaultPriorityName" not in SCHEMAS["SubmittedPullRequest"]["required"]
    assert "from" in SCHEMAS["Moment"]["properties"]
    assert "preparing" not in str(SCHEMAS["RunDetails"])


def test_what_is_shown_otherwise_than_it_is_kept_leaves_no_trace():
    assert "x-shown" not in str(DOCUMENT)
    assert "Targets" not in SCHEMAS
