"""GitLab as an implementation of the ports `Host` and `Forge`: notes, labels and the roles of their authors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, urlsplit

from mergeyard.adapters.forges import webhooks
from mergeyard.adapters.forges.gitlab import diagnostics, wire
from mergeyard.adapters.forges.gitlab.diagnostics import Diagnostics
from mergeyard.adapters.forges.gitlab.merge_requests import MergeRequests, read_rules
from mergeyard.adapters.forges.gitlab.merging import Merging
from mergeyard.adapters.forges.host import is_changed
from mergeyard.adapters.forges.http import MISSING_STATUSES, ForgeClient, quote_segment, to_instant
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import Comment, ForgeNotice, HostRefused, PullRequestText

NOTES_QUERY = {"activity_filter": "only_comments", "order_by": "created_at", "sort": "desc", "per_page": 100}
MAX_PAGES = 20
"""Notes before the last 2,000 are not read."""
NOT_EDITABLE_STATUSES = (403, *MISSING_STATUSES)
"""Every new project token has an account of its own, and only Maintainers can edit comments of another account."""

MAX_BODY_CHARS = 64 * 1024
MAX_NAME_CHARS = 255
"""GitLab itself allows this many in titles, names and e-mail addresses."""
GHOST = "ghost"
"""The account that GitLab shows as the author of what a deleted account wrote."""

FULL_NAME_PATTERN = re.compile(
    r"(?:(?!-)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)/){1,21}"
    r"(?!-)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)"
)
"""A group, the twenty levels of subgroups that GitLab allows, and the project."""


class GitlabHost(MergeRequests, Merging, Diagnostics):
    """Uses version 4 of GitLab's API: the configured API URL ends with `/api/v4`."""

    provider = "gitlab"
    forge_name = "GitLab"
    refs_prefix = "refs/merge-requests"
    number_prefix = "!"
    page_path = "-/merge_requests"
    edit_method = "PUT"
    reactions_path, reaction_member = "award_emoji", "name"
    has_groups = True
    moves_heads_first = True
    """A push to the target branch marks a merge request as merged if the head that GitLab has recorded is among the
    pushed commits, and changed something when it was recorded. GitLab records a head some time after its push."""

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

    async def own_address(self, repo: Repo) -> str | None:  # noqa: ARG002
        return self._find_address(await self._read_account())

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:
        payload = await (await self._client_for(repo)).get(f"/merge_requests/{number}", wire.MergeRequest)
        if payload is None:
            return None
        author = payload.author if wire.get_username(payload.author) != GHOST else None
        return PullRequestText(
            title=payload.title[:MAX_NAME_CHARS],
            body=(payload.description or "")[:MAX_BODY_CHARS],
            author_name=(author.name or author.username)[:MAX_NAME_CHARS] if author else "",
            author_email=self._find_address(author) if author else "",
        )

    def _find_address(self, account: wire.User) -> str:
        """An address by which GitLab shows the account with a commit. The last one exists for every account, unless an
        administrator changed its host name."""
        host = urlsplit(self._config.web_url).hostname
        private = f"{account.id}-{account.username}@users.noreply.{host}"
        return (account.commit_email or account.public_email or private)[:MAX_NAME_CHARS]

    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        payload = await client.get(f"/merge_requests/{number}", wire.MergeRequest)
        return payload and payload.labels

    async def _read_comments(self, client: ForgeClient, number: PullRequestNumber, since: Instant) -> Sequence[Comment]:
        """Requested newest first, so that pages before `since` are not requested."""
        found, pages = list[wire.Note](), 0
        async for notes in client.iterate_pages(self._comments_path(number), list[wire.Note], NOTES_QUERY):
            found, pages = found + notes, pages + 1
            if pages == MAX_PAGES or (found and to_instant(found[-1].created_at) < since):
                break
        return [
            Comment(
                id=str(note.id),
                author=wire.get_username(note.author),
                text=note.body,
                at=to_instant(note.created_at),
                is_changed=is_changed(note.created_at, note.updated_at),
            )
            for note in sorted(found, key=lambda note: (note.created_at, note.id))
            if not note.system
        ]

    async def _edit_comment(
        self, client: ForgeClient, number: PullRequestNumber, comment: str, body: Mapping[str, str]
    ) -> bool:
        """False if the comment is gone, or belongs to an account that our token had before."""
        reply = await client.send(self.edit_method, self._comment_path(number, comment), body)
        return reply.raise_for_status(allowed=NOT_EDITABLE_STATUSES).is_success

    def _comments_path(self, number: PullRequestNumber) -> str:
        return f"/merge_requests/{number}/notes"

    def _comment_path(self, number: PullRequestNumber, comment: str) -> str:
        return f"{self._comments_path(number)}/{quote_segment(comment)}"

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        client = await self._client_for(repo)
        reply = await client.send("PUT", f"/merge_requests/{number}", {"remove_labels": label})
        reply.raise_for_status(allowed=(404,))

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:
        """Whether the user can submit: every Developer, unless a rule protects the branch. Then GitLab has to let the
        user merge, or the queue is mandatory: only our account can merge, for every Developer."""
        client = await self._client_for(repo)
        member = await diagnostics.find_member(client, user)
        if member is None or member.access_level < wire.DEVELOPER_LEVEL:
            return False
        try:
            rules = [rule for rule in await read_rules(client) if rule.protects(branch)]
        except HostRefused:
            return True
        return (
            not rules
            or await diagnostics.can_merge(self._client, rules, member)
            or await self._is_queue_mandatory(client, rules)
        )

    async def _is_queue_mandatory(self, client: ForgeClient, rules: Sequence[wire.ProtectedBranch]) -> bool:
        """*Allowed to merge* names at most our account, which can merge. If it cannot, no one can: a frozen branch."""
        account = await self._read_account()
        if diagnostics.grants_merging_to_others(rules, account):
            return False
        member = await diagnostics.find_member(client, account.username)
        return member is not None and await diagnostics.can_merge(self._client, rules, member)

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        member = await diagnostics.find_member(await self._client_for(repo), user)
        return member is not None and member.access_level >= wire.MAINTAINER_LEVEL
