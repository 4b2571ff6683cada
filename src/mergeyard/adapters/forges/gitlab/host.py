"""GitLab as an implementation of the ports `Host` and `Forge`: notes, labels and the roles of their authors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from mergeyard.adapters.forges import webhooks
from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.gitlab.checks import Checks
from mergeyard.adapters.forges.gitlab.diagnostics import Diagnostics
from mergeyard.adapters.forges.gitlab.merge_requests import MergeRequests
from mergeyard.adapters.forges.gitlab.merging import Merging
from mergeyard.adapters.forges.http import ForgeClient, quote_segment, to_instant
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import Comment, ForgeNotice, HostRefused

PER_PAGE = 100
MAX_PAGES = 20
"""Notes before the last 2,000 are not read."""

FULL_NAME_PATTERN = re.compile(
    r"(?:(?!-)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)/){1,21}"
    r"(?!-)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)"
)
"""A group, the twenty levels of subgroups that GitLab allows, and the project."""


class GitlabHost(MergeRequests, Checks, Merging, Diagnostics):
    """Uses version 4 of GitLab's API: the configured API URL ends with `/api/v4`."""

    provider = "gitlab"
    forge_name = "GitLab"
    refs_prefix = "refs/merge-requests"
    page_path = "-/merge_requests"
    edit_method = "PUT"
    reactions_path, reaction_member = "award_emoji", "name"
    has_groups = True

    def _is_valid_full_name(self, name: str) -> bool:
        return FULL_NAME_PATTERN.fullmatch(name) is not None

    async def _credentials(self) -> Mapping[str, str]:
        return {"private-token": self._config.token or ""}

    async def _git_credentials(self, repo: Repo) -> tuple[str, str]:  # noqa: ARG002
        return "oauth2", self._config.token or ""

    def _api_path(self, repo: Repo) -> str:
        return f"/projects/{quote(self._full_name(repo), safe='')}"

    def _verify_and_parse(self, secret: str, headers: Mapping[str, str], body: bytes) -> ForgeNotice | None:
        webhooks.verify_gitlab(secret, headers, body, self._clock.now())
        return webhooks.parse_gitlab_notice(self.name, body)

    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        payload = await client.get(f"/merge_requests/{number}", wire.MergeRequest)
        return payload and payload.labels

    async def _read_comments(self, client: ForgeClient, number: PullRequestNumber, since: Instant) -> Sequence[Comment]:
        """Requested newest first, so that pages before `since` are not requested."""
        found = list[wire.Note]()
        for page in range(1, MAX_PAGES + 1):
            query = {"order_by": "created_at", "sort": "desc", "per_page": PER_PAGE, "page": page}
            notes = await client.get(self._comments_path(number), list[wire.Note], query) or []
            found += notes
            if len(notes) < PER_PAGE or to_instant(notes[-1].created_at) < since:
                break
        return [
            Comment(
                id=str(note.id),
                author=wire.get_username(note.author),
                text=note.body,
                at=to_instant(note.created_at),
            )
            for note in sorted(found, key=lambda note: (note.created_at, note.id))
            if not note.system
        ]

    def _comments_path(self, number: PullRequestNumber) -> str:
        return f"/merge_requests/{number}/notes"

    def _comment_path(self, number: PullRequestNumber, comment: str) -> str:
        return f"{self._comments_path(number)}/{quote_segment(comment)}"

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        client = await self._client_for(repo)
        reply = await client.send("PUT", f"/merge_requests/{number}", {"remove_labels": label})
        reply.raise_for_status(allowed=(404,))

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:
        """Whether GitLab lets the user merge into the branch: every Developer, unless a rule protects it."""
        client = await self._client_for(repo)
        member = await _find_member(client, user)
        if member is None or member.access_level < wire.DEVELOPER_LEVEL:
            return False
        access_rules = await _read_access_rules(client, branch)
        return access_rules is None or any([await _grants(self._client, access, member) for access in access_rules])

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        member = await _find_member(await self._client_for(repo), user)
        return member is not None and member.access_level >= wire.MAINTAINER_LEVEL


async def _find_member(client: ForgeClient, user: str) -> wire.Member | None:
    """The membership with the highest role, if the user is a member through several groups."""
    if not user:
        return None
    found = await _search_members(client, "/members/all", user)
    matching = [member for member in found if member.username.lower() == user.lower() and member.state == "active"]
    return max(matching, key=lambda member: member.access_level, default=None)


async def _search_members(client: ForgeClient, path: str, user: str) -> list[wire.Member]:
    return await client.get_all(path, list[wire.Member], {"query": user, "per_page": 100})


async def _read_access_rules(client: ForgeClient, branch: str) -> list[wire.BranchAccess] | None:
    """Alternatives, of which one is sufficient; None if no rule protects the branch, or the rules are not visible to
    us. GitLab applies the most permissive of several rules, and an account that can push can also merge."""
    try:
        rules = await client.get_all("/protected_branches", list[wire.ProtectedBranch], {"per_page": 100})
    except HostRefused:
        return None
    matching = [rule for rule in rules if rule.protects(branch)]
    levels = [level for rule in matching for level in (*rule.merge_access_levels, *rule.push_access_levels)]
    return levels if matching else None


async def _grants(client: ForgeClient, access: wire.BranchAccess, member: wire.Member) -> bool:
    """Level 0 means no one. Level 60 means instance administrators, which the API does not identify: never granted."""
    if access.deploy_key_id is not None:
        return False
    if access.user_id is not None:
        return access.user_id == member.id
    if access.group_id is not None:
        return await _is_in_group(client, access.group_id, member)
    return 0 < (access.access_level or 0) <= member.access_level


async def _is_in_group(client: ForgeClient, group: int, member: wire.Member) -> bool:
    """Also False if the members of the group are not visible to us."""
    try:
        found = await _search_members(client, f"/groups/{group}/members/all", member.username)
    except HostRefused:
        return False
    return any(one.id == member.id and one.state == "active" for one in found)
