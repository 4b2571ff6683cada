"""Says who answers which endpoint."""

from collections.abc import Mapping

from mergeyard.api.endpoint import Handler, Settle
from mergeyard.api.events import EventEndpoints
from mergeyard.api.landings import LandingEndpoints
from mergeyard.api.presenting import Presenter
from mergeyard.api.pull_requests import PullRequests
from mergeyard.api.queues import QueueEndpoints
from mergeyard.api.replays import ReplayEndpoints
from mergeyard.api.runs import RunEndpoints
from mergeyard.api.webhooks import WebhookEndpoints
from mergeyard.service.service import Service


def settling(service: Service) -> Mapping[str, Settle]:
    return {"updateQueue": QueueEndpoints(service).settle}


def handlers(service: Service, public_url: str) -> Mapping[str, Handler]:
    pulls = PullRequests(service)
    queues = QueueEndpoints(service)
    runs = RunEndpoints(service, Presenter(public_url))
    events = EventEndpoints(service)
    webhooks = WebhookEndpoints(service)
    return {
        "submitPullRequest": pulls.submit,
        "cancelPullRequest": pulls.cancel,
        "restartTestsOnPullRequest": pulls.restart,
        "getSubmittedPullRequest": pulls.get,
        "getSubmittedPullRequests": pulls.get_several,
        "listPullRequests": pulls.list,
        "setImpactedTargets": pulls.set_targets,
        "getMergeQueueTestingDetails": runs.details,
        "listMergeQueueTestingResults": runs.results,
        "reportCommitStatus": runs.report_status,
        "createQueue": queues.create,
        "getQueue": queues.get,
        "listQueues": queues.list,
        "updateQueue": queues.update,
        "deleteQueue": queues.delete,
        "listEvents": events.list,
        "verifyLandings": LandingEndpoints(service).verify,
        "replayQueue": ReplayEndpoints(service).replay,
        "createWebhook": webhooks.create,
        "listWebhooks": webhooks.list,
        "updateWebhook": webhooks.update,
        "deleteWebhook": webhooks.delete,
        "testWebhook": webhooks.test,
        "listWebhookDeliveries": webhooks.deliveries,
        "resendWebhookEvent": webhooks.resend,
        "getMergeQueueMetrics": queues.metrics,
    }
