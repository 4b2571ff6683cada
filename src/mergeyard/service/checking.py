"""Runs the checks of repositories whose host has no CI: keeps the runner in step with what is under test."""

from urllib.parse import quote

import structlog

from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import ChecksFrom, HostTrouble
from mergeyard.ports.runner import Job, Runner
from mergeyard.service.background import Background, insist
from mergeyard.service.repository_config import FILE, Broken, parse, read_file
from mergeyard.service.site import Sites
from mergeyard.service.statuses import Statuses
from mergeyard.service.turn import Keeper

log = structlog.get_logger()

BETWEEN_ATTEMPTS = 1000


class Checking:
    def __init__(
        self, runner: Runner, sites: Sites, statuses: Statuses, clock: Clock, background: Background, public_url: str
    ) -> None:
        self._runner = runner
        self._sites = sites
        self._statuses = statuses
        self._clock = clock
        self._background = background
        self._public_url = public_url
        self._keepers: dict[RunId, Keeper] = {}
        """Whose run is whose, of those that were given to the runner."""

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        if not keeper.has_other_runs_than(before):
            return
        if self._sites.host(keeper.key.repo.host).checks_from is not ChecksFrom.RUN:
            return
        for run in keeper.queue.runs_in_progress:
            if run.id not in self._keepers:
                self._keepers[run.id] = keeper
                self._background.start(self._begin(keeper, run))
        self._stop([run for run, owner in self._keepers.items() if owner is keeper and _over(keeper, run)])

    def leave(self, keeper: Keeper) -> None:
        self._stop([run for run, owner in self._keepers.items() if owner is keeper])

    def _stop(self, runs: list[RunId]) -> None:
        for run in runs:
            del self._keepers[run]
            self._background.start(self._runner.stop(run))

    async def pass_a_result_on(self) -> None:
        result = await self._runner.next_result()
        keeper = self._keepers.get(result.run)
        if keeper is not None:
            words, repo = result.description, keeper.key.repo
            await self._report(repo, result.run, result.commit, result.check, result.state, words)

    async def _begin(self, keeper: Keeper, run: Run) -> None:
        while not _over(keeper, run.id) and run.id in self._keepers:
            try:
                await self._give_to_runner(keeper, run)
                break
            except (GitTrouble, HostTrouble) as trouble:
                log.warning("the checks cannot start", run=run.id, words=str(trouble))
                await self._clock.sleep(BETWEEN_ATTEMPTS)

    async def _give_to_runner(self, keeper: Keeper, run: Run) -> None:
        repo, tip = keeper.key.repo, keeper.queue.target.tip
        commands = {} if tip is None else await self._commands(repo, run.base) | await self._commands(repo, tip)
        for name in run.required:
            if name not in commands:
                words = f"[checks] of {FILE} on the target branch has no command for it"
                await self._report(repo, run.id, run.tip, name, StatusState.ERROR, words)
        wanted = {name: command for name, command in commands.items() if name in run.required}
        if wanted and not _over(keeper, run.id):
            job = Job(run=run.id, repo=repo, commit=run.tip, commands=wanted, timeout=run.timeout)
            await self._runner.start(job)

    async def _commands(self, repo: Repo, tip: Sha) -> dict[str, str]:
        """As a commit of the target has them, so that no pull request chooses how it is checked: its head, and for what
        was required when the run was planned and is gone since, the one that it stands upon."""
        mirror = await self._sites.mirror(repo)
        config = parse(await read_file(mirror, tip))
        return {} if isinstance(config, Broken) else config.checks

    async def _report(
        self, repo: Repo, run: RunId, commit: Sha, check: str, state: StatusState, description: str
    ) -> None:
        url = f"{self._public_url}/runs/{run}/checks/{quote(check, safe='')}"
        status = Status(context=check, state=state, at=self._clock.now(), url=url, description=description)
        await insist(self._clock, lambda: self._statuses.report_on_duty(repo, commit, status))


def _over(keeper: Keeper, run: RunId) -> bool:
    known = keeper.queue.runs.get(run)
    return known is None or known.status is not RunStatus.IN_PROGRESS
