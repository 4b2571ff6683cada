"""Gitea and Forgejo as an implementation of the ports `Host` and `Forge`: comments, labels, accounts, roles."""

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.gitea.diagnostics import Diagnostics
from mergeyard.adapters.forges.gitea.merging import Merging
from mergeyard.adapters.forges.http import MISSING_STATUSES, ForgeClient, quote_segment
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.ports.forge import HostUnavailable, PullRequestText

MAINTAINER_ROLES = ("admin", "owner")
WRITER_ROLES = ("write", *MAINTAINER_ROLES)

MAX_TITLE_CHARS, MAX_BODY_CHARS, MAX_AUTHOR_CHARS = 1_000, 64 * 1024, 300

FULL_NAME_PATTERN = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9._-]{1,100}/(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


class GiteaHost(Merging, Diagnostics):
    provider = "gitea"
    forge_name = "Gitea"
    page_path = "pulls"
    success_reaction, failure_reaction = "+1", "-1"

    def _is_valid_full_name(self, name: str) -> bool:
        return FULL_NAME_PATTERN.fullmatch(name) is not None

    async def _credentials(self) -> Mapping[str, str]:
        return {"authorization": f"token {self._token()}"}

    async def _git_credentials(self, repo: Repo) -> tuple[str, str]:  # noqa: ARG002
        return self._token(), "x-oauth-basic"

    def _token(self) -> str:
        if self._config.token is None:
            raise HostUnavailable(f"{self.name} has no token: configure one")
        return self._config.token

    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        payload = await client.get(f"/pulls/{number}", wire.PullRequestPayload)
        return payload and [label.name for label in payload.labels or ()]

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        client, path = await self._client_for(repo), f"/issues/{number}/labels"
        for found in await client.get_all(path, list[wire.Label]):
            if found.name == label:
                reply = await client.send("DELETE", f"{path}/{found.id}")
                reply.raise_for_status(allowed=MISSING_STATUSES)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return await self._read_role(repo, user) in WRITER_ROLES

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return await self._read_role(repo, user) in MAINTAINER_ROLES

    async def _read_role(self, repo: Repo, user: str) -> str | None:
        """An empty name is that of a deleted account, which has no role."""
        if not user:
            return None
        client = await self._client_for(repo)
        role = await client.get(f"/collaborators/{quote_segment(user)}/permission", wire.Role)
        return role and role.permission

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:
        """Gitea shows a no-reply address for an account that hides its own, except to an administrator of the server,
        who must not publish it."""
        payload = await (await self._client_for(repo)).get(f"/pulls/{number}", wire.PullRequestTextPayload)
        if payload is None:
            return None
        author = payload.user or wire.Author()
        if (await self._read_own_account()).is_admin:
            author = replace(author, email="")
        return PullRequestText(
            title=payload.title[:MAX_TITLE_CHARS],
            body=payload.body[:MAX_BODY_CHARS],
            author_name=(author.full_name or author.login)[:MAX_AUTHOR_CHARS],
            author_email=author.email if len(author.email) <= MAX_AUTHOR_CHARS else "",
        )

    async def own_address(self, repo: Repo) -> str | None:  # noqa: ARG002
        return (await self._read_own_account()).email or None

    async def _read_own_account(self) -> wire.Author:
        return await self._client.get("/user", wire.Author, urgent=True) or wire.Author()
