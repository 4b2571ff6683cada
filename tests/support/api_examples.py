"""API responses, taken from the examples of the API."""

from typing import Any

from mergeyard.api.examples import ENQUEUED, EVENT, EXAMPLES, QUEUE_RESPONSE, SUBMITTED

__all__ = ["ENQUEUED", "EVENT", "QUEUE_RESPONSE", "RUN", "SUBMITTED", "a_problem"]

RUN: dict[str, Any] = EXAMPLES["getMergeQueueTestingDetails"].response


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
