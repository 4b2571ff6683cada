"""Reads large bodies for the door, in a place where nobody else waits until it is done."""

from typing import Protocol


class ScribeTrouble(Exception):
    """Nothing was read: whoever asked must do it."""


class Scribe(Protocol):
    def read(self, question: bytes, body: bytes | bytearray) -> tuple[bytes, bytes]:
        """What it says of the body in a few words, and the long part of it. Blocks; raises `ScribeTrouble`."""
        ...

    async def close(self) -> None: ...
