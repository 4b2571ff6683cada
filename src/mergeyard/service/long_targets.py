"""Encodes what a pull request impacts: a long list piece by piece, and once for all who store it.

An encoder that is given a hundred thousand names serves nobody else until it is done, on whichever thread it works.
"""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice

import msgspec

from mergeyard.domain.targets import Targets

TOGETHER = 1000

_encode = msgspec.json.Encoder().encode
_at_hand: dict[int, bytes] = {}
"""By the identity of targets that somebody holds on to meanwhile."""


def encoded(targets: Targets) -> bytes:
    known = _at_hand.get(id(targets))
    if known is not None:
        return known
    if len(targets.names) <= TOGETHER:
        return _encode(targets)
    return b"".join(_written(targets))


async def encoded_aside(targets: Targets) -> bytes:
    if len(targets.names) <= TOGETHER:
        return encoded(targets)
    return await asyncio.to_thread(encoded, targets)


@contextmanager
def at_hand(targets: Targets, body: bytes) -> Generator[None]:
    """Whoever stores these very targets meanwhile need not encode them again."""
    _at_hand[id(targets)] = body
    try:
        yield
    finally:
        _at_hand.pop(id(targets), None)


def _written(targets: Targets) -> Iterator[bytes]:
    before = b'{"names":['
    for some in _pieces(targets.names):
        yield before + _encode(some)[1:-1]
        before = b","
    yield b'],"everything":%b}' % _encode(targets.everything)


def _pieces(names: frozenset[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, TOGETHER)):
        yield some
