"""Sends the webhooks of the fake GitLab, each with its secret or signature."""

import json
from base64 import b64decode, b64encode
from hashlib import sha256
from hmac import digest
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.deliveries import Deliveries, Delivery
from tests.support.forges.gitlab.world import CommitStatus, Hook, MergeRequest, Note, Pipeline, Project, User, World


class Webhooks:
    def __init__(self, world: World, deliveries: Deliveries) -> None:
        self._world = world
        self._deliveries = deliveries

    def send_merge_request(self, project: Project, request: MergeRequest, by: User, action: str) -> None:
        body = {"object_attributes": self._attributes(project, request) | {"action": action}}
        self._send(project, "merge_requests", "Merge Request Hook", {"object_kind": "merge_request"} | body, by)

    def send_note(self, project: Project, request: MergeRequest, note: Note, action: str) -> None:
        attributes = {"id": note.id, "note": note.body, "noteable_type": "MergeRequest", "action": action}
        body = {"object_attributes": attributes, "merge_request": self._attributes(project, request)}
        self._send(project, "note", "Note Hook", {"object_kind": "note"} | body, note.author)

    def send_push(self, project: Project, ref: str, old: Sha | None, new: Sha | None, by: User) -> None:
        null = project.origin.null_sha
        update = {"ref": ref, "before": old or null, "after": new or null, "checkout_sha": new}
        body = update | {"user_username": by.username, "project_id": project.id}
        self._send(project, "push", "Push Hook", {"object_kind": "push"} | body, by)

    def send_pipeline(self, project: Project, pipeline: Pipeline, status: str, by: User) -> None:
        attributes = {"id": pipeline.id, "ref": pipeline.ref, "sha": pipeline.sha, "status": status}
        body = {"object_kind": "pipeline", "object_attributes": attributes}
        self._send(project, "pipeline", "Pipeline Hook", body, by)

    def send_job(self, project: Project, job: CommitStatus, by: User) -> None:
        body = {"object_kind": "build", "sha": job.sha, "build_id": job.id, "build_name": job.name}
        self._send(project, "job", "Job Hook", body | {"build_status": job.status, "project_id": project.id}, by)

    def _attributes(self, project: Project, request: MergeRequest) -> dict[str, Any]:
        return {
            "id": request.id,
            "iid": request.iid,
            "title": request.title,
            "state": request.state,
            "source_branch": request.source_branch,
            "target_branch": request.target_branch,
            "target_project_id": project.id,
            "last_commit": {"id": request.head},
        }

    def _send(self, project: Project, event: str, title: str, body: dict[str, Any], by: User) -> None:
        project_data = {
            "id": project.id,
            "path_with_namespace": project.path,
            "web_url": self._world.project_url(project),
            "default_branch": "main",
        }
        content = json.dumps(body | {"project": project_data, "user": {"id": by.id, "username": by.username}}).encode()
        for hook in project.hooks:
            if event in hook.events:
                self._deliveries.enqueue(self._sign(hook, title, content))

    def _sign(self, hook: Hook, title: str, content: bytes) -> Delivery:
        name, stamp = f"hook-{self._world.next_id()}", str(int(self._world.now().timestamp()))
        headers = {"content-type": "application/json", "x-gitlab-event": title, "idempotency-key": name}
        if not hook.secret.startswith("whsec_"):
            return Delivery(hook.url, headers | {"x-gitlab-token": hook.secret}, content)
        key = b64decode(hook.secret.removeprefix("whsec_"))
        signature = b64encode(digest(key, f"{name}.{stamp}.".encode() + content, sha256)).decode()
        signed = {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": f"v1,{signature}"}
        return Delivery(hook.url, headers | signed, content)
