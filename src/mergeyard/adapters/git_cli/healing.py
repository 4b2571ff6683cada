"""Heals mirrors without a hand: clears away what stands in the way, and gives up one that is broken.

A mirror holds nothing that the remote does not have, so one that git's own check finds damaged is simply removed, and
made anew as on a machine that never had it. What the check does not confirm is left as it is.
"""

import asyncio
from pathlib import Path
from time import monotonic
from uuid import uuid4

import structlog

from mergeyard.adapters.git_cli.damage import speaks_of_damage
from mergeyard.adapters.git_cli.leftovers import BROKEN, clear_away, remove
from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.ports.git import GitTrouble

log = structlog.get_logger()

CHECK = ("fsck", "--full", "--no-dangling", "--no-progress", "--no-reflogs")
SECONDS_BETWEEN_CHECKS = 60.0
"""Of one mirror: reading all of it is dear, and so is fetching it again and again onto a disk that breaks it."""
WORDS = 300


class Healer:
    def __init__(self) -> None:
        self._checked_at: dict[Path, float] = {}

    async def heal(self, repository: Repository) -> None:
        """Afterwards it is sound, as far as anybody can tell, or gone."""
        complaint = repository.complaint
        if not repository.has_head:
            log.warning("a mirror is gone and is made anew", mirror=str(repository.path))
            await discard(repository.path)
            return
        await asyncio.to_thread(clear_away, repository.path)
        if speaks_of_damage(complaint) and self._may_check(repository.path):
            found = await finding(repository)
            if found:
                log.warning("a mirror is damaged and is made anew", mirror=str(repository.path), words=found)
                await discard(repository.path)

    def _may_check(self, path: Path) -> bool:
        last = self._checked_at.get(path)
        if last is not None and monotonic() - last < SECONDS_BETWEEN_CHECKS:
            return False
        self._checked_at[path] = monotonic()
        return True


async def finding(repository: Repository) -> str:
    """What git finds broken when it reads everything; nothing when all is there, or when it could not look."""
    try:
        answer = await repository.call(*CHECK, seconds=SECONDS_OVER_THE_NETWORK, may_be_cut=True)
    except GitTrouble:
        return ""
    words = f"{answer.out.decode(errors='replace')}\n{answer.words}".strip()
    return words[:WORDS] if speaks_of_damage(words) else ""


async def discard(path: Path) -> None:
    """Out of sight first, which needs no room on the disk: nobody finds half of it while the rest takes long."""
    if path.exists():
        aside = path.rename(path.with_name(f"{BROKEN}{uuid4().hex}"))
        await asyncio.to_thread(remove, aside)
