"""Every request of the API as a function that describes one exchange, for both clients."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, Unpack

from msgspec.structs import replace

from mergeyard.client import models, transport

REMOTE_WORK_S = 600
"""Seconds after which the server gives up a fetch or push, or a replay, that a request has to wait for."""


def submit(
    queue: transport.QueueName,
    number: int,
    *,
    priority: int | str | None = None,
    no_batch: bool | None = None,
    force: bool | None = None,
    sha: str | None = None,
) -> transport.Request[models.SubmittedPullRequest]:
    """Submit a pull request to the queue. If it is already queued, only the given options change."""
    options = {"priority": priority, "noBatch": no_batch, "force": force}
    return transport.write_request(
        "submitPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number, sha), **options
    )


def cancel(queue: transport.QueueName, number: int) -> transport.Request[models.SubmittedPullRequest]:
    """Remove a pull request from the queue."""
    return transport.write_request("cancelPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number))


def restart(queue: transport.QueueName, number: int) -> transport.Request[models.SubmittedPullRequest]:
    """Run the tests of a pull request again."""
    return transport.write_request(
        "restartTestsOnPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number)
    )


def get_pull_request(
    queue: transport.QueueName, number: int, *, include_timeline: bool | None = None
) -> transport.Request[models.SubmittedPullRequest]:
    """Read the status of a pull request, optionally with its timeline, newest first."""
    options = {"includeTimeline": include_timeline}
    return transport.read_request(
        "getSubmittedPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number), **options
    )


def find_pull_request(
    queue: transport.QueueName, head_branch: str, *, include_timeline: bool | None = None
) -> transport.Request[models.SubmittedPullRequest]:
    """Read the status of the pull request with this head branch."""
    head, options = {"branch": head_branch}, {"includeTimeline": include_timeline}
    return transport.read_request(
        "getSubmittedPullRequest", models.SubmittedPullRequest, **queue.members, pr=head, **options
    )


def get_pull_requests(
    queue: transport.QueueName, numbers: Iterable[int]
) -> transport.Request[models.FoundPullRequests]:
    """Read the status of up to 50 pull requests."""
    return transport.read_request(
        "getSubmittedPullRequests", models.FoundPullRequests, **queue.members, prs=list(map(_pr, numbers))
    )


def list_pull_requests(
    queue: transport.QueueName,
    *,
    state: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    concluded_since: datetime | None = None,
    cursor: str | None = None,
    take: int | None = None,
) -> transport.Request[models.PullRequests]:
    """List submissions, newest first; pass `next_cursor` as `cursor` for the next page.

    `since` and `until` compare the time of submission, `concluded_since` the time when the submission ended.
    """
    times = {"since": since, "until": until, "concludedSince": concluded_since}
    filters = {"state": state} | {name: _format_time(time) for name, time in times.items()}
    return transport.read_request(
        "listPullRequests", models.PullRequests, **queue.members, **filters, cursor=cursor, take=take
    )


def set_impacted_targets(
    queue: transport.QueueName, number: int, impacted_targets: Iterable[str] | Literal["ALL"], *, sha: str | None = None
) -> transport.Request[models.ImpactedTargetsStored]:
    """Set the impacted targets of a pull request; an empty list means that it impacts nothing."""
    names = impacted_targets if isinstance(impacted_targets, str) else list(impacted_targets)
    return transport.write_request(
        "setImpactedTargets", models.ImpactedTargetsStored, **queue.members, pr=_pr(number, sha), impactedTargets=names
    )


def get_run(queue: transport.QueueName, run_id: str) -> transport.Request[models.Run]:
    """Read the details of a test run."""
    return transport.read_request("getMergeQueueTestingDetails", models.Run, **queue.members, testRunId=run_id)


def list_results(
    queue: transport.QueueName,
    *,
    since: datetime,
    until: datetime | None = None,
    offset: int | None = None,
    take: int | None = None,
) -> transport.Request[models.TestingResults]:
    """List the results of finished test runs, newest first."""
    page = {"since": _format_time(since), "until": _format_time(until), "offset": offset, "take": take}
    return transport.read_request("listMergeQueueTestingResults", models.TestingResults, **queue.members, **page)


def create_queue(queue: transport.QueueName, **settings: Unpack[models.Settings]) -> transport.Request[models.Queue]:
    """Create a queue for a branch. For the first queue of a repository, the server fetches the repository meanwhile."""
    request = transport.write_request("createQueue", models.Queue, **queue.members, **_encode_settings(settings))
    return replace(request, extra_time_s=REMOTE_WORK_S)


def get_queue(queue: transport.QueueName) -> transport.Request[models.Queue]:
    """Read a queue with its pull requests."""
    return transport.read_request("getQueue", models.Queue, **queue.members)


def list_queues() -> transport.Request[models.Queues]:
    """List the queues that the token can access."""
    return transport.read_request("listQueues", models.Queues)


def update_queue(
    queue: transport.QueueName,
    *,
    state: Literal["RUNNING", "PAUSED", "DRAINING"] | None = None,
    **settings: Unpack[models.Settings],
) -> transport.Request[models.Queue]:
    """Change only the given settings. `required_statuses=None` removes the override of the repository's checks.

    A request to pause returns when no push is in flight.
    """
    removes_override = settings.get("required_statuses", ...) is None or None
    options = {"state": state, "deleteRequiredStatuses": removes_override}
    request = transport.write_request(
        "updateQueue", models.Queue, **queue.members, **options, **_encode_settings(settings)
    )
    return replace(request, extra_time_s=REMOTE_WORK_S if state == "PAUSED" else 0)


def delete_queue(queue: transport.QueueName) -> transport.Request[models.QueueDeleted]:
    """Delete an empty queue."""
    return transport.write_request("deleteQueue", models.QueueDeleted, **queue.members)


def list_events(
    queue: transport.QueueName,
    *,
    after: str | None = None,
    take: int | None = None,
    wait_seconds: int | None = None,
) -> transport.Request[models.Events]:
    """List events, oldest first; with `wait_seconds` the server waits for the first event if there is none."""
    page = {"after": after, "take": take, "waitSeconds": wait_seconds}
    return replace(
        transport.read_request("listEvents", models.Events, **queue.members, **page), extra_time_s=wait_seconds or 0
    )


def verify_landings(
    queue: transport.QueueName, *, last: int | None = None
) -> transport.Request[models.VerifiedLandings]:
    """Audit the last merges: compare them with the current target branch. A mismatch pauses the queue."""
    return replace(
        transport.read_request("verifyLandings", models.VerifiedLandings, **queue.members, last=last),
        extra_time_s=REMOTE_WORK_S,
    )


def replay_queue(
    queue: transport.QueueName, *, since: datetime | None = None, **settings: Unpack[models.Settings]
) -> transport.Request[models.QueueReplay]:
    """Replay the queue's history with other settings. The server refuses settings that cannot be replayed."""
    request = transport.read_request(
        "replayQueue", models.QueueReplay, **queue.members, since=_format_time(since), **_encode_settings(settings)
    )
    return replace(request, extra_time_s=REMOTE_WORK_S)


