"""The JSON payloads of the fake Gitea's API."""

from base64 import b64encode
from datetime import datetime
from hashlib import sha256
from typing import Any

from msgspec import structs

from tests.support.forges.gitea.rules import is_mergeable
from tests.support.forges.gitea.world import (
    Account,
    Blocker,
    Comment,
    Hook,
    Key,
    Label,
    PullRequest,
    Reaction,
    Repository,
    Review,
    Status,
    World,
    find_rule,
)

Payload = dict[str, Any]


def format_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def user(account: Account, viewer: Account | None = None) -> Payload:
    """The account itself and administrators of the server see everything."""
    is_insider = viewer is not None and (viewer is account or viewer.site_admin)
    email = f"{account.login}@noreply.localhost" if account.hides_email and not is_insider else account.email
    names = {"login": account.login, "full_name": account.full_name, "email": email}
    return {"id": account.id, **names, "is_admin": is_insider and account.site_admin}


def ssh_key(found: Key) -> Payload:
    digest = b64encode(sha256(found.mark).digest()).decode().rstrip("=")
    return {"id": found.id, "key": found.content, "fingerprint": f"SHA256:{digest}"}


def gpg_key(found: Key) -> Payload:
    """Without subkeys. Without addresses too, so its signatures count only if it is verified."""
    return {"id": found.id, "key_id": found.content[-16:], "verified": found.verified, "emails": [], "subkeys": None}


def label(found: Label) -> Payload:
    return {"id": found.id, "name": found.name, "color": found.color, "description": ""}


class Payloads:
    def __init__(self, world: World) -> None:
        self._world = world

    def repository(self, found: Repository, viewer: Account) -> Payload:
        permissions = {name: self._world.has_role(found, viewer, role) for name, role in PERMISSION_ROLES.items()}
        return {
            "id": found.id,
            "owner": user(found.owner),
            "name": found.name,
            "full_name": found.path,
            "html_url": f"{self._world.url}/{found.path}",
            "clone_url": f"{self._world.url}/{found.path}.git",
            "permissions": permissions,
        } | structs.asdict(found.settings)

    def pull_request(self, repository: Repository, found: PullRequest, viewer: Account) -> Payload:
        base = {"label": found.base, "ref": found.base, "sha": repository.origin.ref(found.base) or ""}
        head = {"label": found.head_branch, "ref": found.head_branch, "sha": found.head}
        return {
            "id": found.number,
            "number": found.number,
            "user": user(found.author, viewer),
            "title": found.title,
            "body": found.body,
            "labels": [label(each) for each in found.labels],
            "state": found.state,
            "draft": found.draft,
            "comments": len(found.comments),
            "html_url": f"{self._world.url}/{repository.path}/pulls/{found.number}",
            "mergeable": is_mergeable(repository, found),
            "merged": found.merged,
            "merge_commit_sha": found.merge_commit,
            "merge_base": found.merge_base,
            "base": base | {"repo_id": repository.id, "repo": self.repository(repository, viewer)},
            "head": head
            | {"repo_id": found.head_repository.id, "repo": self.repository(found.head_repository, viewer)},
            "created_at": format_time(found.created),
            "updated_at": format_time(found.updated),
        }

    def branch(self, repository: Repository, name: str, viewer: Account) -> Payload:
        """Only administrators of the repository see the name of the rule."""
        rule = find_rule(repository, name)
        can_write = self._world.has_role(repository, viewer, "write")
        payload = {"name": name, "commit": {"id": repository.origin.tip(name)}, "protected": rule is not None}
        if rule is None:
            return payload | UNPROTECTED | {"user_can_push": can_write, "user_can_merge": can_write}
        can_push = not rule.enable_push_whitelist or viewer.login in rule.push_whitelist_usernames
        can_merge = not rule.enable_merge_whitelist or viewer.login in rule.merge_whitelist_usernames
        return payload | {
            "required_approvals": rule.required_approvals,
            "enable_status_check": rule.enable_status_check,
            "status_check_contexts": rule.status_check_contexts,
            "user_can_push": can_write and rule.enable_push and can_push,
            "user_can_merge": can_write and can_merge,
            "effective_branch_protection_name": rule.rule_name
            if self._world.has_role(repository, viewer, "admin")
            else "",
        }

    def status(self, found: Status) -> Payload:
        return {
            "id": found.id,
            "status": found.state,
            "target_url": found.target_url,
            "description": found.description,
            "context": found.context,
            "creator": user(found.creator),
            "created_at": format_time(found.created),
            "updated_at": format_time(found.created),
        }


def comment(found: Comment) -> Payload:
    return {
        "id": found.id,
        "user": user(found.author),
        "body": found.body,
        "created_at": format_time(found.created),
        "updated_at": format_time(found.updated),
    }


def issue(found: Blocker) -> Payload:
    """A pull request in the list of issues."""
    repository, pull = found.repository, found.pull_request
    meta = {"id": repository.id, "name": repository.name, "owner": repository.owner.login}
    return {
        "id": pull.number,
        "number": pull.number,
        "user": user(pull.author),
        "title": pull.title,
        "state": pull.state,
        "repository": meta | {"full_name": repository.path},
    }


def reaction(found: Reaction, author: Account) -> Payload:
    return {"user": user(author), "content": found.content}


def review(found: Review, pull: PullRequest) -> Payload:
    return {
        "id": found.id,
        "user": user(found.author) if found.author else None,
        "team": {"name": found.team} if found.team else None,
        "state": found.state,
        "body": found.body,
        "commit_id": found.commit,
        "stale": found.state != "REQUEST_REVIEW" and found.commit != pull.head,
        "official": found.official,
        "dismissed": found.dismissed,
    }


def hook(found: Hook) -> Payload:
    config = {"url": found.url, "content_type": found.content_type}
    return {"id": found.id, "type": "gitea", "config": config, "events": found.events, "active": found.active}


PERMISSION_ROLES = {"admin": "admin", "push": "write", "pull": "read"}
UNPROTECTED: Payload = {
    "required_approvals": 0,
    "enable_status_check": False,
    "status_check_contexts": [],
    "effective_branch_protection_name": "",
}
