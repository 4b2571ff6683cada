"""Has hosts show as merged what landed and could not be shown so at once."""

import asyncio
from collections.abc import Sequence

import structlog

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import DAY, MINUTE, later
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostRefused, HostTrouble
from mergeyard.ports.store import Store, StoredEntry
from mergeyard.service import recalling, shelving
from mergeyard.service.errors import Refused
from mergeyard.service.site import Sites
from mergeyard.service.telling.following import Halfway, Pace
from mergeyard.service.verifying.recorded import LANDED

log = structlog.get_logger()

PATIENCE = DAY
"""After which one that cannot be shown so holds up nobody else's any longer."""


def may_have_landed(before: Queue | None, now: Queue) -> bool:
    return before is None or before.landing is not now.landing


PACE = Pace(at_a_time=500, longest_wait=MINUTE, heeds=may_have_landed)


class Marking:
    name = "marks"

    def __init__(self, store: Store, clock: Clock, sites: Sites) -> None:
        self._store = store
        self._clock = clock
        self._sites = sites

    async def tell(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """All that can be shown now is, whichever of them cannot."""
        records = (shelving.decode_record(entry.body) for entry in entries)
        landed = [record for record in records if isinstance(record, PrChanged) and record.reason in LANDED]
        settled = await asyncio.gather(*(self._settle(key.repo, queue, record) for record in landed))
        if not all(settled):
            raise Halfway(None, f"{settled.count(False)} of {len(settled)} are merged, but not shown so")

    async def _settle(self, repo: Repo, queue: QueueId, landed: PrChanged) -> bool:
        """Whether it is shown so, or never will be."""
        stay = await recalling.stay(self._store, queue, landed.ticket)
        if stay is None or stay.merged_sha is None:
            return True
        try:
            await self._sites.host(repo.host).mark_merged(repo, stay.number, stay.pull.head, stay.merged_sha)
        except (HostTrouble, Refused) as trouble:
            log.warning("it is merged, but not shown so", repo=str(repo), number=stay.number, words=str(trouble))
            return isinstance(trouble, HostRefused) or self._clock.now() >= later(landed.at, PATIENCE)
        return True
