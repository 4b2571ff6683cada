"""The JSON payloads of the fake GitLab's API."""

from datetime import datetime
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.rules import detailed_merge_status, merge_status, merges_cleanly, pipeline_status
from tests.support.forges.gitlab.world import (
    DELETED,
    DEVELOPER,
    CommitStatus,
    Hook,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Reaction,
    Token,
    User,
)

Payload = dict[str, Any]
EVENTS = ("push", "merge_requests", "note", "pipeline", "job")


class Payloads:
    def __init__(self, web_url: str, viewer: User) -> None:
        self._web_url = web_url
        self._viewer = viewer

    def user(self, person: User) -> Payload:
        return {
            "id": person.id,
            "username": person.username,
            "name": person.username.title(),
            "state": person.state,
            "web_url": f"{self._web_url}/{person.username}",
        }

    def _author(self, person: User) -> Payload | None:
        return None if person.state == DELETED else self.user(person)

    def member(self, person: User, level: int) -> Payload:
        return self.user(person) | {"access_level": level, "expires_at": None}

    def project(self, project: Project) -> Payload:
        level = project.members.get(self._viewer.username, 0)
        return {
            "id": project.id,
            "path_with_namespace": project.path,
            "default_branch": "main",
            "visibility": "private",
            "web_url": f"{self._web_url}/{project.path}",
            "http_url_to_repo": f"{self._web_url}/{project.path}.git",
            "merge_method": project.merge_method,
            "squash_option": project.squash_option,
            "only_allow_merge_if_pipeline_succeeds": project.pipelines_must_succeed,
            "allow_merge_on_skipped_pipeline": project.skipped_pipeline_passes or None,
            "only_allow_merge_if_all_discussions_are_resolved": project.discussions_must_be_resolved,
            "permissions": {"project_access": {"access_level": level, "notification_level": 3}, "group_access": None},
        }

    def branch(self, project: Project, name: str, sha: Sha, needed: int) -> Payload:
        level = project.members.get(self._viewer.username, 0)
        return {
            "name": name,
            "merged": False,
            "protected": needed > DEVELOPER,
            "default": name == "main",
            "developers_can_push": needed <= DEVELOPER,
            "developers_can_merge": needed <= DEVELOPER,
            "can_push": level >= needed,
            "web_url": f"{self._web_url}/{project.path}/-/tree/{name}",
            "commit": {"id": sha, "short_id": sha[:8], "title": "A change"},
        }

    def protected_branch(self, name: str, level: int, mergers: list[dict[str, int]] | None) -> Payload:
        described = {"id": 1, "access_level": None, "access_level_description": "Users"}
        access = [described | {"access_level": level}]
        return {
            "id": 1,
            "name": name,
            "push_access_levels": access,
            "merge_access_levels": access if mergers is None else [described | merger for merger in mergers],
            "allow_force_push": False,
        }

    def listed_merge_request(self, project: Project, request: MergeRequest) -> Payload:
        page = f"{self._web_url}/{project.path}/-/merge_requests/{request.iid}"
        return {
            "id": request.id,
            "iid": request.iid,
            "project_id": project.id,
            "title": request.title,
            "description": request.description,
            "state": request.state,
            "created_at": format_time(request.created_at),
            "updated_at": format_time(request.updated_at),
            "source_branch": request.source_branch,
            "target_branch": request.target_branch,
            "author": self._author(request.author),
            "source_project_id": request.source_project,
            "target_project_id": project.id,
            "labels": request.labels,
            "draft": request.draft,
            "merge_status": merge_status(project, request),
            "detailed_merge_status": detailed_merge_status(project, request),
            "sha": request.head,
            "merge_commit_sha": request.merge_commit,
            "squash_commit_sha": request.squash_commit,
            "user_notes_count": len([note for note in request.notes if not note.system]),
            "web_url": page,
            "has_conflicts": not merges_cleanly(project, request),
            "blocking_discussions_resolved": not (request.unresolved and project.discussions_must_be_resolved),
        }

    def merge_request(self, project: Project, request: MergeRequest) -> Payload:
        needed = project.protected.get(request.target_branch, DEVELOPER)
        can_merge = project.members.get(self._viewer.username, 0) >= needed
        return self.listed_merge_request(project, request) | {
            "merge_error": request.merge_error,
            "user": {"can_merge": can_merge},
        }

    def approvals(self, request: MergeRequest) -> Payload:
        return {"approved": request.approved, "approved_by": []}

    def note(self, request: MergeRequest, note: Note) -> Payload:
        return {
            "id": note.id,
            "body": note.body,
            "author": self._author(note.author),
            "created_at": format_time(note.created_at),
            "updated_at": format_time(note.created_at),
            "system": note.system,
            "noteable_id": request.id,
            "noteable_iid": request.iid,
            "noteable_type": "MergeRequest",
            "resolvable": False,
            "internal": False,
        }

    def reaction(self, note: Note, reaction: Reaction) -> Payload:
        target = {"user": self.user(reaction.user), "awardable_id": note.id, "awardable_type": "Note"}
        return {"id": note.id, "name": reaction.name, "created_at": format_time(note.created_at)} | target

    def commit_status(self, project: Project, status: CommitStatus) -> Payload:
        pipeline = next(pipeline for pipeline in project.pipelines if pipeline.id == status.pipeline)
        return {
            "id": status.id,
            "sha": status.sha,
            "ref": pipeline.ref,
            "status": status.status,
            "name": status.name,
            "target_url": status.target_url,
            "description": status.description,
            "created_at": format_time(status.created_at),
            "started_at": None,
            "finished_at": status.finished_at and format_time(status.finished_at),
            "allow_failure": status.allow_failure,
            "coverage": None,
            "pipeline_id": status.pipeline,
            "author": self.user(status.author),
        }

    def job(self, project: Project, pipeline: Pipeline, job: CommitStatus) -> Payload:
        return {
            "id": job.id,
            "name": job.name,
            "stage": "test",
            "status": job.status,
            "ref": pipeline.ref,
            "tag": False,
            "allow_failure": job.allow_failure,
            "created_at": format_time(job.created_at),
            "started_at": None,
            "finished_at": job.finished_at and format_time(job.finished_at),
            "user": self.user(job.author),
            "pipeline": self.pipeline(project, pipeline),
            "web_url": f"{self._web_url}/{project.path}/-/jobs/{job.id}",
        }

    def pipeline(self, project: Project, pipeline: Pipeline) -> Payload:
        return {
            "id": pipeline.id,
            "iid": pipeline.id,
            "project_id": project.id,
            "status": pipeline_status(project, pipeline),
            "source": pipeline.source,
            "ref": pipeline.ref,
            "sha": pipeline.sha,
            "web_url": f"{self._web_url}/{project.path}/-/pipelines/{pipeline.id}",
            "created_at": format_time(pipeline.created_at),
            "updated_at": format_time(pipeline.created_at),
        }

    def token(self, token: Token) -> Payload:
        return {
            "id": token.user.id,
            "name": "queue",
            "revoked": False,
            "active": True,
            "scopes": list(token.scopes),
            "user_id": token.user.id,
            "expires_at": token.expires_at,
        }

    def hook(self, project: Project, hook: Hook) -> Payload:
        events = {f"{event}_events": event in hook.events for event in EVENTS}
        base = {"id": hook.id, "url": hook.url, "project_id": project.id, "enable_ssl_verification": True}
        return base | events | {"alert_status": hook.alert_status}


def format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
