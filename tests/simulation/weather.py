"""What is wrong with the world right now: families of faults, each with a strength, for a while."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from random import Random

SECOND = 1.0


class Family(StrEnum):
    """Each is fully on or off in a world."""

    KILLS = "kills"
    """A replica is killed between any two effects, and another one begins."""
    FREEZES = "freezes"
    """A replica is stopped, and woken when others have taken over."""
    REFUSALS = "refusals"
    """The host answers with errors, or not at all."""
    LOST_REPLIES = "lost replies"
    """The host did it, and nobody was told."""
    SLOWNESS = "slowness"
    STALE_READS = "stale reads"
    """The host shows what was true a while ago."""
    LOST_NEWS = "lost news"
    """Messages of the host get lost, come twice, late, in another order."""
    ODD_CI = "odd CI"
    """It is silent, late, flaky, contradicts itself."""
    FOREIGN_PUSHES = "foreign pushes"
    """Somebody moves the target, forwards and backwards."""
    AUTHORS = "authors"
    """They push, close, retarget, and delete test branches."""
    CLOCKS = "clocks"
    """Of replicas; they jump."""
    STORE = "store"
    """It is gone, or full, or its word of a commit is lost."""
    STORMS = "storms"
    """Of cancels, priorities, pauses, other settings."""


class Weather:
    def __init__(self, rng: Random, phase: Callable[[], str]) -> None:
        self._rng = rng
        self._phase = phase
        self._strengths: Counter[Family] = Counter()
        self.struck: Counter[tuple[Family, str]] = Counter()
        """How often which family struck, and in which phase."""

    def begin(self, family: Family, strength: int) -> None:
        """In percent of the calls that it can hit."""
        self._strengths[family] += strength

    def end(self, family: Family, strength: int) -> None:
        self._strengths[family] -= strength

    def clear_up(self) -> None:
        self._strengths.clear()

    def strikes(self, family: Family) -> bool:
        strength = self._strengths[family]
        if not strength or self._rng.random() * 100 >= strength:
            return False
        self.note(family)
        return True

    def note(self, family: Family) -> None:
        self.struck[family, self._phase()] += 1

    def delay(self, usual: float) -> float:
        """In seconds, one way."""
        if self.strikes(Family.SLOWNESS):
            return self._rng.random() * 20 * SECOND
        return self._rng.random() * usual
