"""Finds the number of pull requests in progress with the highest throughput."""

from msgspec import Struct

MIN_GAIN = 1.1
MIN_UNDER_WAY, MAX_UNDER_WAY = 8, 128


class LoadController(Struct):
    """Doubles the number as long as the throughput grows by a tenth."""

    under_way: int = MIN_UNDER_WAY
    best: float = 0.0
    settled: bool = False

    def adjust(self, per_minute: float) -> None:
        if self.settled:
            return
        if per_minute < MIN_GAIN * self.best:
            self.under_way //= 2
            self.settled = True
        elif self.under_way == MAX_UNDER_WAY:
            self.settled = True
        else:
            self.best = per_minute
            self.under_way *= 2
