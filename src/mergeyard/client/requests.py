"""Every request of the API as a function that describes one exchange, for both clients."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, Unpack

from mergeyard.client import models
from mergeyard.client.transport import (
    QueueName,
    RepoName,
    Request,
    drop_unset,
    read_request,
    to_camel_case,
    write_request,
)

REMOTE_WORK_S = 600
"""Seconds after which the server gives up a fetch or push, or a replay, that a request has to wait for."""


def submit(
    queue: QueueName,
    number: int,
    *,
    priority: int | str | None = None,
    no_batch: bool | None = None,
    force: bool | None = None,
    sha: str | None = None,
) -> Request[models.SubmittedPullRequest]:
    """Submit a pull request to the queue. If it is already queued, only the given options change."""
    options: dict[str, Any] = {"pr": _pr(number, sha), "priority": priority, "noBatch": no_batch, "force": force}
    return write_request("submitPullRequest", models.SubmittedPullRequest, **queue.members, **options)


def cancel(queue: QueueName, number: int) -> Request[models.SubmittedPullRequest]:
    """Remove a pull request from the queue."""
    return write_request("cancelPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number))


def restart(queue: QueueName, number: int) -> Request[models.SubmittedPullRequest]:
    """Run the tests of a pull request again."""
    return write_request("restartTestsOnPullRequest", models.SubmittedPullRequest, **queue.members, pr=_pr(number))


def preview_action(
    queue: QueueName,
    number: int,
    action: Literal["submit", "restart", "cancel", "priority"],
    priority: int | str | None = None,
) -> Request[models.ActionPreview]:
    """Read what an action would stop, without performing it. `priority` is that of `submit` and `priority`."""
    options: dict[str, Any] = {"pr": _pr(number), "action": action, "priority": priority}
    return read_request("previewPullRequestAction", models.ActionPreview, **queue.members, **options)


def preview_commit_message(queue: QueueName, number: int) -> Request[models.CommitMessagePreview]:
    """Read with which commit message, and how, a pull request would merge now; it need not be submitted."""
    members: dict[str, Any] = queue.members | {"pr": _pr(number)}
    return read_request("previewCommitMessage", models.CommitMessagePreview, extra_time_s=REMOTE_WORK_S, **members)


def list_open_pull_requests(queue: QueueName) -> Request[models.OpenPullRequests]:
    """List the newest open pull requests into the target branch, submitted or not."""
    return read_request("listOpenPullRequests", models.OpenPullRequests, **queue.members)


def get_pull_request(
    queue: QueueName, number: int, *, include_timeline: bool | None = None
) -> Request[models.SubmittedPullRequest]:
    """Read the status of a pull request, optionally with its timeline, newest first."""
    options: dict[str, Any] = {"pr": _pr(number), "includeTimeline": include_timeline}
    return read_request("getSubmittedPullRequest", models.SubmittedPullRequest, **queue.members, **options)


def find_pull_request(
    queue: QueueName, head_branch: str, *, include_timeline: bool | None = None
) -> Request[models.SubmittedPullRequest]:
    """Read the status of the pull request with this head branch."""
    options: dict[str, Any] = {"pr": {"branch": head_branch}, "includeTimeline": include_timeline}
    return read_request("getSubmittedPullRequest", models.SubmittedPullRequest, **queue.members, **options)


def get_provenance(
    queue: QueueName, number: int | None = None, *, merged_sha: str | None = None
) -> Request[models.Provenance]:
    """Read the signed provenance of a merged pull request, by its number or by its merged commit."""
    pr = drop_unset({"number": number, "mergedSha": merged_sha})
    return read_request("getProvenance", models.Provenance, extra_time_s=REMOTE_WORK_S, **queue.members, pr=pr)


def get_pull_requests(queue: QueueName, numbers: Iterable[int]) -> Request[models.FoundPullRequests]:
    """Read the status of up to 50 pull requests."""
    return read_request(
        "getSubmittedPullRequests", models.FoundPullRequests, **queue.members, prs=list(map(_pr, numbers))
    )


def list_pull_requests(
    queue: QueueName,
    *,
    state: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    concluded_since: datetime | None = None,
    cursor: str | None = None,
    take: int | None = None,
) -> Request[models.PullRequests]:
    """List submissions, newest first; pass `next_cursor` as `cursor` for the next page.

    `since` and `until` compare the time of submission, `concluded_since` the time when the submission ended.
    """
    times = {"since": since, "until": until, "concludedSince": concluded_since}
    filters: dict[str, Any] = {"state": state} | {name: _format_time(time) for name, time in times.items()}
    return read_request("listPullRequests", models.PullRequests, **queue.members, **filters, cursor=cursor, take=take)


def set_impacted_targets(
    queue: QueueName, number: int, impacted_targets: Iterable[str] | Literal["ALL"], *, sha: str | None = None
) -> Request[models.ImpactedTargetsResult]:
    """Set the impacted targets of a pull request; an empty list means that it impacts nothing."""
    names = impacted_targets if isinstance(impacted_targets, str) else list(impacted_targets)
    return write_request(
        "setImpactedTargets", models.ImpactedTargetsResult, **queue.members, pr=_pr(number, sha), impactedTargets=names
    )


def get_run(queue: QueueName, run_id: str) -> Request[models.Run]:
    """Read the details of a test run."""
    return read_request("getMergeQueueTestingDetails", models.Run, **queue.members, testRunId=run_id)


def list_results(
    queue: QueueName,
    *,
    since: datetime,
    until: datetime | None = None,
    offset: int | None = None,
    take: int | None = None,
) -> Request[models.TestingResults]:
    """List the results of finished test runs, newest first."""
    page: dict[str, Any] = {"since": _format_time(since), "until": _format_time(until), "offset": offset, "take": take}
    return read_request("listMergeQueueTestingResults", models.TestingResults, **queue.members, **page)


class Settings(TypedDict, total=False):
    """The keyword arguments of `create_queue` and `update_queue`; docs/reference/settings.md describes them."""

    mode: str
    concurrency: int
    bisection_concurrency: int
    batch: bool
    batching_min_size: int
    batching_max_wait_time_minutes: int
    can_optimistically_merge: bool
    pending_failure_depth: int
    optimization_mode: str
    speculation: str
    testing_timeout_minutes: int
    test_retries: int
    required_statuses: list[str] | None
    merge_method: str
    landing: str
    move_head_branches: bool
    head_branch_fallback: str
    delete_head_branches: bool
    squash_template: str
    direct_merge_mode: str
    create_prs_for_testing_branches: bool
    comments_enabled: bool
    commands_enabled: bool
    status_check_enabled: bool
    not_ready_timeout_hours: int
    label_commands_enabled: bool
    enqueueing_label: str
    extension_enabled: bool
    state_labels_enabled: bool
    allowed_bot_submitters: list[str]
    batching_rules: list[dict[str, Any]]
    test_branch_construction_mode: str


def create_queue(queue: QueueName, **settings: Unpack[Settings]) -> Request[models.Queue]:
    """Create a queue for a branch. For the first queue of a repository, the server fetches the repository meanwhile."""
    members = queue.members | _encode_settings(settings)
    return write_request("createQueue", models.Queue, extra_time_s=REMOTE_WORK_S, **members)


def get_queue(queue: QueueName) -> Request[models.Queue]:
    """Read a queue with its pull requests."""
    return read_request("getQueue", models.Queue, **queue.members)


def list_queues() -> Request[models.Queues]:
    """List the queues that the token can access."""
    return read_request("listQueues", models.Queues)


def update_queue(
    queue: QueueName,
    *,
    state: Literal["RUNNING", "PAUSED", "DRAINING"] | None = None,
    state_reason: str | None = None,
    **settings: Unpack[Settings],
) -> Request[models.Queue]:
    """Change only the given settings. `required_statuses=None` removes the override of the repository's checks.

    A request to pause returns when no push is in flight. `state_reason` says why the queue is paused or drained;
    without it, a change of the state removes the earlier reason.
    """
    removes_override = settings.get("required_statuses", ...) is None or None
    change = {"state": state, "stateReason": state_reason, "deleteRequiredStatuses": removes_override}
    members = queue.members | change | _encode_settings(settings)
    extra_time_s = REMOTE_WORK_S if state == "PAUSED" else 0
    return write_request("updateQueue", models.Queue, extra_time_s=extra_time_s, **members)


def delete_queue(queue: QueueName) -> Request[models.QueueDeleted]:
    """Delete an empty queue."""
    return write_request("deleteQueue", models.QueueDeleted, **queue.members)


def list_events(
    queue: QueueName,
    *,
    after: str | None = None,
    take: int | None = None,
    wait_seconds: int | None = None,
) -> Request[models.Events]:
    """List events, oldest first; with `wait_seconds` the server waits for the first event if there is none."""
    members = queue.members | {"after": after, "take": take, "waitSeconds": wait_seconds}
    return read_request("listEvents", models.Events, extra_time_s=wait_seconds or 0, **members)


def verify_landings(queue: QueueName, *, last: int | None = None) -> Request[models.VerifiedLandings]:
    """Audit the last merges: compare them with the current target branch. A mismatch pauses the queue."""
    members = queue.members | {"last": last}
    return read_request("verifyLandings", models.VerifiedLandings, extra_time_s=REMOTE_WORK_S, **members)


def replay_queue(
    queue: QueueName, *, since: datetime | None = None, **settings: Unpack[Settings]
) -> Request[models.QueueReplay]:
    """Replay the queue's history with other settings. The server refuses settings that cannot be replayed."""
    members = queue.members | {"since": _format_time(since)} | _encode_settings(settings)
    return read_request("replayQueue", models.QueueReplay, extra_time_s=REMOTE_WORK_S, **members)


