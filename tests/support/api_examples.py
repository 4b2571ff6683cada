"""API responses: the examples of the API, and a replay of more pull requests than the example has."""

from typing import Any

from mergeyard.api.openapi import EXAMPLES

SUBMITTED: dict[str, Any] = EXAMPLES["getSubmittedPullRequest"].response
QUEUE_RESPONSE: dict[str, Any] = EXAMPLES["listQueues"].response["queues"][0] | {
    "repo": {"host": "github.com", "owner": "acme", "name": "app"}
}
ENQUEUED: dict[str, Any] = EXAMPLES["getQueue"].response["enqueuedPullRequests"][0]
RUN: dict[str, Any] = EXAMPLES["getMergeQueueTestingDetails"].response
EVENT: dict[str, Any] = EXAMPLES["listEvents"].response["events"][0]
REPLAYED: dict[str, Any] = {
    "merged": 212,
    "failed": 19,
    "left": 6,
    "p50Seconds": 1860.0,
    "p95Seconds": 5400.0,
    "runs": 318,
    "runsPerMerge": 1.5,
    "ciMinutes": 4770.0,
}
REPLAYED_WITH_CHANGE = REPLAYED | {
    "p50Seconds": 1140.0,
    "p95Seconds": 3000.0,
    "runs": 342,
    "runsPerMerge": 1.613,
    "ciMinutes": 5040.0,
}
REPLAY: dict[str, Any] = {
    "since": "2026-10-31T10:15:58.000Z",
    "until": "2026-11-14T10:15:58.000Z",
    "pullRequests": 237,
    "limitedTo": None,
    "changes": [{"setting": "concurrency", "now": 5, "proposed": 20}],
    "actual": REPLAYED | {"p50Seconds": 1905.4},
    "baseline": REPLAYED,
    "proposed": REPLAYED_WITH_CHANGE,
    "proposedMin": REPLAYED_WITH_CHANGE | {"p50Seconds": 1120.0},
    "proposedMax": REPLAYED_WITH_CHANGE | {"p50Seconds": 1180.0},
    "confidence": "high",
    "reasons": [],
    "assumptions": [
        {
            "about": "outcomes",
            "count": 6,
            "of": 237,
            "message": "6 of 237 pull requests left before a test run decided them: the replay assumes that they pass.",
        }
    ],
}


def a_problem(code: str, *, retryable: bool) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": "Refused",
        "status": 409,
        "code": code,
        "detail": "It cannot be.",
        "requestId": "r-1",
        "retryable": retryable,
        "errors": [],
    }
