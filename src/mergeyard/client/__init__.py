"""A typed client of the API, for programs that wait and for programs that await."""

from mergeyard.client.awaiting import AsyncClient
from mergeyard.client.blocking import Client
from mergeyard.client.errors import Flaw, MergeyardError, Unreachable
from mergeyard.client.events import Event, Events
from mergeyard.client.landings import LandingMismatch, VerifiedLanding, VerifiedLandings
from mergeyard.client.naming import QueueName, RepoName
from mergeyard.client.pulls import (
    EnqueuedPullRequest,
    FoundPullRequests,
    Moment,
    PullRequests,
    Readiness,
    SubmittedPullRequest,
    TargetsKept,
    Why,
)
from mergeyard.client.queues import Queue, QueueDeleted, Queues, Settings
from mergeyard.client.replays import QueueReplay, ReplayChange, ReplayFigures, ReplayGuess
from mergeyard.client.retrying import Patience
from mergeyard.client.runs import (
    CheckRun,
    CheckSuite,
    Run,
    StatusAccepted,
    StatusCheck,
    TestedPullRequest,
    TestingResult,
    TestingResults,
)
from mergeyard.client.webhooks import (
    Webhook,
    WebhookDeleted,
    WebhookDeliveries,
    WebhookDelivery,
    WebhookDisabled,
    Webhooks,
    WebhookTopic,
)

__all__ = [
    "AsyncClient",
    "CheckRun",
    "CheckSuite",
    "Client",
    "EnqueuedPullRequest",
    "Event",
    "Events",
    "Flaw",
    "FoundPullRequests",
    "LandingMismatch",
    "MergeyardError",
    "Moment",
    "Patience",
    "PullRequests",
    "Queue",
    "QueueDeleted",
    "QueueName",
    "QueueReplay",
    "Queues",
    "Readiness",
    "ReplayChange",
    "ReplayFigures",
    "ReplayGuess",
    "RepoName",
    "Run",
    "Settings",
    "StatusAccepted",
    "StatusCheck",
    "SubmittedPullRequest",
    "TargetsKept",
    "TestedPullRequest",
    "TestingResult",
    "TestingResults",
    "Unreachable",
    "VerifiedLanding",
    "VerifiedLandings",
    "Webhook",
    "WebhookDeleted",
    "WebhookDeliveries",
    "WebhookDelivery",
    "WebhookDisabled",
    "WebhookTopic",
    "Webhooks",
    "Why",
]
