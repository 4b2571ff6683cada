"""Shows the projects of a GitLab and their merge requests as a host."""

from collections.abc import Collection, Mapping, Sequence

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.git_login import signed_in
from mergeyard.adapters.forges.gitlab import (
    checks,
    comments,
    drafts,
    hooks,
    merging,
    naming,
    people,
    projects,
    pulls,
    refs,
    signatures,
)
from mergeyard.adapters.forges.gitlab.examining import Examiner
from mergeyard.adapters.forges.limits import Limits
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Draft, Finding, Merge, MergeOutcome, News, Thread
from mergeyard.ports.git import Remote


class GitlabHost:
    """Speaks GitLab's API, version 4: `access.api` ends with `/api/v4`."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self.name = access.name
        self.provider = "gitlab"
        self.has_groups = True
        self.checks_from = access.checks_from
        self.look_every = access.look_every
        self.judges_mergeability = True
        self.every_head_ref = naming.EVERY_HEAD
        self.forge = self
        self._access = access
        self._clock = clock
        self._caller = Caller(access.api, self._credentials, Limits(access.name, clock))
        self._ourselves = people.Ourselves(self._caller)
        self._examiner = Examiner(access, self._caller, clock)

    async def _credentials(self) -> Mapping[str, str]:
        return {"private-token": self._access.token or ""}

    # Where things are

    def same_name(self, repo: Repo) -> Repo:
        return naming.same_name(repo)

    async def remote(self, repo: Repo) -> Remote:
        return signed_in(f"{self._access.pages}/{naming.path_of(repo)}.git", "oauth2", self._access.token or "")

    def head_ref(self, number: PrNumber) -> str:
        return naming.head_ref(number)

    def number_of(self, ref: str) -> PrNumber | None:
        return naming.number_of(ref)

    def pull_page(self, repo: Repo, number: PrNumber) -> str | None:
        return f"{self._access.pages}/{naming.path_of(repo)}/-/merge_requests/{number}"

    # What is there

    async def knows(self, repo: Repo) -> bool:
        return await projects.knows(self._caller, repo)

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:
        return await pulls.read_pull(self._caller, repo, number)

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await refs.read_refs(self._caller, repo, branches)

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return await checks.required_statuses(self._caller, repo)

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await checks.read_statuses(self._caller, repo, sha)

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:
        return await comments.read_thread(self._caller, repo, number, since)

    async def may_write(self, repo: Repo, person: str, branch: str) -> bool:
        return await people.may_merge(self._caller, repo, person, branch)

    async def may_maintain(self, repo: Repo, person: str) -> bool:
        return await people.may_maintain(self._caller, repo, person)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        return await self._examiner.examine(repo)

    def heard(self, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
        signatures.verify(self._access.webhook_secret, headers, body, self._clock.now())
        return hooks.news_in(self.name, body)

    # What is merged

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        return merging.refuses(method, landing)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await merging.merge(self._caller, repo, merge)

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:
        return await merging.merged_as(self._caller, repo, merge)

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        """GitLab sees by itself, a moment later, that a head was pushed into its target."""

    # What is said

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:
        return await comments.say(self._caller, repo, number, text, comment, await self._ourselves.known())

    async def react(self, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None:
        await comments.react(self._caller, repo, number, comment, fine=fine)

    async def unlabel(self, repo: Repo, number: PrNumber, label: str) -> None:
        await comments.unlabel(self._caller, repo, number, label)

    async def show_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await checks.show_status(self._caller, repo, sha, status)

    async def open_draft(self, repo: Repo, draft: Draft) -> None:
        await drafts.open_draft(self._caller, repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await drafts.close_draft(self._caller, repo, branch)

    async def close(self) -> None:
        await self._caller.close()
