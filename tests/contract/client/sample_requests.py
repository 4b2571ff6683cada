"""One request of every kind that the client can make, by the name of its call."""

from datetime import UTC, datetime
from typing import Any

from mergeyard.client import QueueName, RepoName, requests
from mergeyard.client.requests import (
    create_webhook,
    delete_webhook,
    list_deliveries,
    list_webhooks,
    resend_event,
    test_webhook,
    update_webhook,
)
from mergeyard.client.transport import Request

REPO = RepoName.parse("git.local/acme/app")
QUEUE = QueueName(REPO, "main")
NOON = datetime(2026, 11, 14, 12, tzinfo=UTC)
SHA = "1" * 40

REQUESTS: dict[str, Request[Any]] = {
    "submit": requests.submit(QUEUE, 1, priority="high", no_batch=True, force=True, sha=SHA),
    "cancel": requests.cancel(QUEUE, 1),
    "restart": requests.restart(QUEUE, 1),
    "preview_action": requests.preview_action(QUEUE, 1, "priority", priority="urgent"),
    "preview_commit_message": requests.preview_commit_message(QUEUE, 1),
    "get_pull_request": requests.get_pull_request(QUEUE, 1, include_timeline=True),
    "find_pull_request": requests.find_pull_request(QUEUE, "topic", include_timeline=True),
    "get_pull_requests": requests.get_pull_requests(QUEUE, [1, 2]),
    "get_provenance": requests.get_provenance(QUEUE, 1, merged_sha=SHA),
    "list_open_pull_requests": requests.list_open_pull_requests(QUEUE),
    "list_pull_requests": requests.list_pull_requests(
        QUEUE, state="merged", since=NOON, until=NOON, concluded_since=NOON, cursor="12", take=3
    ),
    "set_impacted_targets": requests.set_impacted_targets(QUEUE, 1, ["a"], sha=SHA),
    "get_run": requests.get_run(QUEUE, "x"),
    "list_results": requests.list_results(QUEUE, since=NOON, until=NOON, offset=1, take=2),
    "report_status": requests.report_status(REPO, SHA, "unit", "success", url="https://ci.example", description="ok"),
    "create_queue": requests.create_queue(
        QUEUE, mode="parallel", required_statuses=["unit"], batching_rules=[{"any": 1}]
    ),
    "get_queue": requests.get_queue(QUEUE),
    "list_queues": requests.list_queues(),
    "update_queue": requests.update_queue(
        QUEUE, state="PAUSED", state_reason="Freeze", concurrency=3, required_statuses=None
    ),
    "delete_queue": requests.delete_queue(QUEUE),
    "get_metrics": requests.get_metrics(REPO),
    "list_events": requests.list_events(QUEUE, after="3", take=2, wait_seconds=1),
    "verify_landings": requests.verify_landings(QUEUE, last=3),
    "replay_queue": requests.replay_queue(QUEUE, since=NOON, concurrency=20, batch=True, mode="parallel"),
    "create_webhook": create_webhook(
        "https://there.example",
        kind="slack",
        events=["queue.created"],
        queues=[QUEUE, REPO],
        description="",
        enabled=True,
    ),
    "list_webhooks": list_webhooks(),
    "update_webhook": update_webhook(
        "x", url="https://there.example", events=[], queues=[], description="", enabled=False
    ),
    "delete_webhook": delete_webhook("x"),
    "test_webhook": test_webhook("x"),
    "list_deliveries": list_deliveries("x", take=3),
    "resend_event": resend_event("x", "msg_1"),
    "get_current_token": requests.get_current_token(),
    "create_token": requests.create_token("ci", scopes=["read"], repositories=[REPO], expires_at=NOON),
    "list_tokens": requests.list_tokens(),
    "revoke_token": requests.revoke_token("x"),
}
COMPOSITE_CALLS = {"wait", "events"}
"""Calls that make several requests."""
