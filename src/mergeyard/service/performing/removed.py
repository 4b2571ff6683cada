"""Finds commits that somebody took off the target and that must not come back."""

from collections.abc import AsyncIterator
from contextlib import suppress

from mergeyard.domain.ids import Sha
from mergeyard.domain.landing import Landed
from mergeyard.ports.git import MissingObject, OutputTooLargeError
from mergeyard.ports.store import Store
from mergeyard.service import recalling, wording
from mergeyard.service.site import Site


async def holds_removed_commit(site: Site, head: Sha, forbidden: frozenset[Sha]) -> bool:
    """What the target holds again by now does not count."""
    if not forbidden:
        return False
    tip = await site.tip()
    commits = await site.mirror.shas(head, without=[] if tip is None else [tip])
    return not forbidden.isdisjoint(commits)


async def removed_since(site: Site, store: Store, known_tip: Sha | None, tip: Sha) -> frozenset[Sha]:
    if known_tip is None or known_tip == tip:
        return frozenset()
    try:
        return await brought(site, store, known_tip, tip)
    except MissingObject:
        return await _removed_from_the_unknown(site, store, known_tip, tip)
    except OutputTooLargeError:
        return frozenset([commit async for commit in _removed_of_ours(site, store, tip)])


async def brought(site: Site, store: Store, tip: Sha, before: Sha) -> frozenset[Sha]:
    """The commits with which one tip goes beyond another; where they were made of a pull request, its own as well: with
    these it would come again. A forge that rebases does not write down which head it was."""
    commits = await site.mirror.commits(tip, without=[before])
    shas = frozenset(commit.sha for commit in commits)
    found = set(shas)
    for head in {head for commit in commits if (head := wording.head_of(commit.message))}:
        with suppress(MissingObject, OutputTooLargeError):
            found |= await _beyond(site, head, before)
    for landed in site.keeper.queue.target.history:
        if landed.commit in shas:
            found |= await _brought_by(site, store, landed, before)
    return frozenset(found)


async def _removed_from_the_unknown(site: Site, store: Store, known_tip: Sha, tip: Sha) -> frozenset[Sha]:
    """Whoever took over may never have had the old tip. Where the host does not have it any more either, what we landed
    is all that can be known of."""
    try:
        await site.mirror.fetch_commit(known_tip)
        return await brought(site, store, known_tip, tip)
    except MissingObject:
        return frozenset([commit async for commit in _removed_of_ours(site, store, tip)])


async def _removed_of_ours(site: Site, store: Store, tip: Sha) -> AsyncIterator[Sha]:
    for landed in site.keeper.queue.target.history:
        if not await site.mirror.holds(tip, landed.commit):
            yield landed.commit
            for commit in await _brought_by(site, store, landed, tip):
                yield commit


async def _brought_by(site: Site, store: Store, landed: Landed, tip: Sha) -> frozenset[Sha]:
    stay = None if landed.ticket is None else await recalling.stay(store, site.keeper.id, landed.ticket)
    if stay is None:
        return frozenset()
    await site.bring(stay.number, stay.pull.head)
    try:
        return await _beyond(site, stay.pull.head, tip)
    except (MissingObject, OutputTooLargeError):
        return frozenset()


async def _beyond(site: Site, commit: Sha, tip: Sha) -> frozenset[Sha]:
    return frozenset(await site.mirror.shas(commit, without=[tip]))
