"""Reads what CI says about a commit, and says our own word on it. Jobs of Actions are statuses too."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import place_of, segment
from mergeyard.adapters.forges.gitea.wire import CommitStatus
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status, StatusState

STATES = {
    "pending": StatusState.PENDING,
    "success": StatusState.SUCCESS,
    "skipped": StatusState.SKIPPED,
    "failure": StatusState.FAILURE,
    "warning": StatusState.FAILURE,
    "error": StatusState.ERROR,
}
"""A warning blocks a merge there as a failure does."""


async def statuses_of(caller: Caller, repo: Repo, sha: Sha, pages: str) -> list[Status]:
    said = await caller.every(f"{place_of(repo)}/commits/{segment(sha)}/statuses", list[CommitStatus], {"limit": 50})
    latest = {each.context: each for each in sorted(said, key=lambda each: each.id)}
    return [_status(each, pages) for each in latest.values() if each.context != ours.STATUS]


async def show_status(caller: Caller, repo: Repo, sha: Sha, status: Status) -> None:
    told = {
        "context": status.context,
        "state": status.state.value,
        "target_url": status.url,
        "description": status.description,
    }
    reply = await caller.send("POST", f"{place_of(repo)}/statuses/{segment(sha)}", told)
    reply.well_received()


def _status(said: CommitStatus, pages: str) -> Status:
    """Pages of its own are named without their host by some versions."""
    url = pages + said.target_url if said.target_url.startswith("/") else said.target_url
    return Status(
        context=said.context,
        state=STATES.get(said.status, StatusState.PENDING),
        at=instant(said.created_at),
        url=url,
        description=said.description,
    )
