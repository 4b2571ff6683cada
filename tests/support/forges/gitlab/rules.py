"""The status of pipelines, and what prevents a merge, as GitLab decides it."""

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.world import CommitStatus, MergeRequest, Pipeline, Project
from tests.support.repositories import Origin

FINISHED = ("success", "failed", "canceled", "skipped")


def pipeline_status(project: Project, pipeline: Pipeline) -> str:
    jobs = [job for job in project.statuses if job.pipeline == pipeline.id and not job.outdated]
    states = {job.status for job in jobs if not (job.allow_failure and job.status in ("failed", "manual"))}
    if not jobs:
        return pipeline.empty_status
    if states - set(FINISHED):
        return "pending" if states == {"pending"} else "running"
    if states == {"skipped"}:
        return "skipped"
    return next((state for state in ("failed", "canceled") if state in states), "success")


def merge_status(project: Project, request: MergeRequest) -> str:
    if request.undecided in ("checking", "preparing"):
        return "checking"
    if request.undecided == "unchecked":
        return "unchecked"
    return "can_be_merged" if merges_cleanly(project, request) else "cannot_be_merged"


def detailed_merge_status(project: Project, request: MergeRequest) -> str:
    """GitLab reports the first obstacle, in this order."""
    if request.state != "opened":
        return "not_open"
    if request.undecided is not None:
        return request.undecided
    if request.draft:
        return "draft_status"
    if request.unresolved and project.discussions_must_be_resolved:
        return "discussions_not_resolved"
    if project.pipelines_must_succeed and (obstacle := _pipeline_obstacle(project, request)):
        return obstacle
    if not request.approved:
        return "not_approved"
    if not merges_cleanly(project, request):
        return "conflict"
    return "need_rebase" if project.merge_method != "merge" and is_behind(project, request) else "mergeable"


def merges_cleanly(project: Project, request: MergeRequest) -> bool:
    target = project.origin.ref(request.target_branch)
    return bool(request.head and target) and project.origin.merged_tree(str(target), str(request.head)) is not None


def is_behind(project: Project, request: MergeRequest) -> bool:
    return not contains(project.origin, str(request.head), project.origin.tip(request.target_branch))


def contains(origin: Origin, commit: str, ancestor: str) -> bool:
    return origin.run("rev-list", "--max-count=1", ancestor, f"^{commit}") == b""


def current_statuses(project: Project, sha: Sha) -> list[CommitStatus]:
    return [one for one in project.statuses if one.sha == sha and not one.outdated]


def _pipeline_obstacle(project: Project, request: MergeRequest) -> str | None:
    """Only the latest pipeline of the head counts."""
    pipelines = [pipeline for pipeline in project.pipelines if pipeline.sha == request.head]
    status = pipeline_status(project, pipelines[-1]) if pipelines else "missing"
    if status == "success" or (status == "skipped" and project.skipped_pipeline_passes):
        return None
    return "ci_must_pass" if status in (*FINISHED, "missing") else "ci_still_running"
