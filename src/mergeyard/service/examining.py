"""Finds out whether everything is there that is needed at a host, and does not wait for ever."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct

from mergeyard.domain.instants import MINUTE, Instant, later
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import Host, HostTrouble
from mergeyard.service.background import Background
from mergeyard.service.site import Sites

log = structlog.get_logger()

SECONDS = 20.0
WARNINGS_REFRESH_AFTER = 5 * MINUTE
"""Rules of a branch change rarely, and every open page of a queue asks for their warnings every few seconds."""


class KnownWarnings(Struct, frozen=True):
    warnings: Sequence[str]
    read_at: Instant


class BranchWarnings:
    """What the Git hosts warn of at the target branches of queues, for pages that must not wait for a Git host."""

    def __init__(self, sites: Sites, clock: Clock, background: Background) -> None:
        self._sites = sites
        self._clock = clock
        self._background = background
        self._known: dict[QueueKey, KnownWarnings] = {}

    def of(self, key: QueueKey) -> Sequence[str]:
        """As read last; when that is too long ago, they are read again in the background, for a later call."""
        known = self._known.get(key, KnownWarnings((), Instant(0)))
        now = self._clock.now()
        if now >= later(known.read_at, WARNINGS_REFRESH_AFTER) or key not in self._known:
            # Marked as read before the reading, so that other page views do not start it again.
            self._known[key] = KnownWarnings(known.warnings, now)
            self._background.start(self._read(key))
        return known.warnings

    async def _read(self, key: QueueKey) -> None:
        """Keeps what was known where the Git host does not answer."""
        forge = self._sites.host(key.repo.host).forge
        if forge is None:
            return
        try:
            async with asyncio.timeout(SECONDS):
                warnings = await forge.branch_warnings(key.repo, key.branch)
        except (HostTrouble, TimeoutError) as error:
            log.warning("branch_warnings_unread", repo=str(key.repo), branch=key.branch, error=str(error))
            return
        self._known[key] = KnownWarnings(warnings, self._clock.now())


async def examined(host: Host, repo: Repo | None, seconds: float = SECONDS) -> Sequence[Finding]:
    """What the host needs, and what is needed in this repository, each with what to do about it."""
    try:
        async with asyncio.timeout(seconds):
            return await _findings(host, repo)
    except TimeoutError:
        return [Finding(False, f"{host.name} did not answer within {seconds:g} seconds. Ask again later.")]
    except HostTrouble as trouble:
        return [Finding(False, f"{trouble}. Check its address in the settings, and ask again.")]


async def _findings(host: Host, repo: Repo | None) -> Sequence[Finding]:
    if host.forge is not None:
        return await host.forge.examine(repo)
    if repo is None:
        return [Finding(True, f"{host.name} is a folder of plain repositories, and needs nothing more.")]
    if await host.knows(repo):
        return [Finding(True, f"{repo} is there.")]
    return [Finding(False, f"There is no repository {repo}: make it below the root of {host.name}.")]
