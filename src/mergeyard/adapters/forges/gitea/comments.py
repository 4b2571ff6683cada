"""Reads the labels and comments of a pull request and the roles of users, and writes our own comments."""

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.http import ForgeClient, format_timestamp, to_instant
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import forge
from mergeyard.ports.forge import HostUnavailable, Thread

MAINTAINER_ROLES = ("admin", "owner")
WRITER_ROLES = ("write", *MAINTAINER_ROLES)
NOT_FOUND = 404


class Comments:
    def __init__(self, client: ForgeClient) -> None:
        self._client = client
        self._login: str | None = None

    async def read_thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        labels = await self._read_labels(repo, number)
        comments = await self._read_comments(repo, number, {"since": format_timestamp(since)})
        return Thread(frozenset(label.name for label in labels), tuple(map(_to_comment, comments)))

    async def can_write(self, repo: Repo, user: str) -> bool:
        return await self._read_role(repo, user) in WRITER_ROLES

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return await self._read_role(repo, user) in MAINTAINER_ROLES

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        existing = comment or await self._find_own_comment(repo, number, text)
        if existing is not None:
            reply = await self._client.send("PATCH", _comment_api_path(repo, existing), {"body": text})
            if reply.status != NOT_FOUND:
                return str(reply.raise_for_status().decode(wire.CreatedComment).id)
        reply = await self._client.send("POST", f"{wire.issue_api_path(repo, number)}/comments", {"body": text})
        return str(reply.raise_for_status().decode(wire.CreatedComment).id)

    async def react(self, repo: Repo, comment: str, reaction: str) -> None:
        reply = await self._client.send("POST", f"{_comment_api_path(repo, comment)}/reactions", {"content": reaction})
        reply.raise_for_status(allowed=(NOT_FOUND,))

    async def remove_label(self, repo: Repo, number: PullRequestNumber, name: str) -> None:
        for label in await self._read_labels(repo, number):
            if label.name == name:
                reply = await self._client.send("DELETE", f"{wire.issue_api_path(repo, number)}/labels/{label.id}")
                reply.raise_for_status(allowed=(NOT_FOUND,))

    async def _read_own_login(self) -> str:
        if self._login is None:
            user = await self._client.get("/user", wire.User)
            if user is None:
                raise HostUnavailable("Gitea does not report the account of our token")
            self._login = user.login
        return self._login

    async def _read_role(self, repo: Repo, user: str) -> str | None:
        """An empty name is that of a deleted account, which has no role."""
        if not user:
            return None
        role = await self._client.get(
            f"{wire.repo_api_path(repo)}/collaborators/{wire.quote_segment(user)}/permission", wire.Role
        )
        return role and role.permission

    async def _find_own_comment(self, repo: Repo, number: PullRequestNumber, text: str) -> str | None:
        """Our comment with the same first line. It exists without its id being stored if the response was lost."""
        login, marker = await self._read_own_login(), _first_line(text)
        for comment in await self._read_comments(repo, number, {}):
            if comment.user and comment.user.login == login and _first_line(comment.body) == marker:
                return str(comment.id)
        return None

    async def _read_labels(self, repo: Repo, number: PullRequestNumber) -> list[wire.Label]:
        labels = await self._client.get_all(f"{wire.issue_api_path(repo, number)}/labels", list[wire.Label])
        if not labels:
            await wire.ensure_repository_visible(self._client, repo)
        return labels

    async def _read_comments(self, repo: Repo, number: PullRequestNumber, query: dict[str, str]) -> list[wire.Comment]:
        comments = await self._client.get_all(
            f"{wire.issue_api_path(repo, number)}/comments", list[wire.Comment], query
        )
        return sorted(comments, key=lambda comment: (comment.created_at, comment.id))


def _comment_api_path(repo: Repo, comment: str) -> str:
    return f"{wire.repo_api_path(repo)}/issues/comments/{wire.quote_segment(comment)}"


def _to_comment(comment: wire.Comment) -> forge.Comment:
    author = comment.user.login if comment.user else ""
    return forge.Comment(id=str(comment.id), author=author, text=comment.body, at=to_instant(comment.created_at))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()
