"""Sweeps up test branches whose runs nobody knows any more: what a crash between two effects may leave behind.

The mirror lets go of what leads to branches and pull requests that are gone.
"""

import asyncio

import structlog

from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.naming_branches import TEST_BRANCHES
from mergeyard.service.performing import clearing, drafting
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

log = structlog.get_logger()

INTERVAL = 5 * 60_000


class Sweeper:
    def __init__(self, yard: Yard, sites: Sites, sight: Sight, duties: Duties) -> None:
        self._yard = yard
        self._sites = sites
        self._sight = sight
        self._duties = duties
        self._repos = set[Repo]()
        """Also those whose last queue is gone: its branches may outlive it for a moment."""

    def follow(self, keeper: Keeper, _: Queue | None) -> None:
        self._repos.add(keeper.key.repo)

    def leave(self, keeper: Keeper) -> None:
        """What a queue left behind is swept after its end; what is somebody else's duty is passed over."""

    async def sweep_all(self) -> None:
        self._repos |= {*self._duties.repos, *(keeper.key.repo for keeper in self._yard)}
        await asyncio.gather(*(self.sweep(repo) for repo in self._repos if self._duties.covers(repo)))

    async def sweep(self, repo: Repo) -> None:
        """A run is known before its branch is pushed, so first the branches are read and then the runs."""
        try:
            mirror = await self._sites.mirror(repo)
            branches = await clearing.stray_branches(mirror)
            known = {run for keeper in await self._yard.of_repo_now(repo) for run in keeper.queue.runs}
            for branch in await clearing.sweep(mirror, known, branches):
                await drafting.close_draft_of(self._sites.host(repo.host), repo, branch)
            await mirror.forget(TEST_BRANCHES, unless=branches.__contains__)
            await self._sight.forget_others(repo, self._sites.host(repo.host), mirror)
        except (GitTrouble, HostTrouble, Refused, StoreTrouble) as trouble:
            log.warning("test branches cannot be swept", repo=str(repo), words=str(trouble))
