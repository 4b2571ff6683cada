"""Has the host show as merged what was merged, before anybody is told of it."""

import asyncio
from collections.abc import Sequence

import structlog

from mergeyard.domain.runs import Member, Step
from mergeyard.ports.host import HostTrouble
from mergeyard.service.site import Site

log = structlog.get_logger()


async def mark_merged(site: Site, members: Sequence[Member], steps: Sequence[Step]) -> None:
    """The commits are on the target, and that is what counts: a mark that cannot be set keeps nobody waiting, and is
    tried again when the landing is in the journal."""
    await asyncio.gather(*(_mark(site, member, step) for member, step in zip(members, steps, strict=False)))


async def _mark(site: Site, member: Member, step: Step) -> None:
    try:
        await site.host.mark_merged(site.repo, member.number, member.head, step.commit)
    except HostTrouble as trouble:
        log.warning("it is merged, but not shown so", repo=str(site.repo), number=member.number, words=str(trouble))
