"""Verifies the last landings of a queue: reads the records, then the host, compares them, and tells what differs."""

import asyncio
from weakref import WeakKeyDictionary

import structlog

from mergeyard.domain.events import LandingsDoubted, TargetTouched
from mergeyard.domain.instants import SECOND
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.writes import Write
from mergeyard.service.measuring import LANDINGS_VERIFIED, MISMATCHES
from mergeyard.service.site import Sites
from mergeyard.service.turn import Keeper
from mergeyard.service.verifying.comparing import Circumstances, commits_of_all, compare, strangers
from mergeyard.service.verifying.known import known_otherwise
from mergeyard.service.verifying.recorded import last_landings
from mergeyard.service.verifying.shown import read_target
from mergeyard.service.verifying.verdicts import Report
from mergeyard.service.yard import Yard

log = structlog.get_logger()

PATIENCE = 20 * SECOND
"""For the queue to look at its target."""


class Verifier:
    def __init__(self, yard: Yard, sites: Sites) -> None:
        self._yard = yard
        self._sites = sites
        self._one_at_a_time = WeakKeyDictionary[Keeper, asyncio.Lock]()

    async def verify(self, key: QueueKey, last: int) -> Report:
        """For whoever asks. What differs pauses the queue, just as if we had come upon it ourselves."""
        keeper = await self._yard.keeper(key)
        report = await self.examine(keeper, last)
        await self.tell(keeper, report)
        return report

    async def examine(self, keeper: Keeper, last: int) -> Report:
        """Nobody is accused by a single reading: the queue looks at its target first, and then all is read again."""
        async with self._one_at_a_time.setdefault(keeper, asyncio.Lock()):
            report = await self._compare(keeper, last)
            if report.mismatches:
                await self._have_target_looked_at(keeper)
                report = (await self._compare(keeper, last)).agreeing_with(report)
        LANDINGS_VERIFIED.inc(len(report.landings))
        return report

    async def tell(self, keeper: Keeper, report: Report, *proof: Write) -> None:
        """With the proof of duty, where somebody found it on duty."""
        known = frozenset(keeper.queue.target.doubted)
        fresh = [found for found in report.mismatches if found.name not in known]
        if not fresh:
            return
        await keeper.tell_on_duty(LandingsDoubted(mismatches=tuple(fresh)), proof=proof)
        for found in fresh:
            MISMATCHES.labels(found.doubt).inc()
            log.error("what landed is not as recorded", queue=str(keeper.key), doubt=found.doubt, words=found.words)

    async def _compare(self, keeper: Keeper, last: int) -> Report:
        """In this order: what is recorded must be on the target, and what is on the target and not recorded yet must
        be on its way still, or be recorded by now."""
        store, repo = self._yard.store, keeper.key.repo
        landings = await last_landings(store, keeper.id, repo, last)
        if not landings:
            return Report()
        shown = await read_target(await self._sites.of(keeper), landings)
        queue = (await self._yard.keeper(keeper.key)).queue
        on_their_way = () if queue.landing is None else queue.landing.members
        claims = strangers(shown.history, commits_of_all(landings, shown.history))
        others = [other for other in await store.queues_ever(repo) if other != keeper.id] if claims else ()
        beside = Circumstances(
            removed=queue.target.removed,
            landing_now=frozenset(member.number for member in on_their_way),
            known=await known_otherwise(store, keeper.id, others, claims),
        )
        return compare(landings, shown, beside)

    async def _have_target_looked_at(self, keeper: Keeper) -> None:
        """What people take off the target is their right, as soon as the queue has seen it."""
        await keeper.tell(TargetTouched())
        looked = asyncio.create_task(keeper.until(lambda queue: not queue.target.look))
        late = asyncio.create_task(self._yard.clock.sleep(PATIENCE))
        try:
            await asyncio.wait([looked, late], return_when=asyncio.FIRST_COMPLETED)
            if not looked.done():
                raise HostTrouble(f"{keeper.key} could not be looked at again: ask once more when its host is well")
        finally:
            looked.cancel()
            late.cancel()
