"""Every question that can be asked about queues, pull requests and runs, each written once for both clients."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, Unpack

from msgspec.structs import replace

from mergeyard.client.events import Events
from mergeyard.client.landings import VerifiedLandings
from mergeyard.client.naming import QueueName, RepoName
from mergeyard.client.pulls import FoundPullRequests, PullRequests, SubmittedPullRequest, TargetsKept
from mergeyard.client.queues import Queue, QueueDeleted, Queues, Settings
from mergeyard.client.replays import QueueReplay
from mergeyard.client.request import Request, camel_case, given, reading, writing
from mergeyard.client.runs import Run, StatusAccepted, TestingResults

OVER_THE_NETWORK = 600
"""Seconds in which the server fetches or pushes what it must, or gives up."""


def submit(
    queue: QueueName,
    number: int,
    *,
    priority: int | str | None = None,
    no_batch: bool | None = None,
    force: bool | None = None,
    sha: str | None = None,
) -> Request[SubmittedPullRequest]:
    """Put a pull request into the queue; in it already, only what is named changes."""
    wishes = {"priority": priority, "noBatch": no_batch, "force": force}
    return writing("submitPullRequest", SubmittedPullRequest, **queue.members, pr=_pr(number, sha), **wishes)


def cancel(queue: QueueName, number: int) -> Request[SubmittedPullRequest]:
    """Take a pull request out of the queue."""
    return writing("cancelPullRequest", SubmittedPullRequest, **queue.members, pr=_pr(number))


def restart(queue: QueueName, number: int) -> Request[SubmittedPullRequest]:
    """Run the tests of a pull request again."""
    return writing("restartTestsOnPullRequest", SubmittedPullRequest, **queue.members, pr=_pr(number))


def get_pull_request(
    queue: QueueName, number: int, *, include_timeline: bool | None = None
) -> Request[SubmittedPullRequest]:
    """How a pull request stands, and, if you like, all that happened to it, newest first."""
    wishes = {"includeTimeline": include_timeline}
    return reading("getSubmittedPullRequest", SubmittedPullRequest, **queue.members, pr=_pr(number), **wishes)


def find_pull_request(
    queue: QueueName, head_branch: str, *, include_timeline: bool | None = None
) -> Request[SubmittedPullRequest]:
    """The same, for the pull request of this branch."""
    head, wishes = {"branch": head_branch}, {"includeTimeline": include_timeline}
    return reading("getSubmittedPullRequest", SubmittedPullRequest, **queue.members, pr=head, **wishes)


def get_pull_requests(queue: QueueName, numbers: Iterable[int]) -> Request[FoundPullRequests]:
    """How up to fifty pull requests stand."""
    return reading("getSubmittedPullRequests", FoundPullRequests, **queue.members, prs=list(map(_pr, numbers)))


def list_pull_requests(
    queue: QueueName,
    *,
    state: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    cursor: str | None = None,
    take: int | None = None,
) -> Request[PullRequests]:
    """Submissions, newest first; `next_cursor` leads to the next page."""
    page = {"state": state, "since": _time(since), "until": _time(until), "cursor": cursor, "take": take}
    return reading("listPullRequests", PullRequests, **queue.members, **page)


def set_impacted_targets(
    queue: QueueName, number: int, targets: Iterable[str] | Literal["ALL"], *, sha: str | None = None
) -> Request[TargetsKept]:
    """Say what a pull request impacts; an empty list means nothing at all."""
    names = targets if isinstance(targets, str) else list(targets)
    return writing("setImpactedTargets", TargetsKept, **queue.members, pr=_pr(number, sha), impactedTargets=names)


def get_run(queue: QueueName, run_id: str) -> Request[Run]:
    """All about one test run."""
    return reading("getMergeQueueTestingDetails", Run, **queue.members, testRunId=run_id)


def list_results(
    queue: QueueName,
    *,
    since: datetime,
    until: datetime | None = None,
    offset: int | None = None,
    take: int | None = None,
) -> Request[TestingResults]:
    """The results of finished runs, the latest first."""
    page = {"since": _time(since), "until": _time(until), "offset": offset, "take": take}
    return reading("listMergeQueueTestingResults", TestingResults, **queue.members, **page)


def create_queue(queue: QueueName, **settings: Unpack[Settings]) -> Request[Queue]:
    """Make a queue for a branch. The first one of a repository takes as long as it takes to fetch it."""
    request = writing("createQueue", Queue, **queue.members, **_on_the_wire(settings))
    return replace(request, waits=OVER_THE_NETWORK)


def get_queue(queue: QueueName) -> Request[Queue]:
    """A queue with everybody in it."""
    return reading("getQueue", Queue, **queue.members)


def list_queues() -> Request[Queues]:
    """The queues that the token may see."""
    return reading("listQueues", Queues)


def update_queue(
    queue: QueueName,
    *,
    state: Literal["RUNNING", "PAUSED", "DRAINING"] | None = None,
    **settings: Unpack[Settings],
) -> Request[Queue]:
    """Change what is named. `required_statuses=None` drops the override, so the repository chooses again.

    Pausing takes until nothing is being pushed any more.
    """
    dropped = settings.get("required_statuses", ...) is None or None
    wishes = {"state": state, "deleteRequiredStatuses": dropped}
    request = writing("updateQueue", Queue, **queue.members, **wishes, **_on_the_wire(settings))
    return replace(request, waits=OVER_THE_NETWORK if state == "PAUSED" else 0)


def delete_queue(queue: QueueName) -> Request[QueueDeleted]:
    """Delete a queue that is empty."""
    return writing("deleteQueue", QueueDeleted, **queue.members)


def list_events(
    queue: QueueName,
    *,
    after: str | None = None,
    take: int | None = None,
    wait_seconds: int | None = None,
) -> Request[Events]:
    """What happened in a queue, oldest first; with `wait_seconds` the answer waits until there is something."""
    page = {"after": after, "take": take, "waitSeconds": wait_seconds}
    return replace(reading("listEvents", Events, **queue.members, **page), waits=wait_seconds or 0)


def verify_landings(queue: QueueName, *, last: int | None = None) -> Request[VerifiedLandings]:
    """Compare the last landings with the target as it is now. The queue pauses for what differs."""
    return replace(reading("verifyLandings", VerifiedLandings, **queue.members, last=last), waits=OVER_THE_NETWORK)


def replay_queue(
    queue: QueueName, *, since: datetime | None = None, **settings: Unpack[Settings]
) -> Request[QueueReplay]:
    """What would have been since then, had these settings been others. Only those can be named that can be replayed."""
    asked = reading("replayQueue", QueueReplay, **queue.members, since=_time(since), **_on_the_wire(settings))
    return replace(asked, waits=OVER_THE_NETWORK)


def report_status(
    repo: RepoName,
    sha: str,
    context: str,
    state: Literal["pending", "success", "failure", "error"],
    *,
    url: str | None = None,
    description: str | None = None,
) -> Request[StatusAccepted]:
    """Say what a check found about a commit."""
    told = {"sha": sha, "context": context, "state": state, "url": url, "description": description}
    return writing("reportCommitStatus", StatusAccepted, repo=repo, **told)


def get_metrics(repo: RepoName | None = None) -> Request[str]:
    """The queues' metrics, in the Prometheus text format."""
    only = {} if repo is None else {"repo": f"{repo.owner}/{repo.name}", "repoHost": repo.host}
    return reading("getMergeQueueMetrics", str, **only)


def _pr(number: int, sha: str | None = None) -> dict[str, Any]:
    return given({"number": number, "sha": sha})


def _time(time: datetime | None) -> str | None:
    """A time without an offset is meant where the caller lives."""
    return None if time is None else time.astimezone(UTC).isoformat()


def _on_the_wire(settings: Settings) -> dict[str, Any]:
    return {camel_case(name): value for name, value in settings.items()}
