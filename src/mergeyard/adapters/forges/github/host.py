"""GitHub as an implementation of the ports `Host` and `Forge`: comments, labels and the roles of their authors."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.checks import Checks
from mergeyard.adapters.forges.github.diagnostics import Diagnostics
from mergeyard.adapters.forges.github.merging import Merging
from mergeyard.adapters.forges.github.pull_requests import PullRequests
from mergeyard.adapters.forges.http import MISSING_STATUSES, ForgeClient, quote_segment
from mergeyard.domain.ids import PullRequestNumber, Repo

FULL_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}\Z)(?!.*\.git\Z)[A-Za-z0-9._-]{1,100}")


class GithubHost(Diagnostics, Checks, PullRequests, Merging):
    provider = "github"
    forge_name = "GitHub"
    page_path = "pull"
    comments_query: ClassVar[Mapping[str, int]] = {"per_page": 100}

    def _is_valid_full_name(self, name: str) -> bool:
        return FULL_NAME_PATTERN.fullmatch(name) is not None

    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        """From the pull request, which the caller has just read: that GET is answered from the cache."""
        payload = await client.get(f"/pulls/{number}", wire.PullRequestPayload)
        return payload and [label.name for label in payload.labels]

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        reply = await (await self._client_for(repo)).send("DELETE", f"/issues/{number}/labels/{quote_segment(label)}")
        reply.raise_for_status(allowed=MISSING_STATUSES)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return (await rules.read_role(await self._client_for(repo), user)).can_write

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return (await rules.read_role(await self._client_for(repo), user)).can_maintain
