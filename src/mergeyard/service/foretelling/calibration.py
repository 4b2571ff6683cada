"""Counts how often estimates held: the first that a pull request got, against the time at which it merged."""

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from msgspec import Struct

from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import Ticket
from mergeyard.domain.pulls import Submission
from mergeyard.domain.states import PrState
from mergeyard.ports.foretelling import Forecast
from mergeyard.ports.store import Store
from mergeyard.service import recalling
from mergeyard.service.measuring import ESTIMATES, ESTIMATES_HELD
from mergeyard.service.turn import Keeper

MOST = 1000
"""Of each queue: several times as many as are ever foretold at once."""

Promises = dict[Ticket, Expected]


class Held(Struct, frozen=True):
    """Of so many that merged, how many did so by the time that they were promised."""

    merged: int = 0
    by_middle: int = 0
    by_late: int = 0

    def __add__(self, other: "Held") -> "Held":
        return Held(self.merged + other.merged, self.by_middle + other.by_middle, self.by_late + other.by_late)


class Calibration:
    """Since the server started, of what was foretold here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._promises = WeakKeyDictionary[Keeper, Promises]()
        self._held = WeakKeyDictionary[Keeper, Held]()

    def of(self, keepers: Iterable[Keeper]) -> Held:
        return sum((self._held.get(keeper, Held()) for keeper in keepers), Held())

    def remember(self, keeper: Keeper, forecast: Forecast) -> None:
        """Later ones are easier to know, so only the first one counts. Whoever left meanwhile was promised nothing."""
        promises, here = self._promises.setdefault(keeper, {}), keeper.queue.submissions
        for ticket, foretold in forecast.items():
            if foretold is not None and ticket in here and len(promises) < MOST:
                promises.setdefault(ticket, foretold)

    async def compare(self, keeper: Keeper) -> None:
        """Whoever is not here any more has merged, or was promised a time for nothing."""
        promises = self._promises.get(keeper, {})
        for ticket in [ticket for ticket in promises if ticket not in keeper.queue.submissions]:
            stay = await recalling.stay(self._store, keeper.id, ticket)
            promised = promises.pop(ticket)
            if stay is not None:
                self._count(keeper, stay, promised)

    def _count(self, keeper: Keeper, stay: Submission, promised: Expected) -> None:
        """Whom somebody else merged, no queue could foretell."""
        if stay.state is not PrState.MERGED or stay.verified_by is None:
            return
        by_middle, by_late = stay.state_changed_at <= promised.middle, stay.state_changed_at <= promised.late
        self._held[keeper] = self.of([keeper]) + Held(1, by_middle, by_late)
        ESTIMATES.inc()
        ESTIMATES_HELD.labels("p50").inc(by_middle)
        ESTIMATES_HELD.labels("p90").inc(by_late)
