"""Sends something to an address that somebody gave us, and reaches nothing else on the way."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class AddressRefused(Exception):
    """Nothing may be sent there; the words say what to change."""


class NotSent(Exception):
    """Nobody answered."""


class Response(Struct, frozen=True):
    status: int
    words: str
    """The beginning of what was answered."""


class Sender(Protocol):
    async def check(self, url: str) -> None:
        """Raises `AddressRefused`."""
        ...

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Once, and no further than there. Raises `AddressRefused` or `NotSent`."""
        ...
