"""Judges pipelines: what each has come to, and all of a commit together."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import project_of
from mergeyard.adapters.forges.gitlab.projects import settings_of
from mergeyard.adapters.forges.gitlab.wire import CommitStatus, Pipeline
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status, StatusState

PIPELINE = "pipeline"
"""The name under which pipelines as a whole are shown, and the suite of their jobs."""
SKIPPED = "skipped"
FAILED = ("failed", "canceled", "canceling")
STATES = {
    "success": StatusState.SUCCESS,
    SKIPPED: StatusState.SKIPPED,
    **dict.fromkeys(FAILED, StatusState.FAILURE),
}
WORST_FIRST = (
    StatusState.FAILURE,
    StatusState.PENDING,
    StatusState.SUCCESS,
    StatusState.NEUTRAL,
    StatusState.SKIPPED,
)
"""What was skipped counts least: a pipeline with a job that succeeded and one that was skipped has succeeded."""
NOT_TESTED = "The pipeline was skipped, so nothing was tested: remove [skip ci] from the words of the commits."


class Judged(Struct, frozen=True):
    pipeline: Pipeline
    state: StatusState
    skipped: bool
    words: str = ""


async def judged_pipelines(
    caller: Caller, repo: Repo, sha: Sha, reported: Sequence[CommitStatus]
) -> Mapping[int, Judged]:
    """By their ids. One that only we have a part in says nothing."""
    query = {"sha": sha, "per_page": 100}
    pipelines = await caller.every(f"{project_of(repo)}/pipelines", list[Pipeline], query)
    found = [judged for pipeline in pipelines if (judged := _judged(pipeline, reported))]
    if any(judged.skipped for judged in found) and not await _may_be_skipped(caller, repo, pipelines):
        found = [_untested(judged) if judged.skipped else judged for judged in found]
    return {judged.pipeline.id: judged for judged in found}


async def _may_be_skipped(caller: Caller, repo: Repo, pipelines: Sequence[Pipeline]) -> bool:
    """Never on a test branch, whatever the project says: the queue merges only what was tested there."""
    if any(pipeline.ref.startswith(ours.BRANCHES) for pipeline in pipelines):
        return False
    return bool((await settings_of(caller, repo)).allow_merge_on_skipped_pipeline)


def of_all(pipelines: Mapping[int, Judged]) -> list[Status]:
    """The worst of the latest of each ref: a branch and a merge request may each have one of the same commit."""
    latest = {pipelines[known].pipeline.ref: pipelines[known] for known in sorted(pipelines)}
    counting = [judged for judged in latest.values() if not judged.skipped] or latest.values()
    worst = min(counting, key=lambda judged: WORST_FIRST.index(judged.state), default=None)
    return [] if worst is None else [_status(worst)]


def state_of(status: CommitStatus) -> StatusState:
    """A job that failed and is allowed to is neutral: its own pipeline passes with it."""
    return StatusState.NEUTRAL if status.allow_failure and status.status in FAILED else _state_named(status.status)


def _judged(pipeline: Pipeline, reported: Sequence[CommitStatus]) -> Judged | None:
    """Our own word becomes part of a pipeline, which then waits for us as we wait for it: only others count.

    Old versions of GitLab do not say to which pipeline a status belongs: it may be this one.
    """
    inside = [status for status in reported if status.pipeline_id in (pipeline.id, None)]
    others = [status for status in inside if status.name != ours.STATUS]
    if len(others) == len(inside):
        return Judged(pipeline, _state_named(pipeline.status), skipped=pipeline.status == SKIPPED)
    state = min(
        (state_of(status) for status in others if not status.allow_failure), key=WORST_FIRST.index, default=None
    )
    skipped = all(status.status == SKIPPED for status in others)
    return None if state is None else Judged(pipeline, state, skipped=skipped)


def _untested(judged: Judged) -> Judged:
    return replace(judged, state=StatusState.FAILURE, words=NOT_TESTED)


def _state_named(word: str) -> StatusState:
    return STATES.get(word, StatusState.PENDING)


def _status(judged: Judged) -> Status:
    pipeline = judged.pipeline
    at = instant(pipeline.updated_at or pipeline.created_at)
    return Status(
        context=PIPELINE, state=judged.state, at=at, url=pipeline.web_url, description=judged.words, suite=PIPELINE
    )
