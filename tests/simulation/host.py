"""The host's and the forge's port, as one replica reaches them: with a way there and back, and old news on bad days."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status
from mergeyard.ports.forge import Draft, Finding, Merge, MergeOutcome, News, Thread
from mergeyard.ports.git import Remote
from mergeyard.ports.host import ChecksFrom, HostTrouble
from tests.simulation.hosting import REPO, Hosting, View
from tests.simulation.process import Line
from tests.simulation.weather import Family, Weather

T = TypeVar("T")
USUAL = 0.1


class SimHost:
    name = REPO.host
    has_groups = False
    every_head_ref = "refs/pull/*/head"

    def __init__(self, hosting: Hosting, line: Line, weather: Weather, *, has_forge: bool) -> None:
        self.hosting = hosting
        self.provider = "github" if has_forge else "git"
        self.forge = SimForge(self) if has_forge else None
        self.checks_from = ChecksFrom.HOST if has_forge else ChecksFrom.API
        self.look_every = 20_000 if has_forge else 0
        self.judges_mergeability = has_forge
        self._line = line
        self._weather = weather

    @property
    def seconds(self) -> int:
        return self._line.seconds

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        if self.forge and landing is LandingMethod.PROVIDER_MERGE and method is MergeMethod.REBASE:
            return "it rebases otherwise than git"
        return None

    def same_name(self, repo: Repo) -> Repo:
        return repo

    async def remote(self, repo: Repo) -> Remote:
        return Remote(str(repo))

    def head_ref(self, number: PrNumber) -> str:
        return f"refs/pull/{number}/head"

    def number_of(self, ref: str) -> PrNumber | None:
        return PrNumber(int(ref.split("/")[2])) if ref.startswith("refs/pull/") else None

    def pull_page(self, repo: Repo, number: PrNumber) -> str | None:  # noqa: ARG002
        return None

    async def knows(self, repo: Repo) -> bool:
        return repo == REPO

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:  # noqa: ARG002
        return await self.read(lambda view: self._judged(view.pulls.get(number)))

    def _judged(self, pull: PullRequest | None) -> PullRequest | None:
        if pull is None or self.forge is None:
            return pull
        return replace(pull, mergeability=self.hosting.mergeability(pull))

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:  # noqa: ARG002
        return await self.read(lambda view: view.refs)

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:  # noqa: ARG002
        await self.act(lambda: self.hosting.mark_merged(number, head))

    async def close(self) -> None:
        """Nothing is open."""

    async def read(self, show: Callable[[View], T]) -> T:
        def read() -> T:
            stale = self._weather.strikes(Family.STALE_READS)
            return show(self.hosting.stale_view() if stale else self.hosting.view())

        return await self.act(read)

    async def act(self, effect: Callable[[], T]) -> T:
        return await self._line.call(effect, USUAL, HostTrouble, Family.REFUSALS, Family.LOST_REPLIES)


class SimForge:
    def __init__(self, host: SimHost) -> None:
        self._host = host

    def heard(self, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
        raise NotImplementedError(f"messages come as news here: {headers} {body}")

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await self._host.read(lambda view: tuple(view.statuses.get(sha, {}).values()))

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:  # noqa: ARG002
        return await self._host.act(lambda: self._host.hosting.merge(merge, self._host.seconds))

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:  # noqa: ARG002
        return await self._host.read(lambda view: view.merged.get((merge.number, merge.head)))

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:  # noqa: ARG002
        return Thread(frozenset(), ())

    async def may_write(self, repo: Repo, person: str, branch: str) -> bool:  # noqa: ARG002
        return True

    async def may_maintain(self, repo: Repo, person: str) -> bool:  # noqa: ARG002
        return True

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:  # noqa: ARG002
        return await self._host.act(lambda: self._host.hosting.say(number, text, comment))

    async def react(self, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None:
        """Nobody commands here."""

    async def unlabel(self, repo: Repo, number: PrNumber, label: str) -> None:
        """Nobody labels here."""

    async def show_status(self, repo: Repo, sha: Sha, status: Status) -> None:  # noqa: ARG002
        await self._host.act(lambda: self._host.hosting.set_status(sha, status))

    async def open_draft(self, repo: Repo, draft: Draft) -> None:
        """Nobody looks at drafts here."""

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """Nobody looks at drafts here."""

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:  # noqa: ARG002
        return ()