def report_status(
    repo: RepoName,
    sha: str,
    context: str,
    state: Literal["pending", "success", "failure", "error"],
    *,
    url: str | None = None,
    description: str | None = None,
) -> Request[models.StatusAccepted]:
    """Report the status of a check for a commit."""
    status: dict[str, Any] = {"sha": sha, "context": context, "state": state, "url": url, "description": description}
    return write_request("reportCommitStatus", models.StatusAccepted, repo=repo, **status)


def get_metrics(repo: RepoName | None = None, *, host: str | None = None) -> Request[str]:
    """Read the metrics of all queues, or those of one repository or one Git host, in the Prometheus text format."""
    filters: dict[str, Any] = (
        {"repoHost": host} if repo is None else {"repo": f"{repo.owner}/{repo.name}", "repoHost": repo.host}
    )
    return read_request("getMergeQueueMetrics", str, **filters)


def _pr(number: int, sha: str | None = None) -> dict[str, Any]:
    return drop_unset({"number": number, "sha": sha})


def _format_time(time: datetime | None) -> str | None:
    """A time without an offset is local time of the caller."""
    return None if time is None else time.astimezone(UTC).isoformat()


def _encode_settings(settings: Settings) -> dict[str, Any]:
    return {to_camel_case(name): value for name, value in settings.items()}


