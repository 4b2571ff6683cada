"""The one table of endpoints: where each is, what it asks and answers, and who may use it."""

from collections.abc import Mapping
from typing import Any

from mergeyard.api import answers, landings, replays, requests, webhook_wire
from mergeyard.api.endpoint import Endpoint, Handler, Settle, at_once
from mergeyard.domain.tokens import Scope
from mergeyard.service.errors import Code

PREFIX = "/v1/"
METRICS = "text/plain; version=0.0.4; charset=utf-8"

NO_QUEUE = (Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED, Code.QUEUE_NOT_FOUND)
NO_TOPIC = (Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED, Code.REPOSITORY_NOT_FOUND)
PROVIDER = (Code.PROVIDER_ERROR, Code.PROVIDER_UNAVAILABLE, Code.PROVIDER_TIMEOUT)

TABLE: dict[str, dict[str, Any]] = {
    "submitPullRequest": {
        "summary": "Submit a pull request to the queue for testing and merging",
        "request": requests.SubmitPullRequest,
        "answer": answers.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (
            *NO_QUEUE,
            Code.PR_NOT_FOUND,
            Code.PR_ALREADY_MERGED,
            Code.PR_CLOSED,
            Code.SHA_MISMATCH,
            Code.SHA_REQUIRED,
            Code.MERGE_IN_PROGRESS,
            *PROVIDER,
        ),
    },
    "cancelPullRequest": {
        "summary": "Remove a pull request from the queue",
        "request": requests.CancelPullRequest,
        "answer": answers.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (*NO_QUEUE, Code.PR_NOT_SUBMITTED, Code.PR_NOT_IN_QUEUE, Code.MERGE_IN_PROGRESS),
    },
    "restartTestsOnPullRequest": {
        "summary": "Run the tests of a pull request in the queue again",
        "request": requests.RestartTestsOnPullRequest,
        "answer": answers.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (*NO_QUEUE, Code.PR_NOT_SUBMITTED, Code.TESTS_NOT_RUNNING),
    },
    "getSubmittedPullRequest": {
        "summary": "Read the status of a submitted pull request",
        "request": requests.GetSubmittedPullRequest,
        "answer": answers.SubmittedPullRequest,
        "refusals": (*NO_QUEUE, Code.PR_NOT_SUBMITTED),
    },
    "getSubmittedPullRequests": {
        "summary": "Read the status of several submitted pull requests",
        "request": requests.GetSubmittedPullRequests,
        "answer": answers.FoundPullRequests,
        "refusals": NO_QUEUE,
    },
    "listPullRequests": {
        "summary": "List the submissions of a queue, newest first",
        "request": requests.ListPullRequests,
        "answer": answers.PullRequests,
        "refusals": NO_QUEUE,
    },
    "setImpactedTargets": {
        "summary": "Set the impacted targets of a pull request, for parallel queues",
        "request": requests.SetImpactedTargets,
        "answer": answers.TargetsKept,
        "scope": Scope.TARGETS,
        "writes": True,
        "refusals": (*NO_QUEUE, Code.PR_NOT_FOUND, Code.COMMIT_NOT_FOUND, *PROVIDER),
    },
    "getMergeQueueTestingDetails": {
        "summary": "Read the details of a test run",
        "request": requests.GetMergeQueueTestingDetails,
        "answer": answers.RunDetails,
        "refusals": (*NO_QUEUE, Code.TEST_RUN_NOT_FOUND),
    },
    "listMergeQueueTestingResults": {
        "summary": "List the results of finished test runs",
        "request": requests.ListMergeQueueTestingResults,
        "answer": answers.TestingResults,
        "refusals": NO_QUEUE,
    },
    "createQueue": {
        "summary": "Create a merge queue for a branch",
        "request": requests.CreateQueue,
        "answer": answers.WholeQueue,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (
            Code.UNKNOWN_FIELD,
            Code.INVALID_REPO,
            Code.INVALID_BRANCH,
            Code.HOST_NOT_ALLOWED,
            Code.REPOSITORY_NOT_FOUND,
            Code.QUEUE_ALREADY_EXISTS,
            Code.BRANCH_NOT_FOUND,
            *PROVIDER,
        ),
    },
    "getQueue": {
        "summary": "Read a queue's state, settings and enqueued pull requests",
        "request": requests.GetQueue,
        "answer": answers.WholeQueue,
        "refusals": NO_QUEUE,
    },
    "listQueues": {
        "summary": "List the queues that the token may see",
        "request": requests.ListQueues,
        "answer": answers.Queues,
    },
    "updateQueue": {
        "summary": "Change a queue's settings or state",
        "request": requests.UpdateQueue,
        "answer": answers.WholeQueue,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*NO_QUEUE, Code.UNKNOWN_FIELD, Code.MODE_SWITCH_IN_PROGRESS),
    },
    "deleteQueue": {
        "summary": "Delete an empty queue",
        "request": requests.DeleteQueue,
        "answer": answers.QueueDeleted,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*NO_QUEUE, Code.QUEUE_NOT_EMPTY),
    },
    "listEvents": {
        "summary": "Read what happened in a queue, or wait until something does",
        "request": requests.ListEvents,
        "answer": answers.Events,
        "refusals": NO_QUEUE,
    },
    "verifyLandings": {
        "summary": "Compare the last landings with the target as it is now",
        "request": landings.VerifyLandings,
        "answer": landings.VerifiedLandings,
        "scope": Scope.ADMIN,
        "refusals": (*NO_QUEUE, *PROVIDER),
    },
    "replayQueue": {
        "summary": "Replay a queue's past under other settings, and tell what would have changed",
        "request": replays.ReplayQueue,
        "answer": replays.QueueReplay,
        "refusals": (*NO_QUEUE, Code.UNKNOWN_FIELD),
    },
    "reportCommitStatus": {
        "summary": "Report what a check says about a commit",
        "request": requests.ReportCommitStatus,
        "answer": answers.StatusAccepted,
        "scope": Scope.STATUS,
        "writes": True,
        "refusals": (Code.INVALID_REPO, Code.HOST_NOT_ALLOWED, Code.REPOSITORY_NOT_FOUND, Code.QUEUE_NOT_FOUND),
    },
    "createWebhook": {
        "summary": "Have events sent to an address",
        "request": webhook_wire.CreateWebhook,
        "answer": webhook_wire.Webhook,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*NO_TOPIC, Code.ADDRESS_NOT_ALLOWED),
    },
    "listWebhooks": {
        "summary": "List the webhooks that the token may see",
        "request": webhook_wire.ListWebhooks,
        "answer": webhook_wire.Webhooks,
        "scope": Scope.ADMIN,
    },
    "updateWebhook": {
        "summary": "Change what a webhook is sent, and where",
        "request": webhook_wire.UpdateWebhook,
        "answer": webhook_wire.Webhook,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*NO_TOPIC, Code.ADDRESS_NOT_ALLOWED, Code.WEBHOOK_NOT_FOUND),
    },
    "deleteWebhook": {
        "summary": "Send nothing there any more",
        "request": webhook_wire.DeleteWebhook,
        "answer": webhook_wire.WebhookDeleted,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "testWebhook": {
        "summary": "Send a test event now, and tell how it went",
        "request": webhook_wire.TestWebhook,
        "answer": webhook_wire.WebhookDelivery,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "listWebhookDeliveries": {
        "summary": "List the last attempts to send something to a webhook",
        "request": webhook_wire.ListWebhookDeliveries,
        "answer": webhook_wire.WebhookDeliveries,
        "scope": Scope.ADMIN,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "resendWebhookEvent": {
        "summary": "Send an event once more, now, and tell how it went",
        "request": webhook_wire.ResendWebhookEvent,
        "answer": webhook_wire.WebhookDelivery,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND, Code.EVENT_NOT_FOUND),
    },
    "getMergeQueueMetrics": {
        "summary": "Read the queues' metrics in the Prometheus text format",
        "request": requests.GetMergeQueueMetrics,
        "answer": None,
        "method": "GET",
        "media_type": METRICS,
        "refusals": (Code.HOST_NOT_ALLOWED, Code.QUEUE_NOT_FOUND),
    },
}


def endpoints(handlers: Mapping[str, Handler], settling: Mapping[str, Settle] | None = None) -> tuple[Endpoint, ...]:
    """The table with those who answer; raises when one is missing or too many."""
    if handlers.keys() != TABLE.keys():
        raise LookupError(f"no endpoint or no handler: {sorted(handlers.keys() ^ TABLE.keys())}")
    settle = settling or {}
    return tuple(
        Endpoint(path=PREFIX + name, handler=handlers[name], settle=settle.get(name, at_once), **row)
        for name, row in TABLE.items()
    )
