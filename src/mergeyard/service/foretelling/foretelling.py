"""Keeps the forecasts of all queues fresh, one queue at a time, without ever holding up a turn."""

from weakref import WeakKeyDictionary

import structlog

from mergeyard.domain.instants import MINUTE, SECOND, Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.ports.foretelling import NOTHING_FORETOLD, Foreteller, ForetellingTrouble
from mergeyard.service.foretelling.calibration import Calibration
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard
from mergeyard.sim.foretelling.asking import to_foretell

log = structlog.get_logger()

INTERVAL = 2 * SECOND
SHORTEST_REST = 5 * SECOND
REST = 10
"""So many times as long as a forecast took its queue gets no other: it never takes more than a tenth of a core."""
REST_AFTER_TROUBLE = 5 * MINUTE
STALE = MINUTE
"""Also where nothing happens time passes, and a run that is still under way is not one of the quick ones."""
AT_ONCE, NEVER = Instant(0), Instant(2**63)


class Foretelling:
    def __init__(self, yard: Yard, foreteller: Foreteller, calibration: Calibration) -> None:
        self._yard = yard
        self._foreteller = foreteller
        self._calibration = calibration
        self._due = WeakKeyDictionary[Keeper, Instant]()
        self._rested = WeakKeyDictionary[Keeper, Instant]()

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        if before is not keeper.queue:
            self._due[keeper] = self._rested.get(keeper, AT_ONCE)

    async def look_around(self) -> None:
        """One after the other, each as it is when its turn comes."""
        for keeper in self._yard:
            if self._due.get(keeper, AT_ONCE) <= self._yard.clock.now():
                await self._renew(keeper)

    async def close(self) -> None:
        await self._foreteller.close()

    async def _renew(self, keeper: Keeper) -> None:
        await self._calibration.compare(keeper)
        self._due[keeper] = NEVER
        asked = to_foretell(keeper.queue)
        if asked is None:
            keeper.forecast = NOTHING_FORETOLD
            return
        rest = await self._foretell(keeper, asked)
        self._calibration.remember(keeper, keeper.forecast)
        self._rested[keeper] = later(self._yard.clock.now(), rest)
        changed_meanwhile = self._due[keeper] != NEVER
        self._due[keeper] = later(self._rested[keeper], 0 if changed_meanwhile else STALE)

    async def _foretell(self, keeper: Keeper, asked: Queue) -> int:
        """For how long it is to rest."""
        begun = self._yard.clock.now()
        try:
            keeper.forecast = await self._foreteller.foretell(asked, begun)
        except ForetellingTrouble as trouble:
            log.warning("nothing is foretold", queue=str(keeper.key), words=str(trouble))
            keeper.forecast = NOTHING_FORETOLD
            return REST_AFTER_TROUBLE
        return max(SHORTEST_REST, REST * (self._yard.clock.now() - begun))