Topics = Iterable[QueueName | RepoName]
"""Single queues, or repositories with all their queues."""


def create_webhook(
    url: str,
    *,
    kind: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Request[models.Webhook]:
    """Create a webhook. Only this response has the secret that verifies its signatures."""
    settings: dict[str, Any] = _encode_topics(events, queues) | {"description": description, "enabled": enabled}
    return write_request("createWebhook", models.Webhook, url=url, kind=kind, **settings)


def list_webhooks() -> Request[models.Webhooks]:
    """List the webhooks that the token can access."""
    return read_request("listWebhooks", models.Webhooks)


def update_webhook(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Request[models.Webhook]:
    """Change only the given settings of a webhook."""
    settings: dict[str, Any] = _encode_topics(events, queues) | {"description": description, "enabled": enabled}
    return write_request("updateWebhook", models.Webhook, id=webhook_id, url=url, **settings)


def delete_webhook(webhook_id: str) -> Request[models.WebhookDeleted]:
    """Delete a webhook."""
    return write_request("deleteWebhook", models.WebhookDeleted, id=webhook_id)


def test_webhook(webhook_id: str) -> Request[models.WebhookDelivery]:
    """Send a test event now, and return the result."""
    return write_request("testWebhook", models.WebhookDelivery, id=webhook_id)


def list_deliveries(webhook_id: str, *, take: int | None = None) -> Request[models.WebhookDeliveries]:
    """List the latest delivery attempts, newest first."""
    return read_request("listWebhookDeliveries", models.WebhookDeliveries, id=webhook_id, take=take)


def resend_event(webhook_id: str, event_id: str) -> Request[models.WebhookDelivery]:
    """Send an event again now, and return the result."""
    return write_request("resendWebhookEvent", models.WebhookDelivery, id=webhook_id, eventId=event_id)


def _encode_topics(events: Iterable[str] | None, queues: Topics | None) -> dict[str, Any]:
    """The events that a webhook sends, and the queues that they are about."""
    return {
        "events": None if events is None else list(events),
        "queues": None if queues is None else list(map(_to_topic, queues)),
    }


def _to_topic(name: QueueName | RepoName) -> models.WebhookTopic:
    if isinstance(name, RepoName):
        return models.WebhookTopic(repo=name)
    return models.WebhookTopic(repo=name.repo, target_branch=name.target_branch)


def get_current_token() -> Request[models.CurrentToken]:
    """Read the name, the scopes and the expiry of the token that sends this request, and the version of the server."""
    return read_request("getCurrentToken", models.CurrentToken)


def create_token(
    name: str,
    *,
    scopes: Iterable[str] | None = None,
    repositories: Iterable[RepoName] | None = None,
    expires_at: datetime | None = None,
) -> Request[models.ApiToken]:
    """Create a token, by default with the scopes read, submit and targets. Only this response has its secret."""
    members: dict[str, Any] = {
        "scopes": None if scopes is None else list(scopes),
        "repositories": None if repositories is None else list(repositories),
        "expiresAt": _format_time(expires_at),
    }
    return write_request("createToken", models.ApiToken, name=name, **members)


def list_tokens() -> Request[models.ApiTokens]:
    """List the tokens that the token can manage, newest first, without their secrets."""
    return read_request("listTokens", models.ApiTokens)


def revoke_token(token_id: str) -> Request[models.ApiToken]:
    """Revoke a token, effective immediately."""
    return write_request("revokeToken", models.ApiToken, id=token_id)
