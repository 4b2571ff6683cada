"""What is known of the heads in one repository, and which of them its targets hold already."""

import asyncio
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Sha


class Held(Struct, frozen=True):
    """The heads that are part of a target, as of its tip."""

    tip: Sha
    heads: frozenset[Sha]


class Landscape:
    def __init__(self) -> None:
        self.surveying = asyncio.Lock()
        self.surveyed = False
        self.held: dict[str, Held] = {}
        """By the ref of the target."""
        self._heads: dict[PrNumber, Sha] = {}
        self._numbers: dict[Sha, tuple[PrNumber, ...]] = {}
        self._glimpsed = set[PrNumber]()
        """Seen since the last survey: nobody knows yet who holds them."""

    @property
    def numbers(self) -> Collection[PrNumber]:
        return self._heads.keys()

    def numbers_of(self, head: Sha) -> Collection[PrNumber]:
        return self._numbers.get(head, ())

    def among(self, commits: Iterable[Sha]) -> frozenset[Sha]:
        """Those that are heads of pull requests."""
        return frozenset(commit for commit in commits if commit in self._numbers)

    def unseen(self, heads: Mapping[PrNumber, Sha]) -> list[PrNumber]:
        return [number for number, head in heads.items() if not self._has_compared(number, head)]

    def holds(self, target: str, tip: Sha, number: PrNumber, head: Sha) -> bool | None:
        """None: nobody has looked."""
        held = self.held.get(target)
        if held is None or held.tip != tip or not self._has_compared(number, head):
            return None
        return head in held.heads

    def glimpse(self, number: PrNumber, head: Sha) -> None:
        if self._heads.get(number) != head:
            self._note(number, head)
            self._glimpsed.add(number)

    def take_in(self, found: Mapping[PrNumber, Sha], held: Mapping[str, Held]) -> None:
        """What a survey found, all of it compared with the targets."""
        for number, head in found.items():
            self._note(number, head)
        self._glimpsed -= found.keys()
        self.held.update(held)
        self.surveyed = True

    def forget_all_but(self, *there: Collection[PrNumber]) -> None:
        for number in (self._heads.keys() - self._glimpsed).difference(*there):
            self._leave(number)

    def _has_compared(self, number: PrNumber, head: Sha) -> bool:
        return self._heads.get(number) == head and number not in self._glimpsed

    def _note(self, number: PrNumber, head: Sha) -> None:
        if number in self._heads:
            self._leave(number)
        self._heads[number] = head
        self._numbers[head] = (*self._numbers.get(head, ()), number)

    def _leave(self, number: PrNumber) -> None:
        head = self._heads.pop(number)
        others = tuple(other for other in self._numbers.pop(head) if other != number)
        if others:
            self._numbers[head] = others
