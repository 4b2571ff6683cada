"""Judges as GitLab does what a pipeline has come to, and what stands in the way of a merge."""

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.nouns import MergeRequest, Pipeline, Project, Reported
from tests.support.repositories import Origin

FINISHED = ("success", "failed", "canceled", "skipped")


def status_of(project: Project, pipeline: Pipeline) -> str:
    inside = [one for one in project.reported if one.pipeline == pipeline.id and not one.outdated]
    states = {one.status for one in inside if not (one.allow_failure and one.status in ("failed", "manual"))}
    if not inside:
        return pipeline.empty_status
    if states - set(FINISHED):
        return "pending" if states == {"pending"} else "running"
    if states == {"skipped"}:
        return "skipped"
    return next((state for state in ("failed", "canceled") if state in states), "success")


def merge_status_of(project: Project, request: MergeRequest) -> str:
    if request.undecided in ("checking", "preparing"):
        return "checking"
    if request.undecided == "unchecked":
        return "unchecked"
    return "can_be_merged" if fits(project, request) else "cannot_be_merged"


def first_obstacle(project: Project, request: MergeRequest) -> str:
    """The `detailed_merge_status`: GitLab names the first thing that it finds, in this order."""
    if request.state != "opened":
        return "not_open"
    if request.undecided is not None:
        return request.undecided
    if request.draft:
        return "draft_status"
    if request.unresolved and project.discussions_must_be_resolved:
        return "discussions_not_resolved"
    if project.pipelines_must_succeed and (word := _of_pipelines(project, request)):
        return word
    if not request.approved:
        return "not_approved"
    if not fits(project, request):
        return "conflict"
    return "need_rebase" if project.merge_method != "merge" and is_behind(project, request) else "mergeable"


def fits(project: Project, request: MergeRequest) -> bool:
    target = project.origin.ref(request.target_branch)
    return bool(request.head and target) and project.origin.merged_tree(str(target), str(request.head)) is not None


def is_behind(project: Project, request: MergeRequest) -> bool:
    return not holds(project.origin, str(request.head), project.origin.tip(request.target_branch))


def holds(origin: Origin, commit: str, ancestor: str) -> bool:
    return origin.run("rev-list", "--max-count=1", ancestor, f"^{commit}") == b""


def reported_of(project: Project, sha: Sha) -> list[Reported]:
    return [one for one in project.reported if one.sha == sha and not one.outdated]


def _of_pipelines(project: Project, request: MergeRequest) -> str | None:
    """Only the latest pipeline of the head counts."""
    pipelines = [pipeline for pipeline in project.pipelines if pipeline.sha == request.head]
    status = status_of(project, pipelines[-1]) if pipelines else "missing"
    if status == "success" or (status == "skipped" and project.skipped_is_fine):
        return None
    return "ci_must_pass" if status in (*FINISHED, "missing") else "ci_still_running"
