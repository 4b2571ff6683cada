"""Examples of requests and responses, for the OpenAPI document and the documentation pages."""

from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import fields

from mergeyard.api import response_schemas
from mergeyard.api.request_schemas import RepoReference
from mergeyard.domain.config import Config
from mergeyard.domain.states import QueueState

QUEUE = {"repo": {"host": "github.com", "owner": "acme", "name": "app"}, "targetBranch": "main"}
PR = QUEUE | {"pr": {"number": 123}}
SHA = "9f2c4e1ab07d5c3e8f6a1b2c3d4e5f60718293a4"
RUN = "6f1d2c3b-4a59-8e7f-a012-3456789abcde"

SUBMITTED: dict[str, Any] = {
    "id": "17",
    "state": "testing",
    "stateChangedAt": "2026-11-14T10:16:02.000Z",
    "priorityValue": 100,
    "priorityName": "medium",
    "usedDefaultPriorityName": "medium",
    "skipTheLine": False,
    "forceEnqueued": False,
    "isCurrentlySubmittedToQueue": True,
    "prNumber": 123,
    "prTitle": "Fix the session timeout",
    "prSha": SHA,
    "prBaseBranch": "main",
    "prAuthor": "ada",
    "readiness": {"requiresImpactedTargets": False, "doesBaseBranchMatch": True, "hasImpactedTargets": False},
    "noBatch": False,
    "mergeability": "mergeable",
    "testRunId": RUN,
    "verifiedByTestRun": None,
    "position": 1,
    "reason": {"code": "waiting_for_checks", "message": "Some of its checks have not reported yet.", "waitingFor": []},
    "estimatedMergeAt": "2026-11-14T10:31:00.000Z",
    "estimatedMergeAtP90": "2026-11-14T10:44:00.000Z",
    "submittedAt": "2026-11-14T10:15:58.000Z",
    "mergedSha": None,
}
SUBMITTED_WITH_PRIORITY = {name: value for name, value in SUBMITTED.items() if name != "usedDefaultPriorityName"} | {
    "priorityValue": 10,
    "priorityName": "high",
}
ENQUEUED = {at.encode_name: SUBMITTED[at.encode_name] for at in fields(response_schemas.EnqueuedPullRequest)}
QUEUE_RESPONSE: dict[str, Any] = to_builtins(
    response_schemas.build_queue(
        Config(), state=QueueState.RUNNING, branch="main", repo=RepoReference("github.com", "acme", "app")
    )
)
METRICS = (
    "# HELP mq_depth_current Pull requests in the queue.\n"
    "# TYPE mq_depth_current gauge\n"
    'mq_depth_current{branch="main",host="github.com",queue_type="main",repo="acme/app"} 3.0\n'
)

EVENT: dict[str, Any] = {
    "type": "pull_request.testing",
    "timestamp": "2026-11-14T10:16:02.000Z",
    "repository": "github.com/acme/app",
    "target_branch": "main",
    "pr_number": 123,
    "author": "ada",
    "state": "testing",
    "reason": "test_run_started",
    "test_run_id": RUN,
    "test_branch": f"mergeyard/pr-123/{RUN}",
    "test_branch_sha": SHA,
    "batched": False,
    "is_bisection": False,
    "details_url": "https://queue.example.com/pulls/github.com/acme/app/123",
    "cursor": "42",
    "message": "Its test run started.",
}
WEBHOOK: dict[str, Any] = {
    "id": "0c6a2f41d9b7",
    "kind": "webhook",
    "url": "https://ci.example.com/hook",
    "events": ["pull_request.failed", "pull_request.merged"],
    "queues": [QUEUE],
    "description": "",
    "enabled": True,
    "disabled": None,
    "createdAt": "2026-11-14T10:15:58.000Z",
}
DELIVERY: dict[str, Any] = {
    "eventId": "msg_5b1d3c0a9e8f47626f1d2c3b4a598e7f",
    "type": "pull_request.merged",
    "at": "2026-11-14T10:31:00.000Z",
    "attempt": 1,
    "delivered": True,
    "status": 200,
    "message": "ok",
}
VERIFIED: dict[str, Any] = {
    "targetSha": SHA,
    "landings": [
        {
            "prNumber": 123,
            "mergedSha": SHA,
            "verifiedByTestRun": RUN,
            "landedAt": "2026-11-14T10:31:00.000Z",
            "form": "tested_commit",
            "verdict": "as_tested",
        }
    ],
    "mismatches": [],
    "notes": [],
}
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
    "confidence": "well",
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


class Example(Struct, frozen=True):
    request: Any
    response: Any


