"""Reads the jobs, pipelines and commit statuses of a commit, and reports our own status."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import CHECK_STATE_BY_STATUS_STATE, Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES

PIPELINE = "pipeline"
"""The name of the check for all pipelines together, and the suite of their jobs."""
SKIPPED = "skipped"
FAILED_STATES = ("failed", "canceled", "canceling")
STATES = {
    "success": StatusState.SUCCESS,
    SKIPPED: StatusState.SKIPPED,
    **dict.fromkeys(FAILED_STATES, StatusState.FAILURE),
}
WORST_FIRST = (
    StatusState.FAILURE,
    StatusState.PENDING,
    StatusState.SUCCESS,
    StatusState.NEUTRAL,
    StatusState.SKIPPED,
)
"""Skipped is last: a pipeline with one successful and one skipped job is successful."""
UNTESTED_MESSAGE = "The pipeline was skipped, so nothing was tested: remove [skip ci] from the commit messages."


class PipelineResult(Struct, frozen=True):
    pipeline: wire.Pipeline
    state: StatusState
    is_skipped: bool
    message: str = ""


async def read_pipelines(
    client: ForgeClient, sha: Sha, reported: Sequence[wire.CommitStatus]
) -> Mapping[int, PipelineResult]:
    """Results by pipeline id, without pipelines that contain nothing but our own status."""
    pipelines = await client.get_all("/pipelines", list[wire.Pipeline], {"sha": sha, "per_page": 100})
    results = [result for pipeline in pipelines if (result := _evaluate_pipeline(pipeline, reported))]
    if any(result.is_skipped for result in results) and not await _can_be_skipped(client, pipelines):
        untested = {"state": StatusState.FAILURE, "message": UNTESTED_MESSAGE}
        results = [replace(result, **untested) if result.is_skipped else result for result in results]
    return {result.pipeline.id: result for result in results}


async def _can_be_skipped(client: ForgeClient, pipelines: Sequence[wire.Pipeline]) -> bool:
    """Never on a test branch, whatever the project allows: the queue merges only what was tested there."""
    if any(pipeline.ref.startswith(ids.TEST_BRANCH_PREFIX) for pipeline in pipelines):
        return False
    return bool((await client.read_repository(wire.Project)).allow_merge_on_skipped_pipeline)


def summarize_pipelines(pipelines: Mapping[int, PipelineResult]) -> list[Status]:
    """The worst result among the latest pipelines of each ref: a branch and a merge request can both have a pipeline
    for the same commit."""
    latest = {pipelines[id_].pipeline.ref: pipelines[id_] for id_ in sorted(pipelines)}
    counting = [result for result in latest.values() if not result.is_skipped] or latest.values()
    worst = min(counting, key=lambda result: WORST_FIRST.index(result.state), default=None)
    if worst is None:
        return []
    at = to_instant(worst.pipeline.updated_at or worst.pipeline.created_at)
    url, message = worst.pipeline.web_url, worst.message
    return [Status(context=PIPELINE, state=worst.state, at=at, url=url, description=message, suite=PIPELINE)]


def derive_job_state(status: wire.CommitStatus) -> StatusState:
    """A failed job that is allowed to fail is neutral: its pipeline passes."""
    if status.allow_failure and status.status in FAILED_STATES:
        return StatusState.NEUTRAL
    return _decode_state(status.status)


def _evaluate_pipeline(pipeline: wire.Pipeline, reported: Sequence[wire.CommitStatus]) -> PipelineResult | None:
    """Our own status is part of a pipeline, which then waits for us while we wait for it. So if it contains our status,
    its state is derived from the other jobs and statuses.

    Old GitLab versions do not return the pipeline of a status: then it counts for every pipeline.
    """
    members = [status for status in reported if status.pipeline_id in (pipeline.id, None)]
    others = [status for status in members if status.name != ids.STATUS_CONTEXT]
    if len(others) == len(members):
        return PipelineResult(pipeline, _decode_state(pipeline.status), is_skipped=pipeline.status == SKIPPED)
    state = min(
        (derive_job_state(status) for status in others if not status.allow_failure), key=WORST_FIRST.index, default=None
    )
    is_skipped = all(status.status == SKIPPED for status in others)
    return None if state is None else PipelineResult(pipeline, state, is_skipped=is_skipped)


def _decode_state(name: str) -> StatusState:
    return STATES.get(name, StatusState.PENDING)


GITLAB_STATES = {
    StatusState.PENDING: "pending",
    StatusState.SUCCESS: "success",
    StatusState.SKIPPED: "success",
    StatusState.NEUTRAL: "success",
    StatusState.FAILURE: "failed",
    StatusState.ERROR: "failed",
}
MAX_DESCRIPTION_CHARS = 255


class Checks(ForgeHost):
    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        """GitLab has no required checks by name, only the setting that the pipeline must succeed."""
        project = await (await self._client_for(repo)).read_repository(wire.Project)
        return (PIPELINE,) if project.only_allow_merge_if_pipeline_succeeds else ()

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await read_statuses(await self._client_for(repo), sha)

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await set_status(await self._client_for(repo), sha, status)


async def read_statuses(client: ForgeClient, sha: Sha) -> Sequence[Status]:
    reported = await list_commit_statuses(client, sha)
    pipelines = await read_pipelines(client, sha, reported)
    others = [status for status in reported if status.name not in (ids.STATUS_CONTEXT, PIPELINE)]
    jobs = await _read_jobs(client, {status.pipeline_id for status in others}, pipelines)
    latest = _select_latest(others, jobs)
    statuses = (_to_status(status, pipelines, jobs) for status in latest)
    return [*_select_worst_per_name(statuses), *summarize_pipelines(pipelines)]


async def list_commit_statuses(client: ForgeClient, sha: Sha) -> list[wire.CommitStatus]:
    path = f"/repository/commits/{quote_segment(sha)}/statuses"
    return await client.get_all(path, list[wire.CommitStatus], {"per_page": 100})


async def set_status(client: ForgeClient, sha: Sha, status: Status) -> None:
    body = {
        "name": status.context,
        "state": GITLAB_STATES[status.state],
        "description": status.description[:MAX_DESCRIPTION_CHARS],
    } | ({"target_url": status.url} if status.url else {})
    reply = await client.send("POST", f"/statuses/{quote_segment(sha)}", body)
    is_already_set = reply.status == 400 and b"Cannot transition status" in reply.body
    if not is_already_set:
        # GitLab answers 404 if no branch of the project contains the commit, as with the head of a fork.
        reply.raise_for_status(allowed=(404,))


async def _read_jobs(
    client: ForgeClient, pipeline_ids: Collection[int | None], pipelines: Collection[int]
) -> Mapping[int, wire.Job]:
    """Jobs by id. GitLab draws the ids of jobs and of reported statuses from one sequence, so an id tells them apart.

    The status itself does not: its reporter chooses the `target_url`, and a job can have none.
    """
    # Old GitLab versions do not return the pipeline of a status: then it can be any of them.
    wanted = {*pipeline_ids, *pipelines} if None in pipeline_ids else {*pipeline_ids}
    jobs = list[wire.Job]()
    for pipeline in sorted(pipeline for pipeline in wanted if pipeline is not None):
        path = f"/pipelines/{pipeline}"
        jobs += await client.get_all(f"{path}/jobs", list[wire.Job], {"include_retried": "true", "per_page": 100})
        jobs += await client.get_all(f"{path}/bridges", list[wire.Job], {"per_page": 100})
    return {job.id: job for job in jobs}


def _select_latest(reported: Iterable[wire.CommitStatus], jobs: Mapping[int, wire.Job]) -> Iterable[wire.CommitStatus]:
    """The latest per name and ref: the pipelines of a branch and of a merge request do not replace each other."""
    by_age = sorted(reported, key=lambda status: status.id)
    return {(status.name, status.ref, status.id in jobs): status for status in by_age}.values()


def _select_worst_per_name(statuses: Iterable[Status]) -> Iterable[Status]:
    """A failure on one ref is not outweighed by a success on another."""
    worst_last = sorted(statuses, key=lambda status: WORST_FIRST.index(status.state), reverse=True)
    return {status.context: status for status in worst_last}.values()


def _to_status(
    status: wire.CommitStatus, pipelines: Mapping[int, PipelineResult], jobs: Mapping[int, wire.Job]
) -> Status:
    job = jobs.get(status.id)
    return Status(
        context=status.name,
        state=_derive_state(status, pipelines),
        at=to_instant(status.finished_at or status.started_at or status.created_at),
        url=(job.web_url if job else status.target_url) or "",
        description=status.description or "",
        suite=PIPELINE if job else "",
    )


def _derive_state(status: wire.CommitStatus, pipelines: Mapping[int, PipelineResult]) -> StatusState:
    """GitLab skips jobs that are not needed, but also all jobs after a failure: the pipeline's state tells which."""
    if status.status != SKIPPED:
        return derive_job_state(status)
    states = [result.state for result in pipelines.values() if status.pipeline_id in (result.pipeline.id, None)]
    worst = min(states, key=WORST_FIRST.index, default=StatusState.PENDING)
    return StatusState.SKIPPED if CHECK_STATE_BY_STATUS_STATE[worst] in SATISFIED_CHECK_STATES else worst
