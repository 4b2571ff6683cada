"""Shows what the fake holds in the words of GitLab's API."""

from datetime import datetime
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.judging import first_obstacle, fits, merge_status_of, status_of
from tests.support.forges.gitlab.nouns import (
    DELETED,
    DEVELOPER,
    Hook,
    MergeRequest,
    Note,
    Person,
    Pipeline,
    Project,
    Reaction,
    Reported,
    Token,
)

Shown = dict[str, Any]
EVENTS = ("push", "merge_requests", "note", "pipeline", "job")


class Showing:
    def __init__(self, pages: str, asking: Person) -> None:
        self._pages = pages
        self._asking = asking

    def person(self, person: Person) -> Shown:
        return {
            "id": person.id,
            "username": person.username,
            "name": person.username.title(),
            "state": person.state,
            "web_url": f"{self._pages}/{person.username}",
        }

    def _author(self, person: Person) -> Shown | None:
        return None if person.state == DELETED else self.person(person)

    def member(self, person: Person, level: int) -> Shown:
        return self.person(person) | {"access_level": level, "expires_at": None}

    def project(self, project: Project) -> Shown:
        level = project.members.get(self._asking.username, 0)
        return {
            "id": project.id,
            "path_with_namespace": project.path,
            "default_branch": "main",
            "visibility": "private",
            "web_url": f"{self._pages}/{project.path}",
            "http_url_to_repo": f"{self._pages}/{project.path}.git",
            "merge_method": project.merge_method,
            "squash_option": project.squash_option,
            "only_allow_merge_if_pipeline_succeeds": project.pipelines_must_succeed,
            "allow_merge_on_skipped_pipeline": project.skipped_is_fine or None,
            "only_allow_merge_if_all_discussions_are_resolved": project.discussions_must_be_resolved,
            "permissions": {"project_access": {"access_level": level, "notification_level": 3}, "group_access": None},
        }

    def branch(self, project: Project, name: str, sha: Sha, needed: int) -> Shown:
        level = project.members.get(self._asking.username, 0)
        return {
            "name": name,
            "merged": False,
            "protected": needed > DEVELOPER,
            "default": name == "main",
            "developers_can_push": needed <= DEVELOPER,
            "developers_can_merge": needed <= DEVELOPER,
            "can_push": level >= needed,
            "web_url": f"{self._pages}/{project.path}/-/tree/{name}",
            "commit": {"id": sha, "short_id": sha[:8], "title": "A change"},
        }

    def protected_branch(self, name: str, level: int, mergers: list[dict[str, int]] | None) -> Shown:
        described = {"id": 1, "access_level": None, "access_level_description": "Somebody"}
        access = [described | {"access_level": level}]
        return {
            "id": 1,
            "name": name,
            "push_access_levels": access,
            "merge_access_levels": access if mergers is None else [described | merger for merger in mergers],
            "allow_force_push": False,
        }

    def listed(self, project: Project, request: MergeRequest) -> Shown:
        page = f"{self._pages}/{project.path}/-/merge_requests/{request.iid}"
        return {
            "id": request.id,
            "iid": request.iid,
            "project_id": project.id,
            "title": request.title,
            "description": request.description,
            "state": request.state,
            "created_at": when(request.created_at),
            "updated_at": when(request.updated_at),
            "source_branch": request.source_branch,
            "target_branch": request.target_branch,
            "author": self._author(request.author),
            "source_project_id": request.source_project,
            "target_project_id": project.id,
            "labels": request.labels,
            "draft": request.draft,
            "merge_status": merge_status_of(project, request),
            "detailed_merge_status": first_obstacle(project, request),
            "sha": request.head,
            "merge_commit_sha": request.merge_commit,
            "squash_commit_sha": request.squash_commit,
            "user_notes_count": len([note for note in request.notes if not note.system]),
            "web_url": page,
            "has_conflicts": not fits(project, request),
            "blocking_discussions_resolved": not (request.unresolved and project.discussions_must_be_resolved),
        }

    def merge_request(self, project: Project, request: MergeRequest) -> Shown:
        needed = project.protected.get(request.target_branch, DEVELOPER)
        can_merge = project.members.get(self._asking.username, 0) >= needed
        return self.listed(project, request) | {"merge_error": request.merge_error, "user": {"can_merge": can_merge}}

    def approvals(self, request: MergeRequest) -> Shown:
        return {"approved": request.approved, "approved_by": []}

    def note(self, request: MergeRequest, note: Note) -> Shown:
        return {
            "id": note.id,
            "body": note.body,
            "author": self._author(note.author),
            "created_at": when(note.created_at),
            "updated_at": when(note.created_at),
            "system": note.system,
            "noteable_id": request.id,
            "noteable_iid": request.iid,
            "noteable_type": "MergeRequest",
            "resolvable": False,
            "internal": False,
        }

    def reaction(self, note: Note, reaction: Reaction) -> Shown:
        by = {"user": self.person(reaction.person), "awardable_id": note.id, "awardable_type": "Note"}
        return {"id": note.id, "name": reaction.name, "created_at": when(note.created_at)} | by

    def reported(self, project: Project, one: Reported) -> Shown:
        pipeline = next(pipeline for pipeline in project.pipelines if pipeline.id == one.pipeline)
        return {
            "id": one.id,
            "sha": one.sha,
            "ref": pipeline.ref,
            "status": one.status,
            "name": one.name,
            "target_url": one.target_url,
            "description": one.description,
            "created_at": when(one.created_at),
            "started_at": None,
            "finished_at": one.finished_at and when(one.finished_at),
            "allow_failure": one.allow_failure,
            "coverage": None,
            "pipeline_id": one.pipeline,
            "author": self.person(one.author),
        }

    def job(self, project: Project, pipeline: Pipeline, one: Reported) -> Shown:
        return {
            "id": one.id,
            "name": one.name,
            "stage": "test",
            "status": one.status,
            "ref": pipeline.ref,
            "tag": False,
            "allow_failure": one.allow_failure,
            "created_at": when(one.created_at),
            "started_at": None,
            "finished_at": one.finished_at and when(one.finished_at),
            "user": self.person(one.author),
            "pipeline": self.pipeline(project, pipeline),
            "web_url": f"{self._pages}/{project.path}/-/jobs/{one.id}",
        }

    def pipeline(self, project: Project, pipeline: Pipeline) -> Shown:
        return {
            "id": pipeline.id,
            "iid": pipeline.id,
            "project_id": project.id,
            "status": status_of(project, pipeline),
            "source": pipeline.source,
            "ref": pipeline.ref,
            "sha": pipeline.sha,
            "web_url": f"{self._pages}/{project.path}/-/pipelines/{pipeline.id}",
            "created_at": when(pipeline.created_at),
            "updated_at": when(pipeline.created_at),
        }

    def token(self, token: Token) -> Shown:
        return {
            "id": token.person.id,
            "name": "queue",
            "revoked": False,
            "active": True,
            "scopes": list(token.scopes),
            "user_id": token.person.id,
            "expires_at": token.expires_at,
        }

    def hook(self, project: Project, hook: Hook) -> Shown:
        events = {f"{event}_events": event in hook.events for event in EVENTS}
        where = {"id": hook.id, "url": hook.url, "project_id": project.id, "enable_ssl_verification": True}
        return where | events | {"alert_status": hook.alert_status}


def when(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
