"""How often servers were killed at which boundary, and where they shall be killed next."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from msgspec import Struct

from tests.kills.boundaries import ANYWHERE, AT_BIRTH, StoreKind, boundaries, effect_of, weight

AT_A_TIME = 4
"""Among so many boundaries, the first that a server comes to is its end."""


class Aim(Struct, frozen=True):
    boundaries: dict[str, int]

    @property
    def effects(self) -> frozenset[str]:
        return frozenset(map(effect_of, self.boundaries))

    def aims_at(self, *effects: str) -> bool:
        return not self.effects.isdisjoint(effects)


NOWHERE = Aim({})


class Toll:
    def __init__(self, store: StoreKind, only: Sequence[str] = ()) -> None:
        self.store = store
        self.kills = Counter[str]()
        self.boundaries = [name for name in boundaries(store) if not only or name in (*only, ANYWHERE)]

    @property
    def spared(self) -> list[str]:
        """Boundaries at which nobody was killed."""
        return [name for name in self.boundaries if not self.kills[name]]

    def aim(self, random: Random) -> Aim:
        """Rather at those where few were killed. The first to be killed there is, as soon as it comes there."""
        left = [name for name in self.boundaries if name != ANYWHERE and effect_of(name) not in AT_BIRTH]
        return self._aim(random, left)

    def aim_at_birth(self, random: Random) -> Aim:
        return self._aim(random, [name for name in self.boundaries if effect_of(name) in AT_BIRTH])

    def _aim(self, random: Random, names: list[str]) -> Aim:
        chosen = dict[str, int]()
        while names and len(chosen) < AT_A_TIME:
            weights = [weight(name) / (1 + self.kills[name]) ** 2 for name in names]
            name = random.choices(names, weights)[0]
            names.remove(name)
            chosen[name] = random.randint(1, 1 + self.kills[name])
        return Aim(chosen)
