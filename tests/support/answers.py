"""Answers of the API, as its own examples show them."""

from typing import Any

from mergeyard.api.examples import ENQUEUED, EVENT, EXAMPLES, SHOWN_QUEUE, SUBMITTED

__all__ = ["ENQUEUED", "EVENT", "RUN", "SHOWN_QUEUE", "SUBMITTED", "problem"]

RUN: dict[str, Any] = EXAMPLES["getMergeQueueTestingDetails"].answer


def problem(code: str, *, retryable: bool) -> dict[str, Any]:
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
