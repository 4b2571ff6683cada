"""Injects faults: each family of faults has a strength for a while."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from random import Random

SECOND = 1.0


class Family(StrEnum):
    """Each is enabled or disabled for a whole world."""

    KILLS = "kills"
    """A replica is killed between any two effects, and is started again."""
    FREEZES = "freezes"
    """A replica is stopped, and continues when others have taken over."""
    REFUSALS = "refusals"
    """The host responds with errors, or not at all."""
    LOST_REPLIES = "lost replies"
    """The host performed the request, and its response is lost."""
    SLOWNESS = "slowness"
    STALE_READS = "stale reads"
    """The host returns stale data."""
    LOST_NOTICES = "lost notices"
    """Notices of the host are lost, duplicated, late, reordered."""
    ODD_CI = "odd CI"
    """CI is silent, late, flaky, or contradicts itself."""
    FOREIGN_PUSHES = "foreign pushes"
    """The target branch is moved by others, forwards and backwards."""
    AUTHORS = "authors"
    """Authors push, close, retarget, and delete test branches."""
    CLOCKS = "clocks"
    """Clocks of replicas jump."""
    STORE = "store"
    """The store is unavailable, or its response to a commit is lost."""
    USER_REQUESTS = "user requests"
    """Users cancel, change priorities, pause, and change settings."""


class FaultInjector:
    def __init__(self, rng: Random, phase: Callable[[], str]) -> None:
        self._rng = rng
        self._phase = phase
        self._strengths: Counter[Family] = Counter()
        self.occurrences: Counter[tuple[Family, str]] = Counter()
        """How often each family occurred in each phase."""

    def start(self, family: Family, strength: int) -> None:
        """In percent of the calls that it can affect."""
        self._strengths[family] += strength

    def end(self, family: Family, strength: int) -> None:
        self._strengths[family] -= strength

    def clear(self) -> None:
        self._strengths.clear()

    def occurs(self, family: Family) -> bool:
        strength = self._strengths[family]
        if not strength or self._rng.random() * 100 >= strength:
            return False
        self.record(family)
        return True

    def record(self, family: Family) -> None:
        self.occurrences[family, self._phase()] += 1

    def delay(self, usual_delay: float) -> float:
        """In seconds, one way."""
        if self.occurs(Family.SLOWNESS):
            return self._rng.random() * 20 * SECOND
        return self._rng.random() * usual_delay
