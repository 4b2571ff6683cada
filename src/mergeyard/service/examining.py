"""Finds out whether everything is there that is needed at a host, and does not wait for ever."""

import asyncio
from collections.abc import Sequence

from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import Host, HostTrouble

SECONDS = 20.0


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
