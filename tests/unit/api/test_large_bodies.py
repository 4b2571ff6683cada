"""A large body has the same result in this process, in another process, and after that process died."""

from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from mergeyard.api.body_parser_process import answer
from mergeyard.api.examples import PR, SHA
from mergeyard.api.json_parser import ParsedRequest
from mergeyard.api.large_bodies import Question, understood_by
from mergeyard.api.responses import ApiError
from mergeyard.api.routes import TABLE
from mergeyard.ports.external import BodyParserUnavailable
from mergeyard.service.impacted_targets import decode_targets

TARGETS = PR | {"impactedTargets": ["b", "a", "b"]}


class InProcessParser:
    """Requests and results pass through bytes, as between processes."""

    def parse(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        return answer(question, bytes(body))

    async def close(self) -> None:
        """Nothing was started."""


class DeadParser(InProcessParser):
    def parse(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        raise BodyParserUnavailable(f"the process died of {len(question) + len(body)} bytes")


def both(endpoint: str, body: bytes, *, repeatable: bool = True) -> tuple[Any, Any]:
    question = Question(endpoint, repeatable)
    return tuple(outcome(parser, question, body) for parser in (None, InProcessParser()))  # pyright: ignore[reportReturnType]


def outcome(parser: InProcessParser | None, question: Question, body: bytes) -> Any:
    try:
        return understood_by(parser, TABLE[question.endpoint]["request"], question, bytearray(body))
    except ApiError as error:
        return error.code, error.detail, error.errors, error.headers


REQUESTS: dict[str, dict[str, Any]] = {
    "submitPullRequest": PR | {"priority": "high", "noBatch": True, "pr": {"number": "7", "sha": SHA}},
    "getSubmittedPullRequest": PR | {"includeTimeline": True},
    "listPullRequests": PR | {"state": "TESTING", "since": "2026-11-14T10:16:02.000Z", "take": 3},
    "getSubmittedPullRequests": PR | {"prs": [{"number": 1}, {"number": "2"}]},
    "createQueue": PR | {"concurrency": 3, "requiredStatuses": ["unit"], "mode": "parallel"},
    "updateQueue": PR | {"state": "paused", "deleteRequiredStatuses": True},
    "reportCommitStatus": PR | {"sha": SHA, "context": "unit", "state": "success"},
    "listQueues": {},
}


@pytest.mark.parametrize("endpoint", REQUESTS)
def test_every_request_is_parsed_the_same(endpoint: str):
    here, there = both(endpoint, json.encode(REQUESTS[endpoint]))
    assert here == there


@pytest.mark.parametrize("endpoint", TABLE)
@pytest.mark.parametrize("body", [b"", b"[]", b'{"a":1,"a":2}', b'{"repo":7}', b"{}", b"[" * 99, b'{"a":"\\u0000"}'])
def test_every_refusal_is_the_same(endpoint: str, body: bytes):
    here, there = both(endpoint, body)
    assert here == there


@pytest.mark.parametrize("targets", [[""], [1], "some", None, {"body": "", "count": 1}, ["a" * 1025], {}])
def test_targets_are_refused_alike(targets: Any):
    here, there = both("setImpactedTargets", json.encode(PR | {"impactedTargets": targets}))
    assert not isinstance(here, ParsedRequest)
    assert here == there


@pytest.mark.parametrize("targets", [[], ["b", "a", "b"], "all", ["ALL", "a"], [f"//{at}" for at in range(5000)]])
@pytest.mark.parametrize("repeatable", [True, False])
def test_targets_are_returned_encoded_and_without_names(targets: Any, repeatable: bool):
    body = json.encode(PR | {"impactedTargets": targets})
    here, there = both("setImpactedTargets", body, repeatable=repeatable)
    uploaded = here.request.impacted_targets
    assert there == ParsedRequest(
        replace(here.request, impacted_targets=replace(uploaded, impacted_targets=None)), here.digest
    )
    assert decode_targets(there.request.impacted_targets.body) == uploaded.impacted_targets
    assert (there.digest is not None) == repeatable


def test_when_the_body_parser_is_unavailable_the_body_is_parsed_in_process():
    question, body = Question("setImpactedTargets", repeatable=True), json.encode(TARGETS)
    assert outcome(DeadParser(), question, body) == outcome(None, question, body)
