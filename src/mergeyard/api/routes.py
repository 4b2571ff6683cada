"""The table of endpoints: path, request and response structs, scope and error codes of each."""

from collections.abc import Mapping
from typing import Any

from mergeyard.api import queues, request_schemas, response_schemas, tokens, webhooks, whatif
from mergeyard.api.endpoint import PREFIX, Endpoint, Handler, WaitForEffect
from mergeyard.api.responses import METRICS_MEDIA_TYPE
from mergeyard.domain.access import Scope
from mergeyard.service.errors import Code

QUEUE_ERRORS = (Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED, Code.QUEUE_NOT_FOUND)
REPOSITORY_ERRORS = (Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED, Code.REPOSITORY_NOT_FOUND)
PROVIDER_ERRORS = (Code.PROVIDER_ERROR, Code.PROVIDER_UNAVAILABLE, Code.PROVIDER_TIMEOUT)

TABLE: dict[str, dict[str, Any]] = {
    "submitPullRequest": {
        "summary": "Submit a pull request to the queue for testing and merging",
        "request": request_schemas.SubmitPullRequest,
        "response": response_schemas.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (
            *QUEUE_ERRORS,
            Code.PR_NOT_FOUND,
            Code.PR_ALREADY_MERGED,
            Code.PR_CLOSED,
            Code.SHA_MISMATCH,
            Code.SHA_REQUIRED,
            Code.MERGE_IN_PROGRESS,
            *PROVIDER_ERRORS,
        ),
    },
    "cancelPullRequest": {
        "summary": "Remove a pull request from the queue",
        "request": request_schemas.CancelPullRequest,
        "response": response_schemas.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (*QUEUE_ERRORS, Code.PR_NOT_SUBMITTED, Code.PR_NOT_IN_QUEUE, Code.MERGE_IN_PROGRESS),
    },
    "restartTestsOnPullRequest": {
        "summary": "Run the tests of a pull request in the queue again",
        "request": request_schemas.RestartTestsOnPullRequest,
        "response": response_schemas.SubmittedPullRequest,
        "scope": Scope.SUBMIT,
        "writes": True,
        "refusals": (*QUEUE_ERRORS, Code.PR_NOT_SUBMITTED, Code.PR_NOT_IN_QUEUE, Code.MERGE_IN_PROGRESS),
    },
    "previewPullRequestAction": {
        "summary": "Read which test runs an action on a pull request would stop, without performing it",
        "request": request_schemas.PreviewPullRequestAction,
        "response": response_schemas.ActionPreview,
        "scope": Scope.SUBMIT,
        "refusals": QUEUE_ERRORS,
    },
    "previewCommitMessage": {
        "summary": "Read with which commit message, and how, a pull request would merge now, submitted or not",
        "request": request_schemas.PreviewCommitMessage,
        "response": response_schemas.CommitMessagePreview,
        "refusals": (
            *QUEUE_ERRORS,
            Code.PR_NOT_FOUND,
            Code.PR_ALREADY_MERGED,
            Code.PR_CLOSED,
            Code.BRANCH_NOT_FOUND,
            *PROVIDER_ERRORS,
        ),
    },
    "getSubmittedPullRequest": {
        "summary": "Read the status of a submitted pull request",
        "request": request_schemas.GetSubmittedPullRequest,
        "response": response_schemas.SubmittedPullRequest,
        "refusals": (*QUEUE_ERRORS, Code.PR_NOT_SUBMITTED),
    },
    "getSubmittedPullRequests": {
        "summary": "Read the status of several submitted pull requests",
        "request": request_schemas.GetSubmittedPullRequests,
        "response": response_schemas.FoundPullRequests,
        "refusals": QUEUE_ERRORS,
    },
    "listPullRequests": {
        "summary": "List the submissions of a queue, newest first",
        "request": request_schemas.ListPullRequests,
        "response": response_schemas.PullRequests,
        "refusals": QUEUE_ERRORS,
    },
    "listOpenPullRequests": {
        "summary": "List the newest open pull requests of the Git host into the target branch, submitted or not",
        "request": request_schemas.ListOpenPullRequests,
        "response": response_schemas.OpenPullRequests,
        "scope": Scope.SUBMIT,
        "refusals": (*QUEUE_ERRORS, *PROVIDER_ERRORS),
    },
    "getProvenance": {
        "summary": "Read the signed provenance of a merged pull request",
        "request": request_schemas.GetProvenance,
        "response": response_schemas.Provenance,
        "refusals": (*QUEUE_ERRORS, Code.PR_NOT_SUBMITTED, Code.COMMIT_NOT_FOUND, *PROVIDER_ERRORS),
    },
    "setImpactedTargets": {
        "summary": "Set the impacted targets of a pull request, for parallel queues",
        "request": request_schemas.SetImpactedTargets,
        "response": response_schemas.ImpactedTargetsResult,
        "scope": Scope.TARGETS,
        "writes": True,
        "refusals": (*QUEUE_ERRORS, Code.PR_NOT_FOUND, Code.COMMIT_NOT_FOUND, *PROVIDER_ERRORS),
    },
    "getMergeQueueTestingDetails": {
        "summary": "Read the details of a test run",
        "request": request_schemas.GetMergeQueueTestingDetails,
        "response": response_schemas.TestRun,
        "refusals": (*QUEUE_ERRORS, Code.TEST_RUN_NOT_FOUND),
    },
    "listMergeQueueTestingResults": {
        "summary": "List the results of finished test runs",
        "request": request_schemas.ListMergeQueueTestingResults,
        "response": response_schemas.TestingResults,
        "refusals": QUEUE_ERRORS,
    },
    "createQueue": {
        "summary": "Create a merge queue for a branch",
        "request": request_schemas.CreateQueue,
        "response": response_schemas.QueueResponse,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (
            Code.UNKNOWN_FIELD,
            *REPOSITORY_ERRORS,
            Code.QUEUE_ALREADY_EXISTS,
            Code.BRANCH_NOT_FOUND,
            *PROVIDER_ERRORS,
        ),
    },
    "getQueue": {
        "summary": "Read a queue's state, settings and enqueued pull requests",
        "request": request_schemas.GetQueue,
        "response": response_schemas.QueueResponse,
        "refusals": QUEUE_ERRORS,
    },
    "listQueues": {
        "summary": "List the queues that the token can access",
        "request": request_schemas.ListQueues,
        "response": response_schemas.Queues,
    },
    "updateQueue": {
        "summary": "Change a queue's settings or state",
        "request": request_schemas.UpdateQueue,
        "response": response_schemas.QueueResponse,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*QUEUE_ERRORS, Code.UNKNOWN_FIELD, Code.MODE_SWITCH_IN_PROGRESS),
    },
    "deleteQueue": {
        "summary": "Delete an empty queue",
        "request": request_schemas.DeleteQueue,
        "response": response_schemas.QueueDeleted,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*QUEUE_ERRORS, Code.QUEUE_NOT_EMPTY),
    },
    "listEvents": {
        "summary": "List the events of a queue, or wait for the next one",
        "request": request_schemas.ListEvents,
        "response": response_schemas.Events,
        "refusals": QUEUE_ERRORS,
    },
    "verifyLandings": {
        "summary": "Audit the last merges: compare them with the current target branch",
        "request": queues.VerifyLandings,
        "response": queues.VerifiedLandings,
        "scope": Scope.ADMIN,
        "refusals": (*QUEUE_ERRORS, *PROVIDER_ERRORS),
    },
    "replayQueue": {
        "summary": "Replay a queue's history with other settings, and report what would have changed",
        "request": whatif.ReplayQueue,
        "response": whatif.QueueReplay,
        "refusals": (*QUEUE_ERRORS, Code.UNKNOWN_FIELD),
    },
    "reportCommitStatus": {
        "summary": "Report the status of a check for a commit",
        "request": request_schemas.ReportCommitStatus,
        "response": response_schemas.StatusAccepted,
        "scope": Scope.STATUS,
        "writes": True,
        "refusals": (Code.INVALID_REPO, Code.HOST_NOT_ALLOWED, Code.REPOSITORY_NOT_FOUND, Code.QUEUE_NOT_FOUND),
    },
    "createWebhook": {
        "summary": "Create a webhook, which sends events to an address",
        "request": webhooks.CreateWebhook,
        "response": webhooks.Webhook,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*REPOSITORY_ERRORS, Code.ADDRESS_NOT_ALLOWED),
    },
    "listWebhooks": {
        "summary": "List the webhooks that the token can access",
        "request": webhooks.ListWebhooks,
        "response": webhooks.Webhooks,
        "scope": Scope.ADMIN,
    },
    "updateWebhook": {
        "summary": "Change a webhook's address, events or queues",
        "request": webhooks.UpdateWebhook,
        "response": webhooks.Webhook,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (*REPOSITORY_ERRORS, Code.ADDRESS_NOT_ALLOWED, Code.WEBHOOK_NOT_FOUND),
    },
    "deleteWebhook": {
        "summary": "Delete a webhook",
        "request": webhooks.DeleteWebhook,
        "response": webhooks.WebhookDeleted,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "testWebhook": {
        "summary": "Send a test event now, and return the result",
        "request": webhooks.TestWebhook,
        "response": webhooks.WebhookDelivery,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "listWebhookDeliveries": {
        "summary": "List the latest delivery attempts of a webhook",
        "request": webhooks.ListWebhookDeliveries,
        "response": webhooks.WebhookDeliveries,
        "scope": Scope.ADMIN,
        "refusals": (Code.WEBHOOK_NOT_FOUND,),
    },
    "resendWebhookEvent": {
        "summary": "Send an event again now, and return the result",
        "request": webhooks.ResendWebhookEvent,
        "response": webhooks.WebhookDelivery,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.WEBHOOK_NOT_FOUND, Code.EVENT_NOT_FOUND),
    },
    "getCurrentToken": {
        "summary": "Read what the token of this request can do, and the version of the server",
        "request": tokens.GetCurrentToken,
        "response": tokens.CurrentToken,
        "scope": None,
    },
    "createToken": {
        "summary": "Create an API token",
        "request": tokens.CreateToken,
        "response": tokens.ApiToken,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.INVALID_REPO, Code.HOST_NOT_ALLOWED, Code.REPOSITORY_NOT_FOUND),
    },
    "listTokens": {
        "summary": "List the API tokens that the token can manage",
        "request": tokens.ListTokens,
        "response": tokens.ApiTokens,
        "scope": Scope.ADMIN,
    },
    "revokeToken": {
        "summary": "Revoke an API token, effective immediately",
        "request": tokens.RevokeToken,
        "response": tokens.ApiToken,
        "scope": Scope.ADMIN,
        "writes": True,
        "refusals": (Code.TOKEN_NOT_FOUND,),
    },
    "getMergeQueueMetrics": {
        "summary": "Read the queues' metrics in the Prometheus text format",
        "request": request_schemas.GetMergeQueueMetrics,
        "response": None,
        "method": "GET",
        "media_type": METRICS_MEDIA_TYPE,
        "refusals": (Code.HOST_NOT_ALLOWED, Code.QUEUE_NOT_FOUND),
    },
}


def build_endpoints(
    handlers: Mapping[str, Handler], effect_waits: Mapping[str, WaitForEffect] | None = None
) -> tuple[Endpoint, ...]:
    """Combines the table with the handlers. Raises LookupError if a handler is missing or has no row."""
    if handlers.keys() != TABLE.keys():
        raise LookupError(
            f"Endpoints without a handler, or handlers without an endpoint: {sorted(handlers.keys() ^ TABLE.keys())}"
        )
    waits = effect_waits or {}
    return tuple(
        Endpoint(path=PREFIX + name, handler=handlers[name], wait_for_effect=waits.get(name), **row)
        for name, row in TABLE.items()
    )
