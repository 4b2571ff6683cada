"""Who vouches for people: a provider of identities, where they sign in instead of with a token."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Person(Struct, frozen=True):
    name: str
    groups: frozenset[str] = frozenset()
    subject: str = ""
    """Issuer and `sub`: names the same person for good, while the name may change."""


class Departure(Struct, frozen=True):
    """Where a browser goes to sign in, and what it carries until it comes back: unreadable, and good for a while."""

    address: str
    luggage: str


class Arrival(Struct, frozen=True):
    person: Person
    there: str
    """The page that they wanted to see."""


class NotVouchedFor(Exception):
    """The provider does not speak for this visitor; the words tell the visitor why, and what to do."""


class IdentityTrouble(Exception):
    """The provider cannot be asked, or is not understood; the words tell the visitor, `detail` tells the operator."""

    def __init__(self, words: str, detail: str) -> None:
        super().__init__(words)
        self.detail = detail


class Identities(Protocol):
    async def departure(self, there: str, /) -> Departure:
        """Raises `IdentityTrouble`."""
        ...

    async def arrival(self, answer: Mapping[str, str], luggage: str, /) -> Arrival:
        """Who came back, by what the provider sent along. Raises `NotVouchedFor` and `IdentityTrouble`."""
        ...
