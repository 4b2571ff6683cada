"""Reads what jobs, pipelines and others say about a commit, and adds our own word."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import project_of, segment
from mergeyard.adapters.forges.gitlab.pipelines import (
    PIPELINE,
    SKIPPED,
    WORST_FIRST,
    Judged,
    judged_pipelines,
    of_all,
    state_of,
)
from mergeyard.adapters.forges.gitlab.projects import settings_now, settings_of
from mergeyard.adapters.forges.gitlab.wire import CommitStatus, Job
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import SATISFIED
from mergeyard.domain.statuses import CHECKS, Status, StatusState

SPOKEN = {
    StatusState.PENDING: "pending",
    StatusState.SUCCESS: "success",
    StatusState.SKIPPED: "success",
    StatusState.NEUTRAL: "success",
    StatusState.FAILURE: "failed",
    StatusState.ERROR: "failed",
}
LONGEST = 255
"""So many letters of a description does GitLab take."""


async def required_statuses(caller: Caller, repo: Repo) -> tuple[str, ...]:
    """GitLab asks for no names, only for a pipeline that succeeds."""
    project = await settings_of(caller, repo)
    return (PIPELINE,) if project.only_allow_merge_if_pipeline_succeeds else ()


async def read_statuses(caller: Caller, repo: Repo, sha: Sha) -> Sequence[Status]:
    reported = await reported_on(caller, repo, sha)
    pipelines = await judged_pipelines(caller, repo, sha, reported)
    if not reported and not pipelines:
        await settings_of(caller, repo)
    others = [status for status in reported if status.name not in (ours.STATUS, PIPELINE)]
    jobs = await _jobs(caller, repo, {status.pipeline_id for status in others}, pipelines)
    latest = _latest(others, jobs)
    return [*_worst_of_each_name(_status(status, pipelines, jobs) for status in latest), *of_all(pipelines)]


async def reported_on(caller: Caller, repo: Repo, sha: Sha) -> list[CommitStatus]:
    place = f"{project_of(repo)}/repository/commits/{segment(sha)}/statuses"
    return await caller.every(place, list[CommitStatus], {"per_page": 100})


async def show_status(caller: Caller, repo: Repo, sha: Sha, status: Status) -> None:
    body = {
        "name": status.context,
        "state": SPOKEN[status.state],
        "description": status.description[:LONGEST],
    } | ({"target_url": status.url} if status.url else {})
    reply = await caller.send("POST", f"{project_of(repo)}/statuses/{segment(sha)}", body)
    said_already = reply.status == 400 and b"Cannot transition status" in reply.body
    # Where no branch of the project holds the commit, as with that of a fork, GitLab takes no status: 404.
    if reply.status == 404:
        await settings_now(caller, repo)
    elif not said_already:
        reply.well_received()


async def _jobs(
    caller: Caller, repo: Repo, named: Collection[int | None], pipelines: Collection[int]
) -> Mapping[int, Job]:
    """Jobs by their ids, which GitLab counts together with those of reported statuses.

    A status itself does not tell: anyone who can report one chooses its `target_url`, and a job may have none.
    """
    # Old versions of GitLab do not say to which pipeline a status belongs: it may be any.
    wanted = {*named, *pipelines} if None in named else {*named}
    jobs = list[Job]()
    for pipeline in sorted(pipeline for pipeline in wanted if pipeline is not None):
        place = f"{project_of(repo)}/pipelines/{pipeline}"
        jobs += await caller.every(f"{place}/jobs", list[Job], {"include_retried": "true", "per_page": 100})
        jobs += await caller.every(f"{place}/bridges", list[Job], {"per_page": 100})
    return {job.id: job for job in jobs}


def _latest(reported: Iterable[CommitStatus], jobs: Mapping[int, Job]) -> Iterable[CommitStatus]:
    """Of each name on each ref: pipelines of a branch and of a merge request do not take each other's place."""
    by_age = sorted(reported, key=lambda status: status.id)
    return {(status.name, status.ref, status.id in jobs): status for status in by_age}.values()


def _worst_of_each_name(statuses: Iterable[Status]) -> Iterable[Status]:
    """What is red in one place is not made good by what is green in another."""
    worst_last = sorted(statuses, key=lambda status: WORST_FIRST.index(status.state), reverse=True)
    return {status.context: status for status in worst_last}.values()


def _status(status: CommitStatus, pipelines: Mapping[int, Judged], jobs: Mapping[int, Job]) -> Status:
    job = jobs.get(status.id)
    return Status(
        context=status.name,
        state=_state(status, pipelines),
        at=instant(status.finished_at or status.started_at or status.created_at),
        url=(job.web_url if job else status.target_url) or "",
        description=status.description or "",
        suite=PIPELINE if job else "",
    )


def _state(status: CommitStatus, pipelines: Mapping[int, Judged]) -> StatusState:
    """GitLab skips what was not needed, and also all that comes after a failure: the pipeline tells them apart."""
    if status.status != SKIPPED:
        return state_of(status)
    inside = [judged.state for judged in pipelines.values() if status.pipeline_id in (judged.pipeline.id, None)]
    worst = min(inside, key=WORST_FIRST.index, default=StatusState.PENDING)
    return StatusState.SKIPPED if CHECKS[worst] in SATISFIED else worst
