"""Surveys a repository: brings the heads that are new, and finds out which of all of them the targets hold.

After the first time its cost follows what changed, and not how many pull requests there ever were.
"""

from collections.abc import Collection, Mapping

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.service.landscape import Held, Landscape
from mergeyard.service.site import Site

MOST_NEW_COMMITS = 1000
MOST_NEW_HEADS = 1000
"""With more than either, every head is read or compared anew."""


async def survey(site: Site, land: Landscape, targets: Collection[str], heads: Mapping[PrNumber, Sha]) -> None:
    """`heads` are those that the host names. Of a forge that is not all there ever were: those that wait count too."""
    waiting = {stay.number for stay in site.keeper.queue.submissions.values()}
    refs = await site.mirror.fetch([*_wanted(site, land, heads, waiting), *targets])
    found = {number: head for ref, head in refs.items() if (number := site.host.number_of(ref)) is not None}
    held = {target: await _held(site, land, target, refs[target], found) for target in targets if target in refs}
    land.take_in(found, held)
    land.forget_all_but(heads, waiting, found)


def _wanted(
    site: Site, land: Landscape, heads: Mapping[PrNumber, Sha], waiting: Collection[PrNumber]
) -> Collection[str]:
    new = land.unseen(heads) if land.surveyed else {*heads, *waiting}
    if site.host.forge is None and (not land.surveyed or len(new) > MOST_NEW_HEADS):
        return [site.host.every_head_ref]
    return [site.host.head_ref(number) for number in new]


async def _held(site: Site, land: Landscape, target: str, tip: Sha, found: Mapping[PrNumber, Sha]) -> Held:
    before = land.held.get(target)
    came = None if before is None else await _came(site, before.tip, tip)
    if before is None or came is None or len(found) > MOST_NEW_HEADS:
        return Held(tip, await site.mirror.contained(tip, [site.host.every_head_ref]))
    new = await site.mirror.contained(tip, [site.host.head_ref(number) for number in found])
    return Held(tip, before.heads | new | land.among(came))


async def _came(site: Site, before: Sha, tip: Sha) -> Collection[Sha] | None:
    """What is part of the target since; None when it was moved elsewhere, or very far."""
    if before == tip:
        return ()
    if not await site.mirror.holds(tip, before):
        return None
    commits = await site.mirror.shas(tip, without=[before], limit=MOST_NEW_COMMITS)
    return commits if len(commits) < MOST_NEW_COMMITS else None
