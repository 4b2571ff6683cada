"""Makes secrets unreadable for whoever finds them in the database."""

from typing import Protocol


class SealTrouble(Exception):
    """There is no key, or not the one that it was sealed with; the words say what to do."""


class Seals(Protocol):
    def seal(self, plain: bytes, purpose: str, /) -> bytes:
        """Raises `SealTrouble`."""
        ...

    def open(self, sealed: bytes, purpose: str, /) -> bytes:
        """Only for the purpose that it was sealed for. Raises `SealTrouble`."""
        ...
