"""Shows GitHub as a host, and does there what the service wants done."""

from collections.abc import Collection, Mapping, Sequence

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.github import (
    checks,
    comments,
    drafts,
    examining,
    hooks,
    merging,
    names,
    people,
    protection,
    pulls,
    refs,
    wire,
)  # fmt: skip
from mergeyard.adapters.forges.github.callers import Callers
from mergeyard.adapters.forges.github.installations import NotInstalled
from mergeyard.adapters.forges.github.ties import Ties
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Draft, Finding, Merge, MergeOutcome, News, Thread
from mergeyard.ports.git import Remote


class GithubHost:
    def __init__(self, access: Access, clock: Clock) -> None:
        self.name = access.name
        self.provider = "github"
        self.has_groups = False
        self.checks_from = access.checks_from
        self.forge = self
        self.look_every = access.look_every
        self.judges_mergeability = True
        self.every_head_ref = names.EVERY_HEAD
        self._access = access
        self._clock = clock
        self._callers = Callers(access, clock)
        self._ties = Ties(clock)

    # As a host of repositories.

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        return merging.refuses(method, landing)

    def same_name(self, repo: Repo) -> Repo:
        return names.same_name(repo)

    async def remote(self, repo: Repo) -> Remote:
        return await self._callers.remote(repo)

    def head_ref(self, number: PrNumber) -> str:
        return names.head_ref(number)

    def number_of(self, ref: str) -> PrNumber | None:
        return names.number_of(ref)

    def pull_page(self, repo: Repo, number: PrNumber) -> str | None:
        return f"{self._access.pages}/{repo.owner}/{repo.name}/pull/{number}"

    async def knows(self, repo: Repo) -> bool:
        if not names.is_name(repo):
            return False
        try:
            caller = await self._callers.of(repo)
        except NotInstalled:
            return False
        return await caller.get(names.place(repo), wire.Repository) is not None

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:
        return await pulls.shown(await self._callers.of(repo), repo, number, self._clock)

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        required = await self._ties.read(await self._callers.of(repo), self.same_name(repo), branch)
        return protection.contexts(required)

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await refs.refs(await self._callers.of(repo), repo, branches, self._clock.now())

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        """GitHub sees by itself that the head is part of the target, and nothing makes it see sooner."""

    async def close(self) -> None:
        await self._callers.close()

    # As a forge.

    def heard(self, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
        hooks.verify(self._access.webhook_secret, headers, body)
        return hooks.news(self.name, headers, body)

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:
        caller = await self._callers.of(repo)
        tied = await self._ties.of(caller, self.same_name(repo), branch)
        return await checks.statuses(caller, repo, sha, self._clock, tied)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await merging.merge(await self._callers.of(repo), repo, merge)

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:
        return await merging.merged_as(await self._callers.of(repo), repo, merge)

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:
        return await comments.thread(await self._callers.of(repo), repo, number, since)

    async def may_write(self, repo: Repo, person: str, branch: str) -> bool:  # noqa: ARG002
        return await people.may_write(await self._callers.of(repo), repo, person)

    async def may_maintain(self, repo: Repo, person: str) -> bool:
        return await people.may_maintain(await self._callers.of(repo), repo, person)

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:
        caller = await self._callers.of(repo)
        known = comment or await comments.said_already(caller, repo, number, text, await self._callers.name())
        changed = known and await comments.say_again(caller, repo, known, text)
        return changed or await comments.say_first(caller, repo, number, text)

    async def react(self, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None:  # noqa: ARG002
        await comments.react(await self._callers.of(repo), repo, comment, "rocket" if fine else "confused")

    async def unlabel(self, repo: Repo, number: PrNumber, label: str) -> None:
        await comments.unlabel(await self._callers.of(repo), repo, number, label)

    async def show_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await checks.show(await self._callers.of(repo), repo, sha, status)

    async def open_draft(self, repo: Repo, draft: Draft) -> None:
        await drafts.open_draft(await self._callers.of(repo), repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await drafts.close_draft(await self._callers.of(repo), repo, branch)

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        return await examining.findings(self._callers, self._access, repo)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:
        return await examining.branch_warnings(self._callers, repo, branch)
