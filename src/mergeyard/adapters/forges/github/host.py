"""GitHub as an implementation of the ports `Host` and `Forge`."""

from collections.abc import Collection, Mapping, Sequence

from mergeyard.adapters.forges.github import (
    checks,
    comments,
    diagnostics,
    merging,
    pull_requests,
    rules,
    webhooks,
    wire,
)
from mergeyard.adapters.forges.github.auth import AppNotInstalled, GithubClients
from mergeyard.adapters.forges.github.checks import CheckApps
from mergeyard.adapters.forges.github.comments import can_maintain, can_write
from mergeyard.adapters.forges.github.wire import (
    HEAD_REF_PATTERN,
    canonical_repo,
    head_ref,
    is_valid_name,
    pull_request_number_of,
    repo_api_path,
)
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest, Finding, ForgeNotice, Merge, MergeOutcome, Thread
from mergeyard.ports.git import Remote


class GithubHost:
    def __init__(self, access: ForgeConfig, clock: Clock) -> None:
        self.name = access.name
        self.provider = "github"
        self.has_groups = False
        self.checks_from = access.checks_from
        self.forge = self
        self.poll_interval_ms = access.poll_interval_ms
        self.reports_mergeability = True
        self.head_ref_pattern = HEAD_REF_PATTERN
        self._access = access
        self._clock = clock
        self._clients = GithubClients(access, clock)
        self._check_apps = CheckApps(clock)

    # Host

    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        return merging.unsupported_reason(method, landing)

    def canonical_repo(self, repo: Repo) -> Repo:
        return canonical_repo(repo)

    async def remote(self, repo: Repo) -> Remote:
        return await self._clients.build_remote(repo)

    def head_ref(self, number: PullRequestNumber) -> str:
        return head_ref(number)

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return pull_request_number_of(ref)

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:
        return f"{self._access.web_url}/{repo.owner}/{repo.name}/pull/{number}"

    async def has_repository(self, repo: Repo) -> bool:
        if not is_valid_name(repo):
            return False
        try:
            client = await self._clients.for_repo(repo)
        except AppNotInstalled:
            return False
        return await client.get(repo_api_path(repo), wire.Repository) is not None

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        return await pull_requests.read_pull_request(await self._clients.for_repo(repo), repo, number, self._clock)

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        required = await self._check_apps.refresh(await self._clients.for_repo(repo), self.canonical_repo(repo), branch)
        return rules.select_required_contexts(required)

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await pull_requests.read_refs(await self._clients.for_repo(repo), repo, branches, self._clock.now())

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        return repos

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> None:
        """Nothing to do: GitHub detects by itself that the head is part of the target branch."""

    async def close(self) -> None:
        await self._clients.close()

    # Forge

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        webhooks.verify_signature(self._access.webhook_secret, headers, body)
        return webhooks.parse_notices(self.name, headers, body)

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:
        client = await self._clients.for_repo(repo)
        apps_by_check = await self._check_apps.for_branch(client, self.canonical_repo(repo), branch)
        return await checks.read_statuses(client, repo, sha, self._clock, apps_by_check)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await merging.merge(await self._clients.for_repo(repo), repo, merge)

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        return await merging.find_merge_commit(await self._clients.for_repo(repo), repo, merge)

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        return await comments.read_thread(await self._clients.for_repo(repo), repo, number, since)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return await can_write(await self._clients.for_repo(repo), repo, user)

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return await can_maintain(await self._clients.for_repo(repo), repo, user)

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        client = await self._clients.for_repo(repo)
        existing = comment or await comments.find_own_comment(
            client, repo, number, text, await self._clients.read_login()
        )
        edited = existing and await comments.edit_comment(client, repo, existing, text)
        return edited or await comments.create_comment(client, repo, number, text)

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:  # noqa: ARG002
        await comments.react(await self._clients.for_repo(repo), repo, comment, "rocket" if success else "confused")

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        await comments.remove_label(await self._clients.for_repo(repo), repo, number, label)

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await checks.set_status(await self._clients.for_repo(repo), repo, sha, status)

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        await pull_requests.open_draft(await self._clients.for_repo(repo), repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await pull_requests.close_draft(await self._clients.for_repo(repo), repo, branch)

    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        return await diagnostics.diagnose(self._clients, self._access, repo)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:
        return await diagnostics.find_branch_warnings(self._clients, repo, branch)
