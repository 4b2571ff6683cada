"""Finds out whether a commit that calls itself a landing is one: of longer ago, or of another queue."""

from collections.abc import Iterable, Mapping

from mergeyard.domain.ids import QueueId, Sha
from mergeyard.domain.pulls import Submission
from mergeyard.ports.store import Store
from mergeyard.service import shelving
from mergeyard.service.verifying.claims import Claim
from mergeyard.service.verifying.recorded import LANDED

MAX_SUBMISSIONS = 1000
"""Of one pull request, the last: it lands with one of its last ones."""


async def known_otherwise(
    store: Store, queue: QueueId, others: Iterable[QueueId], claims: Mapping[Sha, Claim]
) -> frozenset[Sha]:
    elsewhere = tuple(others)
    known = set[Sha]()
    for commit, claim in claims.items():
        landed = await _landed(store, queue, claim)
        recorded = any(stay.merged_sha == commit for stay in landed)
        if recorded or any([await _came_from(store, other, claim) for other in elsewhere]):
            known.add(commit)
    return frozenset(known)


async def _came_from(store: Store, queue: QueueId, claim: Claim) -> bool:
    """Somebody brought over, or picked, what another branch had got in the right way."""
    if claim.run is not None:
        return await store.had_run(queue, claim.run)
    return bool(await _landed(store, queue, claim))


async def _landed(store: Store, queue: QueueId, claim: Claim) -> list[Submission]:
    stays = map(shelving.decode_stay, await store.stays_of(queue, claim.number, MAX_SUBMISSIONS))
    return [stay for stay in stays if stay.reason in LANDED]
