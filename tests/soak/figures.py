"""What was measured in a soak, and what can be read off it."""

from collections import Counter
from collections.abc import Callable, Iterator
from statistics import fmean

from msgspec import Struct

from mergeyard.adapters.store_sqlite.connecting import CACHE_IN_KIB
from tests.soak.sampling import MIB, Disk, Sample
from tests.soak.trend import Slope, slope

WARM_UP = 0.25
"""Of the time, in which it is still being found out how much the machine carries."""
MOST_MEMORY = 320 * MIB
MEMORY_PER_THOUSAND = 2 * MIB
CACHE = CACHE_IN_KIB * 1024
"""So much of the database every connection keeps in memory: until the database is larger, the memory grows with it."""
ENOUGH = 1000
"""Of fewer pull requests neither the slope says anything, nor are all pools full."""
MOST_THREADS = 64
DESCRIPTORS_MORE = 8
THREADS_MORE = 4
"""What may differ between two moments of rest: connections that are kept open, and threads for them."""


class Stretch(Struct, frozen=True):
    """How things stood at the end of a minute, or of a shorter time where there is less of it."""

    seconds: float
    ended: int
    per_minute: float
    under_way: int
    last: Sample
    disk: Disk


class Figures(Struct, frozen=True, kw_only=True):
    stretches: list[Stretch]
    samples: list[Sample]
    idle_before: Sample
    idle_after: Sample
    milliseconds: dict[str, list[float]]
    states: Counter[str]
    landings: int
    webhooks: int
    seconds_until_clean: float
    """From the end of the last pull request to that of the last test branch, and from there to the last event."""
    seconds_until_told: float

    @property
    def warm(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * WARM_UP) :]

    @property
    def threads_when_warm(self) -> int:
        """At most: pools make their threads when they need them, and keep them."""
        return max(sample.threads for sample in self.samples[: 1 + int(len(self.samples) * WARM_UP)])

    @property
    def per_minute(self) -> float:
        return fmean(stretch.per_minute for stretch in self.stretches[int(len(self.stretches) * WARM_UP) :])

    @property
    def sated(self) -> list[Sample]:
        """Those from which on no cache grows any more; all, where too few of them are left to say anything."""
        sated = [sample for sample in self.warm if sample.database > CACHE]
        return sated if sated and sated[-1].ended - sated[0].ended >= ENOUGH else self.warm

    @property
    def is_sated(self) -> bool:
        return self.sated[0].database > CACHE

    @property
    def memory(self) -> Slope:
        """Bytes per thousand pull requests that ended."""
        return slope([sample.ended / 1000 for sample in self.sated], [sample.memory for sample in self.sated])

    @property
    def memory_by_hour(self) -> Slope:
        return slope([sample.seconds / 3600 for sample in self.sated], [sample.memory for sample in self.sated])

    def grown(self, size: Callable[[Disk], int]) -> float:
        """Per thousand pull requests that ended."""
        first, last = self.stretches[int(len(self.stretches) * WARM_UP)], self.stretches[-1]
        return 1000 * (size(last.disk) - size(first.disk)) / max(1, last.ended - first.ended)


def wrong_with(figures: Figures) -> Iterator[str]:
    before, after = figures.idle_before, figures.idle_after
    if (most := max(sample.memory for sample in figures.samples)) > MOST_MEMORY:
        yield f"memory went up to {most / MIB:.0f} MiB"
    if figures.is_sated and figures.memory.surely_more_than > MEMORY_PER_THOUSAND:
        yield f"memory grows by {figures.memory.each / MIB:.1f} MiB with every 1,000 pull requests that ended"
    if after.descriptors > before.descriptors + DESCRIPTORS_MORE:
        yield f"{before.descriptors} descriptors were open before, and {after.descriptors} afterwards"
    if (most := max(sample.threads for sample in figures.samples)) > MOST_THREADS:
        yield f"there were {most} threads at once"
    if figures.samples[-1].ended >= ENOUGH and after.threads > figures.threads_when_warm + THREADS_MORE:
        yield f"there were {figures.threads_when_warm} threads when it was warm, and {after.threads} afterwards"
    if after.zombies or after.children > before.children:
        left = f"{before.children} other processes were there before, and {after.children} afterwards"
        yield f"{left}, {after.zombies} of them dead and not buried"
