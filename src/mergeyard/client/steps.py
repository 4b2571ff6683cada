"""What a talk with the server is made of: something to send, a pause, and what was heard."""

from collections.abc import Generator, Mapping
from typing import TypeVar

from msgspec import Struct

Outcome = TypeVar("Outcome")


class Sending(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str]
    content: bytes | None
    headers: Mapping[str, str]
    seconds: float
    """So long an answer may take."""


class Pause(Struct, frozen=True):
    seconds: float


class Reply(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    retry_after: str | None = None


class Silence(Struct, frozen=True):
    """Nobody answered, or the answer broke off."""

    words: str


Talk = Generator[Sending | Pause, Reply | Silence | None, Outcome]
"""Says what to do next, is told what came of it, and ends with its outcome. After a pause there is nothing to tell."""
