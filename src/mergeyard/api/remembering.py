"""Remembers answers about a queue for as long as it and its forecast stay the same: many ask, and little changes."""

from weakref import WeakKeyDictionary

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.domain.queue import Queue
from mergeyard.ports.foretelling import Forecast
from mergeyard.service.turn import Keeper

FRESH = 5 * SECOND
"""Waiting makes urgent, so the order may change without any turn: after this time everything is asked anew."""
MOST_ANSWERS = 1000

Answers = dict[PrNumber, bytes]


class Remembered:
    def __init__(self) -> None:
        self._known = WeakKeyDictionary[Keeper, tuple[Queue, Forecast, int, Answers]]()

    def answers(self, keeper: Keeper, now: Instant) -> Answers:
        """Those that are true now; what is put in is true for as long as the rest."""
        known = self._known.get(keeper)
        if (
            known is not None
            and known[0] is keeper.queue
            and known[1] is keeper.forecast
            and known[2] == now // FRESH
            and len(known[3]) < MOST_ANSWERS
        ):
            return known[3]
        answers = Answers()
        self._known[keeper] = (keeper.queue, keeper.forecast, now // FRESH, answers)
        return answers
