"""Gitea as a host, and as a forge: every room of this folder behind one door."""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.git_login import signed_in
from mergeyard.adapters.forges.gitea import drafts, hooks, refs, statuses
from mergeyard.adapters.forges.gitea.doubts import Doubts
from mergeyard.adapters.forges.gitea.examining import Examining
from mergeyard.adapters.forges.gitea.merging import Merging
from mergeyard.adapters.forges.gitea.places import path_of, place_of, place_of_pull
from mergeyard.adapters.forges.gitea.protection import branch_of, lacks_reviews, required
from mergeyard.adapters.forges.gitea.pulls import as_shown, is_open
from mergeyard.adapters.forges.gitea.repositories import is_there, must_be_there
from mergeyard.adapters.forges.gitea.talking import Talking
from mergeyard.adapters.forges.gitea.wire import Pull
from mergeyard.adapters.forges.limits import Limits
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Draft, Finding, Merge, MergeOutcome, News, Thread
from mergeyard.ports.git import Remote
from mergeyard.ports.host import HostTrouble

YES, NO = "+1", "-1"


class GiteaHost:
    def __init__(self, access: Access, clock: Clock) -> None:
        self.name = access.name
        self.provider = "gitea"
        self.has_groups = False
        self.checks_from = access.checks_from
        self.forge = self
        self.look_every = access.look_every
        self.judges_mergeability = True
        self.every_head_ref = refs.EVERY_HEAD
        self._access = access
        self._caller = Caller(access.api, self._credentials, Limits(access.name, clock))
        self._doubts = Doubts(clock)
        self._merging = Merging(self._caller, self._doubts)
        self._talking = Talking(self._caller)
        self._examining = Examining(access, self._caller)

    def same_name(self, repo: Repo) -> Repo:
        return replace(repo, owner=repo.owner.lower(), name=repo.name.lower())

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> None:
        """It merges in all these ways, and can be told of whatever was pushed that it was a merge."""

    async def remote(self, repo: Repo) -> Remote:
        return signed_in(f"{self._access.pages}/{path_of(repo)}.git", self._token(), "x-oauth-basic")

    def head_ref(self, number: PrNumber) -> str:
        return refs.head_ref(number)

    def number_of(self, ref: str) -> PrNumber | None:
        return refs.number_of(ref)

    def pull_page(self, repo: Repo, number: PrNumber) -> str:
        return f"{self._access.pages}/{path_of(repo)}/pulls/{number}"

    async def knows(self, repo: Repo) -> bool:
        try:
            place_of(repo)
        except HostTrouble:
            return False
        return await is_there(self._caller, repo)

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:
        pull = await self._caller.get_now(place_of_pull(repo, number), Pull)
        if pull is None:
            await must_be_there(self._caller, repo)
            return None
        return as_shown(pull, await self._mergeability(repo, pull))

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        return required(await branch_of(self._caller, repo, branch))

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        return await refs.refs_that_tell(self._caller, self._doubts, repo, branches)

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        await self._merging.mark(repo, number, head, commit)

    async def close(self) -> None:
        await self._caller.close()

    # The forge.

    def heard(self, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
        hooks.check_signature(self._access.webhook_secret, headers, body)
        return tuple(hooks.news_in(self.name, headers, body))

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await statuses.statuses_of(self._caller, repo, sha, self._access.pages)

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        return await self._merging.merge(repo, merge)

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:
        return await self._merging.merged_as(repo, merge)

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:
        return await self._talking.thread(repo, number, since)

    async def may_write(self, repo: Repo, person: str, branch: str) -> bool:  # noqa: ARG002
        return await self._talking.may_write(repo, person)

    async def may_maintain(self, repo: Repo, person: str) -> bool:
        return await self._talking.may_maintain(repo, person)

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:
        return await self._talking.say(repo, number, text, comment)

    async def react(self, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None:  # noqa: ARG002
        await self._talking.react(repo, comment, YES if fine else NO)

    async def unlabel(self, repo: Repo, number: PrNumber, label: str) -> None:
        await self._talking.unlabel(repo, number, label)

    async def show_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        await statuses.show_status(self._caller, repo, sha, status)

    async def open_draft(self, repo: Repo, draft: Draft) -> None:
        await drafts.open_draft(self._caller, repo, draft)

    async def close_draft(self, repo: Repo, branch: str) -> None:
        await drafts.close_draft(self._caller, repo, branch)

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        return await self._examining.examine(repo)

    async def _mergeability(self, repo: Repo, pull: Pull) -> Mergeability:
        judged = self._doubts.judge(repo, pull)
        undecided = judged in (Mergeability.MERGEABLE, Mergeability.UNKNOWN) and is_open(pull)
        if undecided and await lacks_reviews(self._caller, repo, pull):
            return Mergeability.NOT_MERGEABLE
        return judged

    async def _credentials(self) -> Mapping[str, str]:
        return {"authorization": f"token {self._token()}"}

    def _token(self) -> str:
        if self._access.token is None:
            raise HostTrouble(f"nothing opens {self.name}: give it a token")
        return self._access.token
