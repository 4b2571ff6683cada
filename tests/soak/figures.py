"""The measurements of a soak, and the checks of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from statistics import fmean, linear_regression

from msgspec import Struct

from mergeyard.adapters.store_sqlite.connection import CACHE_KIB
from tests.soak.samples import MIB, Disk, Sample

BLOCKS = 12
"""Samples are correlated in time: they are averaged in blocks, so that the error is not underestimated."""
CONFIDENCE_FACTOR = 2.2
"""Standard errors of a 95 % confidence interval, with this number of blocks."""


class Slope(Struct, frozen=True):
    value: float
    error: float

    @property
    def lower_bound(self) -> float:
        return self.value - CONFIDENCE_FACTOR * self.error

    def times(self, factor: float) -> "Slope":
        return Slope(self.value * factor, self.error * factor)


def estimate_slope(across: Sequence[float], up: Sequence[float]) -> Slope:
    xs, ys = in_blocks(across), in_blocks(up)
    if len(xs) < 3 or min(xs) == max(xs):
        return Slope(0.0, float("inf"))
    fit = linear_regression(xs, ys)
    residuals = sum((y - fit.intercept - fit.slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    spread = sum((x - fmean(xs)) ** 2 for x in xs)
    return Slope(fit.slope, sqrt(residuals / (len(xs) - 2) / spread))


def in_blocks(values: Sequence[float]) -> list[float]:
    size = max(1, len(values) // BLOCKS)
    return [fmean(values[at : at + size]) for at in range(0, len(values) - size + 1, size)]


WARM_UP = 0.25
"""The share of the time in which the load is still being adjusted."""
MAX_MEMORY = 320 * MIB
MAX_MEMORY_PER_THOUSAND = 2 * MIB
CACHE = CACHE_KIB * 1024
"""Bytes of the database that every connection caches: until the database is larger, the memory grows with it."""
MIN_PULL_REQUESTS = 1000
"""With fewer pull requests the slope is not meaningful and the pools are not full."""
MAX_THREADS = 64
DESCRIPTORS_MORE = 8
THREADS_MORE = 4
"""Allowed difference between two idle moments: connections that are kept open, and their threads."""


class Interval(Struct, frozen=True):
    """The measurements at the end of a minute, or of a shorter interval in a short soak."""

    seconds: float
    ended: int
    per_minute: float
    under_way: int
    last: Sample
    disk: Disk


class SoakResult(Struct, frozen=True, kw_only=True):
    intervals: list[Interval]
    samples: list[Sample]
    idle_before: Sample
    idle_after: Sample
    milliseconds: dict[str, list[float]]
    states: Counter[str]
    landings: int
    webhooks: int
    seconds_until_clean: float
    """From the end of the last submission until the last test branch is deleted."""
    seconds_until_delivered: float
    """From then until the last event is delivered."""

    @property
    def warm_samples(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * WARM_UP) :]

    @property
    def threads_when_warm(self) -> int:
        """The maximum: pools create threads on demand and keep them."""
        return max(sample.threads for sample in self.samples[: 1 + int(len(self.samples) * WARM_UP)])

    @property
    def per_minute(self) -> float:
        return fmean(stretch.per_minute for stretch in self.intervals[int(len(self.intervals) * WARM_UP) :])

    @property
    def with_full_caches(self) -> list[Sample]:
        """The samples with full caches; all samples if too few of them are left."""
        full = [sample for sample in self.warm_samples if sample.database > CACHE]
        return full if full and full[-1].ended - full[0].ended >= MIN_PULL_REQUESTS else self.warm_samples

    @property
    def has_full_caches(self) -> bool:
        return self.with_full_caches[0].database > CACHE

    @property
    def memory(self) -> Slope:
        """Bytes per thousand concluded pull requests."""
        return estimate_slope(
            [sample.ended / 1000 for sample in self.with_full_caches],
            [sample.memory for sample in self.with_full_caches],
        )

    @property
    def memory_by_hour(self) -> Slope:
        return estimate_slope(
            [sample.seconds / 3600 for sample in self.with_full_caches],
            [sample.memory for sample in self.with_full_caches],
        )

    def growth(self, size: Callable[[Disk], int]) -> float:
        """Growth per thousand concluded pull requests."""
        first, last = self.intervals[int(len(self.intervals) * WARM_UP)], self.intervals[-1]
        return 1000 * (size(last.disk) - size(first.disk)) / max(1, last.ended - first.ended)


def failed_resource_checks(figures: SoakResult) -> Iterator[str]:
    before, after = figures.idle_before, figures.idle_after
    if (most := max(sample.memory for sample in figures.samples)) > MAX_MEMORY:
        yield f"memory reached {most / MIB:.0f} MiB"
    if figures.has_full_caches and figures.memory.lower_bound > MAX_MEMORY_PER_THOUSAND:
        yield f"memory grows by {figures.memory.value / MIB:.1f} MiB per 1,000 concluded pull requests"
    if after.descriptors > before.descriptors + DESCRIPTORS_MORE:
        yield f"{before.descriptors} descriptors were open before the traffic and {after.descriptors} after it"
    if (most := max(sample.threads for sample in figures.samples)) > MAX_THREADS:
        yield f"there were {most} threads"
    if figures.samples[-1].ended >= MIN_PULL_REQUESTS and after.threads > figures.threads_when_warm + THREADS_MORE:
        yield f"there were {figures.threads_when_warm} threads after the warm-up and {after.threads} after the traffic"
    if after.zombies or after.children > before.children:
        counts = f"{before.children} child processes before the traffic and {after.children} after it"
        yield f"{counts}, {after.zombies} of them zombies"
