"""A typed Python client of the HTTP API: `Client` blocks, `AsyncClient` is for asyncio. Both have the same methods.

    with Client("https://queue.example.com", token) as client:
        client.submit(QueueName.of("github.com/acme/app", "main"), 12)

`requests` describes each request as a value. `client` sends it: a generator yields what to send or how long to pause,
and receives the outcome, so that retries are written once, without I/O, and tested without a server. `transport` has
these steps, the retry policy and the errors; `models` has the response structs. Nothing is imported from the server.
"""

from mergeyard.client.client import AsyncClient as AsyncClient
from mergeyard.client.client import Client as Client
from mergeyard.client.models import ActionPreview as ActionPreview
from mergeyard.client.models import ApiToken as ApiToken
from mergeyard.client.models import ApiTokens as ApiTokens
from mergeyard.client.models import Check as Check
from mergeyard.client.models import CheckRun as CheckRun
from mergeyard.client.models import CheckSuite as CheckSuite
from mergeyard.client.models import CommitMessagePreview as CommitMessagePreview
from mergeyard.client.models import CurrentToken as CurrentToken
from mergeyard.client.models import EnqueuedPullRequest as EnqueuedPullRequest
from mergeyard.client.models import Event as Event
from mergeyard.client.models import Events as Events
from mergeyard.client.models import FoundPullRequests as FoundPullRequests
from mergeyard.client.models import ImpactedTargetsResult as ImpactedTargetsResult
from mergeyard.client.models import LandingMismatch as LandingMismatch
from mergeyard.client.models import OpenPullRequest as OpenPullRequest
from mergeyard.client.models import OpenPullRequests as OpenPullRequests
from mergeyard.client.models import Provenance as Provenance
from mergeyard.client.models import PullRequests as PullRequests
from mergeyard.client.models import Queue as Queue
from mergeyard.client.models import QueueDeleted as QueueDeleted
from mergeyard.client.models import QueueReplay as QueueReplay
from mergeyard.client.models import Queues as Queues
from mergeyard.client.models import Readiness as Readiness
from mergeyard.client.models import Reason as Reason
from mergeyard.client.models import ReplayAssumption as ReplayAssumption
from mergeyard.client.models import ReplayChange as ReplayChange
from mergeyard.client.models import ReplayMetrics as ReplayMetrics
from mergeyard.client.models import RuleRequirement as RuleRequirement
from mergeyard.client.models import Run as Run
from mergeyard.client.models import StatusAccepted as StatusAccepted
from mergeyard.client.models import StatusCheck as StatusCheck
from mergeyard.client.models import StoppedTestRun as StoppedTestRun
from mergeyard.client.models import SubmittedPullRequest as SubmittedPullRequest
from mergeyard.client.models import TestedPullRequest as TestedPullRequest
from mergeyard.client.models import TestingResult as TestingResult
from mergeyard.client.models import TestingResults as TestingResults
from mergeyard.client.models import TimelineEntry as TimelineEntry
from mergeyard.client.models import VerifiedLanding as VerifiedLanding
from mergeyard.client.models import VerifiedLandings as VerifiedLandings
from mergeyard.client.models import Webhook as Webhook
from mergeyard.client.models import WebhookDeleted as WebhookDeleted
from mergeyard.client.models import WebhookDeliveries as WebhookDeliveries
from mergeyard.client.models import WebhookDelivery as WebhookDelivery
from mergeyard.client.models import WebhookDisabled as WebhookDisabled
from mergeyard.client.models import Webhooks as Webhooks
from mergeyard.client.models import WebhookTopic as WebhookTopic
from mergeyard.client.requests import Settings as Settings
from mergeyard.client.transport import FieldError as FieldError
from mergeyard.client.transport import MergeyardError as MergeyardError
from mergeyard.client.transport import QueueName as QueueName
from mergeyard.client.transport import RepoName as RepoName
from mergeyard.client.transport import RetryPolicy as RetryPolicy
from mergeyard.client.transport import Unreachable as Unreachable