EXAMPLES = {
    "submitPullRequest": Example(PR | {"priority": "high"}, SUBMITTED_WITH_PRIORITY),
    "cancelPullRequest": Example(PR, SUBMITTED | {"state": "cancelled", "isCurrentlySubmittedToQueue": False}),
    "restartTestsOnPullRequest": Example(PR, SUBMITTED),
    "getSubmittedPullRequest": Example(PR, SUBMITTED),
    "getSubmittedPullRequests": Example(
        QUEUE | {"prs": [{"number": 123}, {"number": 124}]}, {"pullRequests": [SUBMITTED], "notFound": [124]}
    ),
    "listPullRequests": Example(QUEUE | {"state": "testing", "take": 10}, {"pullRequests": [SUBMITTED]}),
    "setImpactedTargets": Example(
        PR | {"impactedTargets": ["//app:server", "//lib:session"]},
        {"prNumber": 123, "prSha": SHA, "impactedTargets": 2},
    ),
    "getMergeQueueTestingDetails": Example(
        QUEUE | {"testRunId": RUN},
        {
            "id": RUN,
            "requiredStatuses": ["unit"],
            "requiredStatusesSource": "service_config",
            "testBranch": f"mergeyard/pr-123/{RUN}",
            "testBranchSha": SHA,
            "checkSuites": [],
            "statusChecks": [{"context": "unit", "url": "https://ci.example/1", "state": "pending"}],
            "testedPullRequests": [
                {"prNumber": 123, "prUrl": "https://github.com/acme/app/pull/123", "title": "Fix the session timeout"}
            ],
            "status": "in_progress",
            "createdAt": "2026-11-14T10:16:02.000Z",
            "dependentPrs": [],
            "isBisection": False,
            "baseSha": "1b2c3d4e5f60718293a49f2c4e1ab07d5c3e8f6a",
        },
    ),
    "listMergeQueueTestingResults": Example(
        QUEUE | {"since": "2026-11-14T00:00:00.000Z"},
        {
            "testingResults": [
                {
                    "prNumber": 123,
                    "testRunId": RUN,
                    "status": "succeeded",
                    "isBisection": False,
                    "startedAt": "2026-11-14T10:16:02.000Z",
                    "finishedAt": "2026-11-14T10:30:32.500Z",
                    "durationSeconds": 870.5,
                }
            ],
            "totalItems": 1,
        },
    ),
    "createQueue": Example(
        QUEUE | {"mode": "parallel", "concurrency": 10},
        QUEUE_RESPONSE | {"enqueuedPullRequests": [], "mode": "parallel", "concurrency": 10},
    ),
    "getQueue": Example(QUEUE, QUEUE_RESPONSE | {"enqueuedPullRequests": [ENQUEUED]}),
    "listQueues": Example({}, {"queues": [QUEUE_RESPONSE]}),
    "updateQueue": Example(QUEUE | {"state": "PAUSED"}, QUEUE_RESPONSE | {"state": "PAUSED"}),
    "deleteQueue": Example(QUEUE, {"deleted": True} | QUEUE),
    "listEvents": Example(QUEUE | {"after": "41", "waitSeconds": 20}, {"events": [EVENT], "next": "42"}),
    "verifyLandings": Example(QUEUE | {"last": 10}, VERIFIED),
    "replayQueue": Example(QUEUE | {"since": "2026-10-31T10:15:58.000Z", "concurrency": 20}, REPLAY),
    "reportCommitStatus": Example(
        {"repo": QUEUE["repo"], "sha": SHA, "context": "unit", "state": "success", "url": "https://ci.example/1"},
        {"accepted": True},
    ),
    "createWebhook": Example(
        {"url": "https://ci.example.com/hook", "events": WEBHOOK["events"], "queues": [QUEUE]},
        WEBHOOK | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
    ),
    "listWebhooks": Example({}, {"webhooks": [WEBHOOK]}),
    "updateWebhook": Example(
        {"id": WEBHOOK["id"], "enabled": False},
        WEBHOOK | {"enabled": False, "disabled": {"at": "2026-11-14T10:16:02.000Z", "reason": "asked", "message": ""}},
    ),
    "deleteWebhook": Example({"id": WEBHOOK["id"]}, {"deleted": True, "id": WEBHOOK["id"]}),
    "testWebhook": Example({"id": WEBHOOK["id"]}, DELIVERY | {"type": "webhook.test"}),
    "listWebhookDeliveries": Example({"id": WEBHOOK["id"], "take": 10}, {"deliveries": [DELIVERY]}),
    "resendWebhookEvent": Example({"id": WEBHOOK["id"], "eventId": DELIVERY["eventId"]}, DELIVERY | {"attempt": 2}),
    "getMergeQueueMetrics": Example(None, METRICS),
}
