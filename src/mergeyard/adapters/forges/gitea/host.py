"""Gitea and Forgejo as an implementation of the ports `Host` and `Forge`."""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from mergeyard.adapters.forges.gitea import checks, pull_requests, webhooks
from mergeyard.adapters.forges.gitea.comments import Comments
from mergeyard.adapters.forges.gitea.diagnostics import Diagnostics
from mergeyard.adapters.forges.gitea.merging import Merger
from mergeyard.adapters.forges.gitea.wire import (
    PullRequestPayload,
    ensure_repository_visible,
    has_repository,
    pull_request_api_path,
    repo_api_path,
    to_full_name,
)
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, build_git_remote
from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest, Finding, ForgeNotice, HostUnavailable, Merge, MergeOutcome, Thread
from mergeyard.ports.git import Remote

SUCCESS_REACTION, FAILURE_REACTION = "+1", "-1"


class GiteaHost:
    def __init__(self, access: ForgeConfig, clock: Clock) -> None:
        self.name = access.name
        self.provider = "gitea"
        self.has_groups = False
        self.checks_from = access.checks_from
        self.forge = self
        self.poll_interval_ms = access.poll_interval_ms
        self.reports_mergeability = True
        self.head_ref_pattern = pull_requests.HEAD_REF_PATTERN
        self._access = access
        self._client = ForgeClient(access.api_url, self._credentials, RateLimits(access.name, clock))
        self._mergeability_tracker = pull_requests.MergeabilityTracker(clock)
        self._merger = Merger(self._client, self._mergeability_tracker)
        self._comments = Comments(self._client)
        self._diagnostics = Diagnostics(access, self._client)

    def canonical_repo(self, repo: Repo) -> Repo:
        return replace(repo, owner=repo.owner.lower(), name=repo.name.lower())

    def unsupported_reason(self, method: MergeMethod, landing: LandingMethod) -> None:
        """Gitea supports all methods, and any pushed commit can be marked as the merge of a pull request."""

    async def remote(self, repo: Repo) -> Remote:
        return build_git_remote(f"{self._access.web_url}/{to_full_name(repo)}.git", self._token(), "x-oauth-basic")

    def head_ref(self, number: PullRequestNumber) -> str:
        return pull_requests.head_ref(number)

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return pull_requests.pull_request_number_of(ref)

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str:
        return f"{self._access.web_url}/{to_full_name(repo)}/pulls/{number}"

    async def has_repository(self, repo: Repo) -> bool:
        try:
            repo_api_path(repo)
        except HostUnavailable:
            return False
        return await has_repository(self._client, repo)

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        payload = await self._client.get_urgent(pull_request_api_path(repo, number), PullRequestPayload)
        if payload is None:
            await ensure_repository_visible(self._client, repo)
            return None
        return pull_requests.to_pull_request(payload, await self._derive_mergeability(repo, payload))

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        return pull_requests.select_required_contexts(await pull_requests.read_branch(self._client, repo, branch))

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await pull_requests.read_refs(self._client, self._mergeability_tracker, repo, branches)

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        return repos

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> None:
        await self._merger.mark_merged(repo, number, head, commit)

    async def close(self) -> None:
        await self._client.close()

    # Forge

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        webhooks.verify_signature(self._access.webhook_secret, headers, body)
        return tuple(webhooks.parse_notices(self.name, headers, body))

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await checks.read_statuses(self._client, repo, sha, self._access.web_url)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await self._merger.merge(repo, merge)

    async def find_merge_commit(self, repo: Repo, merge: Merge) -> Sha | None:
        return await self._merger.find_merge_commit(repo, merge)

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        return await self._comments.read_thread(repo, number, since)

    async def can_write(self, repo: Repo, user: str, branch: str) -> bool:  # noqa: ARG002
        return await self._comments.can_write(repo, user)

    async def can_maintain(self, repo: Repo, user: str) -> bool:
        return await self._comments.can_maintain(repo, user)

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        return await self._comments.put_comment(repo, number, text, comment)

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:  # noqa: ARG002
        await self._comments.react(repo, comment, SUCCESS_REACTION if success else FAILURE_REACTION)

    async def remove_label(self, repo: Repo, number: PullRequestNumber, label: str) -> None:
        await self._comments.remove_label(repo, number, label)

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await checks.set_status(self._client, repo, sha, status)

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        await pull_requests.open_draft(self._client, repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await pull_requests.close_draft(self._client, repo, branch)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        return await self._diagnostics.diagnose(repo)

    async def _derive_mergeability(self, repo: Repo, payload: PullRequestPayload) -> Mergeability:
        """Gitea's `mergeable` ignores missing reviews, so they are checked here."""
        mergeability = self._mergeability_tracker.assess(repo, payload)
        can_be_mergeable = mergeability in (Mergeability.MERGEABLE, Mergeability.UNKNOWN) and pull_requests.is_open(
            payload
        )
        if can_be_mergeable and await pull_requests.has_missing_reviews(self._client, repo, payload):
            return Mergeability.NOT_MERGEABLE
        return mergeability

    async def _credentials(self) -> Mapping[str, str]:
        return {"authorization": f"token {self._token()}"}

    def _token(self) -> str:
        if self._access.token is None:
            raise HostUnavailable(f"{self.name} has no token: configure one")
        return self._access.token
