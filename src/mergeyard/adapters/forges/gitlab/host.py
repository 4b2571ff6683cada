"""GitLab as an implementation of the ports `Host` and `Forge`."""

from collections.abc import Collection, Mapping, Sequence

from mergeyard.adapters.forges.gitlab import checks, comments, merge_requests, merging, webhooks, wire
from mergeyard.adapters.forges.gitlab.comments import OwnAccount, can_maintain, can_write
from mergeyard.adapters.forges.gitlab.diagnostics import Diagnostics
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, build_git_remote
from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest, Finding, ForgeNotice, Merge, MergeOutcome, Thread
from mergeyard.ports.git import Remote


class GitlabHost:
    """Uses version 4 of GitLab's API: the configured API URL ends with `/api/v4`."""

    def __init__(self, access: ForgeConfig, clock: Clock) -> None:
        self.name = access.name
        self.provider = "gitlab"
        self.has_groups = True
        self.checks_from = access.checks_from
        self.poll_interval_ms = access.poll_interval_ms
        self.reports_mergeability = True
        self.head_ref_pattern = wire.HEAD_REF_PATTERN
        self.forge = self
        self._access = access
        self._clock = clock
        self._client = ForgeClient(access.api_url, self._credentials, RateLimits(access.name, clock))
        self._account = OwnAccount(self._client)
        self._diagnostics = Diagnostics(access, self._client, clock)

    async def _credentials(self) -> Mapping[str, str]:
        return {"private-token": self._access.token or ""}

    # Host: names and addresses

    def canonical_repo(self, repo: Repo) -> Repo:
        return wire.canonical_repo(repo)

    async def remote(self, repo: Repo) -> Remote:
        return build_git_remote(
            f"{self._access.web_url}/{wire.to_full_name(repo)}.git", "oauth2", self._access.token or ""
        )

    def head_ref(self, number: PullRequestNumber) -> str:
        return wire.head_ref(number)

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return wire.pull_request_number_of(ref)

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:
        return f"{self._access.web_url}/{wire.to_full_name(repo)}/-/merge_requests/{number}"

    # Reading

    async def has_repository(self, repo: Repo) -> bool:
        return await wire.has_repository(self._client, repo)

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        return await merge_requests.read_pull_request(self._client, repo, number)

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await merge_requests.read_refs(self._client, repo, branches)

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        return repos

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return await checks.read_required_statuses(self._client, repo)

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await checks.read_statuses(self._client, repo, sha)

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        return await comments.read_thread(self._client, repo, number, since)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:
        return await can_write(self._client, repo, user, branch)

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return await can_maintain(self._client, repo, user)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        return await self._diagnostics.diagnose(repo)

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        webhooks.verify_signature(self._access.webhook_secret, headers, body, self._clock.now())
        return webhooks.parse_notices(self.name, body)

    # Merging

    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        return merging.unsupported_reason(method, landing)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await merging.merge(self._client, repo, merge)

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        return await merging.find_merge_commit(self._client, repo, merge)

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> None:
        """Nothing to do: GitLab detects by itself that the head is part of the target branch."""

    # Comments, statuses and drafts

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        return await comments.put_comment(self._client, repo, number, text, comment, await self._account.read_user())

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:
        await comments.react(self._client, repo, number, comment, success=success)

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        await comments.remove_label(self._client, repo, number, label)

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await checks.set_status(self._client, repo, sha, status)

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        await merge_requests.open_draft(self._client, repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await merge_requests.close_draft(self._client, repo, branch)

    async def close(self) -> None:
        await self._client.close()
