"""Shows what a Gitea knows in the shapes that it answers with."""

from datetime import datetime
from typing import Any

from msgspec import structs

from tests.support.forges.gitea.judging import is_mergeable
from tests.support.forges.gitea.nouns import (
    Account,
    Blocker,
    Comment,
    Hook,
    Label,
    Pull,
    Reaction,
    Repository,
    Review,
    Status,
)
from tests.support.forges.gitea.world import World, rule_of

Shape = dict[str, Any]


def moment(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def user(account: Account) -> Shape:
    email = f"{account.login}@example.org"
    return {"id": account.id, "login": account.login, "email": email, "is_admin": account.site_admin}


def label(found: Label) -> Shape:
    return {"id": found.id, "name": found.name, "color": found.color, "description": ""}


class Showing:
    def __init__(self, world: World) -> None:
        self._world = world

    def repository(self, found: Repository, viewer: Account) -> Shape:
        may = {name: self._world.may(found, viewer, role) for name, role in RIGHTS.items()}
        return {
            "id": found.id,
            "owner": user(found.owner),
            "name": found.name,
            "full_name": found.path,
            "html_url": f"{self._world.url}/{found.path}",
            "clone_url": f"{self._world.url}/{found.path}.git",
            "permissions": may,
        } | structs.asdict(found.settings)

    def pull(self, repository: Repository, found: Pull, viewer: Account) -> Shape:
        base = {"label": found.base, "ref": found.base, "sha": repository.origin.ref(found.base) or ""}
        head = {"label": found.branch, "ref": found.branch, "sha": found.head}
        return {
            "id": found.number,
            "number": found.number,
            "user": user(found.author),
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
            "base": base | {"repo_id": repository.id, "repo": self.repository(repository, viewer)},
            "head": head | {"repo_id": found.source.id, "repo": self.repository(found.source, viewer)},
            "created_at": moment(found.created),
            "updated_at": moment(found.updated),
        }

    def branch(self, repository: Repository, name: str, viewer: Account) -> Shape:
        """The rule's name is told to those alone who administer the repository."""
        rule = rule_of(repository, name)
        writes = self._world.may(repository, viewer, "write")
        shown = {"name": name, "commit": {"id": repository.origin.tip(name)}, "protected": rule is not None}
        if rule is None:
            return shown | UNPROTECTED | {"user_can_push": writes, "user_can_merge": writes}
        listed = not rule.enable_push_whitelist or viewer.login in rule.push_whitelist_usernames
        merges = not rule.enable_merge_whitelist or viewer.login in rule.merge_whitelist_usernames
        return shown | {
            "required_approvals": rule.required_approvals,
            "enable_status_check": rule.enable_status_check,
            "status_check_contexts": rule.status_check_contexts,
            "user_can_push": writes and rule.enable_push and listed,
            "user_can_merge": writes and merges,
            "effective_branch_protection_name": rule.rule_name if self._world.may(repository, viewer, "admin") else "",
        }

    def status(self, found: Status) -> Shape:
        return {
            "id": found.id,
            "status": found.state,
            "target_url": found.target_url,
            "description": found.description,
            "context": found.context,
            "creator": user(found.creator),
            "created_at": moment(found.created),
            "updated_at": moment(found.created),
        }


def comment(found: Comment) -> Shape:
    return {
        "id": found.id,
        "user": user(found.author),
        "body": found.body,
        "created_at": moment(found.created),
        "updated_at": moment(found.updated),
    }


def issue(found: Blocker) -> Shape:
    """What a pull request is among issues."""
    repository, pull = found.repository, found.pull
    place = {"id": repository.id, "name": repository.name, "owner": repository.owner.login}
    return {
        "id": pull.number,
        "number": pull.number,
        "user": user(pull.author),
        "title": pull.title,
        "state": pull.state,
        "repository": place | {"full_name": repository.path},
    }


def reaction(found: Reaction, author: Account) -> Shape:
    return {"user": user(author), "content": found.content}


def review(found: Review, pull: Pull) -> Shape:
    return {
        "id": found.id,
        "user": user(found.author),
        "state": found.state,
        "body": found.body,
        "commit_id": found.commit,
        "stale": found.commit != pull.head,
        "official": found.official,
        "dismissed": False,
    }


def hook(found: Hook) -> Shape:
    config = {"url": found.url, "content_type": found.content_type}
    return {"id": found.id, "type": "gitea", "config": config, "events": found.events, "active": found.active}


RIGHTS = {"admin": "admin", "push": "write", "pull": "read"}
UNPROTECTED: Shape = {
    "required_approvals": 0,
    "enable_status_check": False,
    "status_check_contexts": [],
    "effective_branch_protection_name": "",
}
