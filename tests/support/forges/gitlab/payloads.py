"""The JSON payloads of the fake GitLab's API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.rules import (
    allows_collaboration,
    applicable_rules,
    approvals_left,
    approved_by,
    approvers,
    can_merge,
    detailed_merge_status,
    is_approved,
    is_protected,
    is_rule_approved,
    is_squashed,
    lets_developers,
    merge_access,
    merge_status,
    merges_cleanly,
    pipeline_status,
    push_access,
    shown_pipeline,
)
from tests.support.forges.gitlab.world import (
    DELETED,
    ApprovalRule,
    CommitStatus,
    Hook,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Reaction,
    SshKey,
    Token,
    User,
)

Payload = dict[str, Any]
GHOST = User(1, "ghost")
EVENTS = ("push", "merge_requests", "note", "pipeline", "job")


class Payloads:
    def __init__(self, web_url: str, viewer: User) -> None:
        self._web_url = web_url
        self._viewer = viewer

    def user(self, person: User) -> Payload:
        return {
            "id": person.id,
            "username": person.username,
            "public_email": person.public_email,
            "name": person.name,
            "state": person.state,
            "web_url": f"{self._web_url}/{person.username}",
        }

    def account(self, person: User) -> Payload:
        """What an account sees of itself."""
        return self.user(person) | {"commit_email": person.commit_email or person.private_address(self._web_url)}

    def _author(self, person: User) -> Payload:
        return self.user(GHOST if person.state == DELETED else person)

    def member(self, person: User, level: int) -> Payload:
        return self.user(person) | {"access_level": level, "expires_at": None}

    def project(self, project: Project) -> Payload:
        level = project.members.get(self._viewer.username, 0)
        return {
            "id": project.id,
            "path_with_namespace": project.path,
            "default_branch": "main",
            "visibility": project.visibility,
            "web_url": f"{self._web_url}/{project.path}",
            "http_url_to_repo": f"{self._web_url}/{project.path}.git",
            "merge_method": project.merge_method,
            "squash_option": project.squash_option,
            "only_allow_merge_if_pipeline_succeeds": project.pipelines_must_succeed,
            "allow_merge_on_skipped_pipeline": project.skipped_pipeline_passes or None,
            "only_allow_merge_if_all_discussions_are_resolved": project.discussions_must_be_resolved,
            "archived": project.archived,
            "repository_object_format": project.origin.object_format.name,
            "jobs_enabled": project.has_ci,
            "builds_access_level": "enabled" if project.has_ci else "disabled",
            **({"merge_pipelines_enabled": project.merge_pipelines_enabled} if project.premium else {}),
            "permissions": {
                "project_access": {"access_level": level, "notification_level": 3} if level else None,
                "group_access": None,
            },
        }

    def branch(self, project: Project, name: str, sha: Sha, *, can_push: bool) -> Payload:
        return {
            "name": name,
            "merged": False,
            "protected": is_protected(project, name),
            "default": name == "main",
            "developers_can_push": lets_developers(push_access, project, name),
            "developers_can_merge": lets_developers(merge_access, project, name),
            "can_push": can_push,
            "web_url": f"{self._web_url}/{project.path}/-/tree/{name}",
            "commit": self._commit(sha),
        }

    def _commit(self, sha: Sha) -> Payload:
        return {"id": sha, "short_id": sha[:8], "title": "A change"}

    def commit_detail(self, sha: Sha, parents: list[str]) -> Payload:
        return self._commit(sha) | {"parent_ids": parents}

    def signature(self, commit: bytes) -> Payload:
        """The fake verifies none: that needs the key of the committer."""
        kind = "SSH" if b"BEGIN SSH SIGNATURE" in commit else "PGP"
        return {"signature_type": kind, "verification_status": "unverified", "commit_source": "gitaly"}

    def ssh_key(self, number: int, key: SshKey) -> Payload:
        times = {"created_at": "2026-01-01T00:00:00.000Z", "expires_at": None, "last_used_at": None}
        return {"id": number, "title": "a key", "key": key.key, "usage_type": key.usage_type} | times

    def gpg_key(self, number: int, key: str) -> Payload:
        return {"id": number, "key": key, "created_at": "2026-01-01T00:00:00.000Z"}

    def protected_branch(self, project: Project, name: str, pushers: list[Payload], mergers: list[Payload]) -> Payload:
        described = {"id": 1, "access_level": None}
        return {
            "id": 1,
            "name": name,
            "push_access_levels": [described | pusher for pusher in pushers],
            "merge_access_levels": [described | merger for merger in mergers],
            "allow_force_push": name in project.force_pushable,
        }

    def push_rule(self, project: Project) -> Payload | None:
        """None while the project has no push rule."""
        if project.push_rule is None:
            return None
        texts = ("commit_message_regex", "commit_message_negative_regex", "branch_name_regex", "author_email_regex")
        checks = (
            *("deny_delete_tag", "member_check", "prevent_secrets", "commit_committer_check"),
            *("commit_committer_name_check", "reject_unsigned_commits", "reject_non_dco_commits"),
        )
        defaults = dict.fromkeys(texts, "") | dict.fromkeys(checks, False) | {"file_name_regex": "", "max_file_size": 0}
        return {"id": 1, "project_id": project.id} | defaults | project.push_rule

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
            **({"allow_collaboration": allows_collaboration(project, request)} if request.fork else {}),
            "labels": request.labels,
            "draft": request.draft,
            "merge_status": merge_status(project, request),
            "detailed_merge_status": detailed_merge_status(project, request),
            "sha": request.head,
            "merge_commit_sha": request.merge_commit,
            "squash_commit_sha": request.squash_commit,
            "squash": request.squash,
            "squash_on_merge": is_squashed(project, request),
            "should_remove_source_branch": None,
            "force_remove_source_branch": request.force_remove_source_branch,
            "user_notes_count": len([note for note in request.notes if not note.system]),
            "web_url": page,
            "has_conflicts": not merges_cleanly(project, request),
            "blocking_discussions_resolved": not (request.unresolved and project.discussions_must_be_resolved),
        }

    def merge_request(self, project: Project, request: MergeRequest) -> Payload:
        pipeline = shown_pipeline(project, request)
        return self.listed_merge_request(project, request) | {
            "merge_error": request.merge_error,
            "head_pipeline": self.pipeline(*pipeline) if pipeline else None,
            "user": {"can_merge": can_merge(project, self._viewer, request.target_branch)},
        }

    def approvals(self, project: Project, request: MergeRequest, people: Mapping[str, User]) -> Payload:
        """`approved` of the free edition: whether any account has approved."""
        given = [{"user": self.user(people[name])} for name in request.approvals]
        viewer = self._viewer.username
        common = {"user_has_approved": viewer in request.approvals, "user_can_approve": viewer not in request.approvals}
        if not project.premium:
            return common | {"approved": bool(given), "approved_by": given}
        return common | {
            "approved": is_approved(project, request),
            "approved_by": given,
            "approvals_required": sum(rule.needed for rule in project.approval_rules),
            "approvals_left": approvals_left(project, request),
        }

    def approval_state(self, project: Project, request: MergeRequest, people: Mapping[str, User]) -> Payload:
        rules = enumerate(applicable_rules(project))
        shown = [self._approval_rule(project, request, rule, number, people) for number, rule in rules]
        return {"approval_rules_overwritten": False, "rules": shown}

    def _approval_rule(
        self, project: Project, request: MergeRequest, rule: ApprovalRule, number: int, people: Mapping[str, User]
    ) -> Payload:
        eligible = sorted(approvers(project, request, rule))
        return {
            "id": number,
            "name": rule.name,
            "rule_type": rule.rule_type,
            "eligible_approvers": [self.user(people[name]) for name in eligible],
            "approvals_required": rule.needed,
            "users": [self.user(people[name]) for name in rule.users],
            "groups": [{"id": number, "name": path, "full_path": path} for path in rule.groups],
            "contains_hidden_groups": False,
            "approved_by": [self.user(people[name]) for name in approved_by(project, request, rule)],
            "approved": is_rule_approved(project, request, rule),
        }

    def discussions(self, request: MergeRequest) -> list[Payload]:
        """An ordinary comment, a resolved thread, and the unresolved ones."""
        threads = [(False, False), (True, True), *[(True, False)] * request.unresolved]
        shown = enumerate(threads)
        return [{"id": str(at), "notes": [{"id": at, "resolvable": can, "resolved": is_}]} for at, (can, is_) in shown]

    def reviewers(self, request: MergeRequest, people: Mapping[str, User]) -> list[Payload]:
        states = dict.fromkeys(request.approvals, "approved")
        states |= dict.fromkeys(request.changes_requested_by, "requested_changes")
        at = format_time(request.created_at)
        return [{"user": self.user(people[name]), "state": states[name], "created_at": at} for name in states]

    def external_checks(self, request: MergeRequest) -> list[Payload]:
        checks = enumerate(request.external_checks.items())
        url = "https://checks.example"
        return [{"id": at, "name": name, "external_url": url, "status": status} for at, (name, status) in checks]

    def note(self, request: MergeRequest, note: Note) -> Payload:
        return {
            "id": note.id,
            "body": note.body,
            "author": self._author(note.author),
            "created_at": format_time(note.created_at),
            "updated_at": format_time(note.updated_at or note.created_at),
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
