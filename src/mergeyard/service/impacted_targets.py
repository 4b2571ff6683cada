"""Impacted targets in their stored encoding. A long list is decoded only where a queue needs it."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.pull_requests import ImpactedTargets

NAMES_PER_LINE = 1000
MAX_INLINE_DECODE_BYTES = 64 * 1024
"""Shorter bodies are decoded on the event loop: a thread would cost more."""
PREFIX, SEPARATOR, SUFFIX = b'{"names":[', b",\n", b'],"everything":false}'

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ImpactedTargets).decode
_decode_line = msgspec.json.Decoder(list[str]).decode


def encode_targets(targets: ImpactedTargets) -> bytes:
    if targets.everything or len(targets.names) <= NAMES_PER_LINE:
        return _encode(targets)
    first, *others = (_encode(chunk)[1:-1] for chunk in _split_into_chunks(targets.names))
    return b"".join([PREFIX, first, *(SEPARATOR + line for line in others), SUFFIX])


def decode_targets(body: bytes) -> ImpactedTargets:
    if SEPARATOR not in body:
        return _decode(body)
    return ImpactedTargets(frozenset(name for line in _split_lines(body) for name in _decode_line(line)))


def has_only_names(body: bytes, names: frozenset[str]) -> bool:
    """Whether all names of a long list are among `names`."""
    return all(names.issuperset(_decode_line(line)) for line in _split_lines(body))


async def decode_targets_in_thread(body: bytes) -> ImpactedTargets:
    if len(body) <= MAX_INLINE_DECODE_BYTES:
        return decode_targets(body)
    return await asyncio.to_thread(decode_targets, body)


async def free_targets_in_thread(last_references: list[ImpactedTargets]) -> None:
    """Frees long lists in a thread. The list must hold the last references and is emptied: a reference that is dropped
    elsewhere afterwards would free all names there, in one call."""
    if any(len(targets.names) > NAMES_PER_LINE for targets in last_references):
        await asyncio.to_thread(_free, last_references)


def _free(last_references: list[ImpactedTargets]) -> None:
    """Drops the sets first, then the names chunk by chunk. A set that is freed while other references to its names
    remain takes a third of the time."""
    chunks = [chunk for targets in last_references for chunk in _split_into_chunks(targets.names)]
    last_references.clear()
    while chunks:
        chunks.pop()


def _split_lines(body: bytes) -> Iterator[bytes]:
    start, end = len(PREFIX), len(body) - len(SUFFIX)
    while start < end:
        separator = body.find(SEPARATOR, start, end)
        line_end = end if separator < 0 else separator
        yield b"[%b]" % body[start:line_end]
        start = line_end + len(SEPARATOR)


def _split_into_chunks(names: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while chunk := list(islice(remaining, NAMES_PER_LINE)):
        yield chunk


class EncodedTargets(Struct, frozen=True):
    body: bytes
    count: int | None
    """None: ALL."""
    impacted_targets: ImpactedTargets | None = None
    """None: not decoded yet."""

    async def decode(self, known: ImpactedTargets | None = None) -> "EncodedTargets":
        """With decoded targets. If `known` is equal, that object is used, because later comparisons of two long lists
        are slow unless both are the same object."""
        if self.impacted_targets is not None:
            return self
        if known is not None and await self._equals(known):
            return replace(self, impacted_targets=known)
        return replace(self, impacted_targets=await decode_targets_in_thread(self.body))

    async def _equals(self, known: ImpactedTargets) -> bool:
        if known.everything or self.count != len(known.names):
            return False
        return await asyncio.to_thread(has_only_names, self.body, known.names)


def to_encoded_targets(targets: ImpactedTargets) -> EncodedTargets:
    return EncodedTargets(encode_targets(targets), None if targets.everything else len(targets.names), targets)