def report_status(
    repo: transport.RepoName,
    sha: str,
    context: str,
    state: Literal["pending", "success", "failure", "error"],
    *,
    url: str | None = None,
    description: str | None = None,
) -> transport.Request[models.StatusAccepted]:
    """Report the status of a check for a commit."""
    status = {"sha": sha, "context": context, "state": state, "url": url, "description": description}
    return transport.write_request("reportCommitStatus", models.StatusAccepted, repo=repo, **status)


def get_metrics(repo: transport.RepoName | None = None, *, host: str | None = None) -> transport.Request[str]:
    """Read the metrics of all queues, or those of one repository or one Git host, in the Prometheus text format."""
    filters = {"repoHost": host} if repo is None else {"repo": f"{repo.owner}/{repo.name}", "repoHost": repo.host}
    return transport.read_request("getMergeQueueMetrics", str, **filters)


def _pr(number: int, sha: str | None = None) -> dict[str, Any]:
    return transport.drop_unset({"number": number, "sha": sha})


def _format_time(time: datetime | None) -> str | None:
    """A time without an offset is local time of the caller."""
    return None if time is None else time.astimezone(UTC).isoformat()


def _encode_settings(settings: models.Settings) -> dict[str, Any]:
    return {transport.to_camel_case(name): value for name, value in settings.items()}


Topics = Iterable[transport.QueueName | transport.RepoName]
"""Single queues, or repositories with all their queues."""


def create_webhook(
    url: str,
    *,
    kind: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> transport.Request[models.Webhook]:
    """Create a webhook. Only this response has the secret that verifies its signatures."""
    settings = {
        "events": _to_list(events),
        "queues": _to_topics(queues),
        "description": description,
        "enabled": enabled,
    }
    return transport.write_request("createWebhook", models.Webhook, url=url, kind=kind, **settings)


def list_webhooks() -> transport.Request[models.Webhooks]:
    """List the webhooks that the token can access."""
    return transport.read_request("listWebhooks", models.Webhooks)


def update_webhook(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> transport.Request[models.Webhook]:
    """Change only the given settings of a webhook."""
    settings = {
        "events": _to_list(events),
        "queues": _to_topics(queues),
        "description": description,
        "enabled": enabled,
    }
    return transport.write_request("updateWebhook", models.Webhook, id=webhook_id, url=url, **settings)


def delete_webhook(webhook_id: str) -> transport.Request[models.WebhookDeleted]:
    """Delete a webhook."""
    return transport.write_request("deleteWebhook", models.WebhookDeleted, id=webhook_id)


def test_webhook(webhook_id: str) -> transport.Request[models.WebhookDelivery]:
    """Send a test event now, and return the result."""
    return transport.write_request("testWebhook", models.WebhookDelivery, id=webhook_id)


def list_deliveries(webhook_id: str, *, take: int | None = None) -> transport.Request[models.WebhookDeliveries]:
    """List the latest delivery attempts, newest first."""
    return transport.read_request("listWebhookDeliveries", models.WebhookDeliveries, id=webhook_id, take=take)


def resend_event(webhook_id: str, event_id: str) -> transport.Request[models.WebhookDelivery]:
    """Send an event again now, and return the result."""
    return transport.write_request("resendWebhookEvent", models.WebhookDelivery, id=webhook_id, eventId=event_id)


def _to_list(events: Iterable[str] | None) -> list[str] | None:
    return None if events is None else list(events)


def _to_topics(queues: Topics | None) -> list[models.WebhookTopic] | None:
    return None if queues is None else list(map(_to_topic, queues))


def _to_topic(name: transport.QueueName | transport.RepoName) -> models.WebhookTopic:
    if isinstance(name, transport.RepoName):
        return models.WebhookTopic(repo=name)
    return models.WebhookTopic(repo=name.repo, target_branch=name.target_branch)
