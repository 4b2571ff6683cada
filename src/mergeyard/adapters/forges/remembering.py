"""Remembers answers by their tags, so that asking for what has not changed costs nothing."""

from collections import OrderedDict

from msgspec import Struct

MOST_BYTES = 32 * 1024 * 1024
BYTES_BESIDE = 500
"""What an answer takes up besides its contents, about."""


class Remembered(Struct, frozen=True):
    tag: str
    link: str
    body: bytes


class Remembering:
    """Forgets what was not asked for the longest when it holds too much."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held = 0
        self._answers = OrderedDict[str, Remembered]()

    def get(self, address: str) -> Remembered | None:
        known = self._answers.get(address)
        if known is not None:
            self._answers.move_to_end(address)
        return known

    def keep(self, address: str, answer: Remembered) -> None:
        self._drop(address)
        self._answers[address] = answer
        self._held += _size(address, answer)
        while self._held > self._most_bytes:
            self._drop(next(iter(self._answers)))

    def _drop(self, address: str) -> None:
        gone = self._answers.pop(address, None)
        self._held -= 0 if gone is None else _size(address, gone)


def _size(address: str, answer: Remembered) -> int:
    return BYTES_BESIDE + len(address) + len(answer.body)
