"""Reads the statuses of a commit, and reports our own. Jobs of Gitea Actions are statuses as well."""

from mergeyard.adapters.forges.gitea.wire import CommitStatus, quote_segment, repo_api_path
from mergeyard.adapters.forges.http import ForgeClient, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import Status, StatusState

STATES = {
    "pending": StatusState.PENDING,
    "success": StatusState.SUCCESS,
    "skipped": StatusState.SKIPPED,
    "failure": StatusState.FAILURE,
    "warning": StatusState.FAILURE,
    "error": StatusState.ERROR,
}
"""A warning blocks a merge on Gitea like a failure."""


async def read_statuses(client: ForgeClient, repo: Repo, sha: Sha, web_url: str) -> list[Status]:
    path = f"{repo_api_path(repo)}/commits/{quote_segment(sha)}/statuses"
    reported = await client.get_all(path, list[CommitStatus], {"limit": 50})
    latest = {status.context: status for status in sorted(reported, key=lambda status: status.id)}
    return [_to_status(status, web_url) for status in latest.values() if status.context != ids.STATUS_CONTEXT]


async def set_status(client: ForgeClient, repo: Repo, sha: Sha, status: Status) -> None:
    body = {
        "context": status.context,
        "state": status.state.value,
        "target_url": status.url,
        "description": status.description,
    }
    reply = await client.send("POST", f"{repo_api_path(repo)}/statuses/{quote_segment(sha)}", body)
    reply.raise_for_status()


def _to_status(status: CommitStatus, web_url: str) -> Status:
    """Some versions return links to their own pages without the host."""
    url = web_url + status.target_url if status.target_url.startswith("/") else status.target_url
    return Status(
        context=status.context,
        state=STATES.get(status.status, StatusState.PENDING),
        at=to_instant(status.created_at),
        url=url,
        description=status.description,
    )
