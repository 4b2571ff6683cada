"""Finds out how many pull requests must be under way for the machine to carry as much as it can."""

from msgspec import Struct

WORTH_IT = 1.1
FEWEST, MOST = 8, 128


class Pacing(Struct):
    """Twice as many, as long as that brings a tenth more."""

    under_way: int = FEWEST
    best: float = 0.0
    settled: bool = False

    def consider(self, per_minute: float) -> None:
        if self.settled:
            return
        if per_minute < WORTH_IT * self.best:
            self.under_way //= 2
            self.settled = True
        elif self.under_way == MOST:
            self.settled = True
        else:
            self.best = per_minute
            self.under_way *= 2
