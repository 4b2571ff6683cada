"""What people ask about runs: one of them in detail, and all that were decided in a time."""

from collections.abc import Iterable

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.runs import Member, Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.statuses import Status
from mergeyard.domain.targets import Targets, union
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import Store
from mergeyard.service import recalling, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.naming_branches import BISECTION, test_branch
from mergeyard.service.site import Sites
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard


class TestedPull(Struct, frozen=True):
    number: PrNumber
    title: str
    page: str | None


class Impact(Struct, frozen=True):
    """The targets of everything in the branch, and of only those that the run tests."""

    all: Targets
    tested: Targets


class RunView(Struct, frozen=True, kw_only=True):
    run: Run
    branch: str
    tip: Sha
    base: Sha
    pulls: tuple[TestedPull, ...]
    dependents: tuple[PrNumber, ...]
    statuses: tuple[Status, ...]
    impact: Impact | None
    """None until any targets were uploaded for the repository."""


class ReportedRun(Struct, frozen=True):
    """A run, and all that was reported of it."""

    run: Run
    statuses: tuple[Status, ...]


class DecidedRun(Struct, frozen=True):
    number: PrNumber
    run: Run


class Runs:
    def __init__(self, yard: Yard, sites: Sites) -> None:
        self._yard = yard
        self._sites = sites

    @property
    def _store(self) -> Store:
        return self._yard.store

    async def show(self, key: QueueKey, name: str) -> RunView:
        keeper = await self._yard.keeper(key)
        run = await self._find(keeper, RunId(name.removesuffix(BISECTION)))
        if run is None or run.started_at is None:
            words = f"The queue for {key} has no test run {name[:100]}: see `testRunId` of a submitted pull request."
            raise Refused(Code.TEST_RUN_NOT_FOUND, words)
        return RunView(
            run=run,
            branch=test_branch(run),
            tip=run.tip,
            base=run.tested_upon,
            pulls=tuple([await self._tested(keeper, member) for member in run.tested]),
            dependents=tuple(member.number for member in run.beneath),
            statuses=tuple(await self._store.statuses(key.repo, run.tip)),
            impact=await self._impact(keeper, run),
        )

    async def results(
        self, key: QueueKey, since: Instant, until: Instant, offset: int, take: int
    ) -> tuple[list[DecidedRun], int]:
        """A page of results, one per decided run and pull request that it tested, the latest first; and how many
        results there are altogether."""
        keeper = await self._yard.keeper(key)
        page = await self._store.results(keeper.id, since, until, offset, take)
        runs = map(shelving.decode_run, page.runs)
        found = [DecidedRun(member.number, run) for run in runs for member in run.tested]
        return found[page.skipped : page.skipped + take], page.total

    async def reported(self, key: QueueKey, names: Iterable[RunId]) -> tuple[ReportedRun, ...]:
        """Those of them that have begun, in this order."""
        keeper = await self._yard.keeper(key)
        runs = [await self._find(keeper, name) for name in names]
        return tuple(
            [
                ReportedRun(run, tuple(await self._store.statuses(key.repo, run.tip)))
                for run in runs
                if run is not None and run.started_at is not None
            ]
        )

    async def find_by_id(self, name: RunId, token: Token) -> tuple[Keeper, Run] | None:
        """Among those that the token may see."""
        stored = await self._store.queue_of_run(name)
        if stored is None or not token.sees(stored.key.repo):
            return None
        keeper = await self._yard.bring(stored)
        run = await self._find(keeper, name)
        return None if run is None else (keeper, run)

    async def _find(self, keeper: Keeper, name: RunId) -> Run | None:
        known = keeper.queue.runs.get(name)
        if known is not None:
            return None if known.status is RunStatus.PREPARING else known
        return await recalling.run(self._store, keeper.id, name)

    async def _tested(self, keeper: Keeper, member: Member) -> TestedPull:
        live = keeper.queue.submissions.get(member.ticket)
        stay = live or await recalling.stay(self._store, keeper.id, member.ticket)
        repo = keeper.key.repo
        page = self._sites.host(repo.host).pull_page(repo, member.number)
        return TestedPull(member.number, "" if stay is None else stay.pull.title, page)

    async def _impact(self, keeper: Keeper, run: Run) -> Impact | None:
        if not await self._store.any_targets(keeper.key.repo):
            return None
        return Impact(await self._union(keeper, run.stack), await self._union(keeper, run.tested))

    async def _union(self, keeper: Keeper, members: Iterable[Member]) -> Targets:
        """Of those whose targets are known."""
        stated = [await recalling.targets(self._store, keeper.id, member.number, member.head) for member in members]
        return union([targets for targets in stated if targets is not None])
