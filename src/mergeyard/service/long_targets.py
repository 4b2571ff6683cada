"""Writes, reads and frees what a pull request impacts: a long list line by line.

Whoever makes, hashes or frees a hundred thousand names at once serves nobody else until it is done, on whichever thread
it works. No name holds a line break as it is written, so a long list is taken apart at them without being read.
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from mergeyard.domain.targets import Targets

TOGETHER = 1000
FEW_BYTES = 64 * 1024
"""Read on the spot: a thread would cost more."""
BEFORE, SEAM, BEHIND = b'{"names":[', b",\n", b'],"everything":false}'

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Targets).decode
_decode_line = msgspec.json.Decoder(list[str]).decode


def encoded(targets: Targets) -> bytes:
    if targets.everything or len(targets.names) <= TOGETHER:
        return _encode(targets)
    first, *others = (_encode(some)[1:-1] for some in _pieces(targets.names))
    return b"".join([BEFORE, first, *(SEAM + line for line in others), BEHIND])


def decoded(body: bytes) -> Targets:
    if SEAM not in body:
        return _decode(body)
    return Targets(frozenset(name for line in _lines(body) for name in _decode_line(line)))


def is_within(body: bytes, names: frozenset[str]) -> bool:
    return all(names.issuperset(_decode_line(line)) for line in _lines(body))


async def decoded_aside(body: bytes) -> Targets:
    if len(body) <= FEW_BYTES:
        return decoded(body)
    return await asyncio.to_thread(decoded, body)


async def free_aside(last_holds: list[Targets]) -> None:
    """They are taken out of the list, for nobody else may hold them: whoever lets go last frees all of them at once."""
    if any(len(targets.names) > TOGETHER for targets in last_holds):
        await asyncio.to_thread(_free, last_holds)


def _free(last_holds: list[Targets]) -> None:
    """A set that is freed before its names only lets them go, which takes a third of the time."""
    pieces = [piece for targets in last_holds for piece in _pieces(targets.names)]
    last_holds.clear()
    while pieces:
        pieces.pop()


def _lines(body: bytes) -> Iterator[bytes]:
    start, end = len(BEFORE), len(body) - len(BEHIND)
    while start < end:
        seam = body.find(SEAM, start, end)
        line_end = end if seam < 0 else seam
        yield b"[%b]" % body[start:line_end]
        start = line_end + len(SEAM)


def _pieces(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, TOGETHER)):
        yield some
