"""Reads labels, comments and the roles of users, and writes our own comments and reactions."""

from urllib.parse import quote

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.wire import ensure_repository_visible, quote_segment, repo_api_path
from mergeyard.adapters.forges.http import ForgeClient, format_timestamp, to_instant
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import Comment, HostUnavailable, Thread

GONE_STATUSES = (404, 410)


async def read_thread(client: ForgeClient, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
    """The labels are part of the pull request, which the caller has just read: that GET is answered from the cache."""
    pull_request = await client.get(f"{repo_api_path(repo)}/pulls/{number}", wire.PullRequestPayload)
    if pull_request is None:
        raise HostUnavailable(f"pull request {number} is not visible to us in {repo}")
    query = {"since": format_timestamp(since), "per_page": 100}
    comments = await client.get_all(f"{repo_api_path(repo)}/issues/{number}/comments", list[wire.Comment], query)
    labels = frozenset(label.name for label in pull_request.labels)
    return Thread(labels, tuple(_to_comment(comment) for comment in comments))


async def edit_comment(client: ForgeClient, repo: Repo, comment: str, text: str) -> str | None:
    """Replaces the text of our comment; None if the comment is gone."""
    reply = await client.send(
        "PATCH", f"{repo_api_path(repo)}/issues/comments/{quote_segment(comment)}", {"body": text}
    )
    return comment if reply.raise_for_status(allowed=GONE_STATUSES).is_success else None


async def create_comment(client: ForgeClient, repo: Repo, number: PullRequestNumber, text: str) -> str:
    reply = await client.send("POST", f"{repo_api_path(repo)}/issues/{number}/comments", {"body": text})
    return str(reply.raise_for_status().decode(wire.Comment).id)


async def find_own_comment(
    client: ForgeClient, repo: Repo, number: PullRequestNumber, text: str, login: str
) -> str | None:
    """Our comment with the same first line. It exists without its id being stored if the response was lost."""
    path = f"{repo_api_path(repo)}/issues/{number}/comments"
    marker = text.partition("\n")[0]
    for comment in await client.get_all(path, list[wire.Comment], {"per_page": 100}):
        if comment.user == wire.User(login) and comment.body.startswith(marker):
            return str(comment.id)
    return None


async def react(client: ForgeClient, repo: Repo, comment: str, content: str) -> None:
    path = f"{repo_api_path(repo)}/issues/comments/{quote_segment(comment)}/reactions"
    reply = await client.send("POST", path, {"content": content})
    reply.raise_for_status(allowed=GONE_STATUSES)


async def remove_label(client: ForgeClient, repo: Repo, number: PullRequestNumber, label: str) -> None:
    reply = await client.send("DELETE", f"{repo_api_path(repo)}/issues/{number}/labels/{quote(label, safe='')}")
    reply.raise_for_status(allowed=GONE_STATUSES)


def _to_comment(comment: wire.Comment) -> Comment:
    author = comment.user.login if comment.user else ""
    return Comment(id=str(comment.id), author=author, text=comment.body, at=to_instant(comment.created_at))


ADMIN, MAINTAIN, WRITE = "admin", "maintain", "write"


async def can_write(client: ForgeClient, repo: Repo, user: str) -> bool:
    role = await _read_role(client, repo, user)
    return role is not None and role.permission in (ADMIN, WRITE)


async def can_maintain(client: ForgeClient, repo: Repo, user: str) -> bool:
    role = await _read_role(client, repo, user)
    return role is not None and (role.permission == ADMIN or role.role_name == MAINTAIN)


async def _read_role(client: ForgeClient, repo: Repo, user: str) -> wire.Role | None:
    """An empty name is that of a deleted account, which has no role."""
    if not user:
        return None
    role = await client.get(f"{repo_api_path(repo)}/collaborators/{quote_segment(user)}/permission", wire.Role)
    if role is None:
        await ensure_repository_visible(client, repo)
    return role
