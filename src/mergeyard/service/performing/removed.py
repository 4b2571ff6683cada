"""Finds commits that somebody took off the target and that must not come back."""

from mergeyard.domain.ids import Sha
from mergeyard.service.site import Site


async def holds_removed_commit(site: Site, head: Sha, forbidden: frozenset[Sha]) -> bool:
    """What the target holds again by now does not count."""
    if not forbidden:
        return False
    tip = (await site.mirror.fetch([site.target_ref])).get(site.target_ref)
    commits = await site.mirror.commits(head, without=[] if tip is None else [tip])
    return any(commit.sha in forbidden for commit in commits)
