"""Impacted targets in their stored encoding. A thread decodes and frees a long list: both hold the GIL for a while."""

import asyncio
from itertools import islice

import msgspec
from msgspec import Struct

from mergeyard.domain.pull_requests import ImpactedTargets

MAX_INLINE_DECODE_BYTES = 64 * 1024
"""Shorter bodies are decoded on the event loop: a thread would cost more."""
CHUNK_SIZE = 1000
"""Names that are added to a set, or freed, at once: a longer call would hold the GIL and delay other requests."""

encode_targets = msgspec.json.Encoder().encode
decode_targets = msgspec.json.Decoder(ImpactedTargets).decode


class EncodedTargets(Struct, frozen=True):
    """Uploaded targets with their stored encoding, so that a long list is not encoded again."""

    body: bytes
    impacted_targets: ImpactedTargets


def collect_names(names: list[str]) -> frozenset[str]:
    """The names that are not empty. The set has computed its hash: two long lists with different hashes are compared
    without their names."""
    unique = set[str]()
    for first in range(0, len(names), CHUNK_SIZE):
        unique.update(names[first : first + CHUNK_SIZE])
    unique.discard("")
    collected = frozenset(unique)
    hash(collected)
    return collected


async def decode_targets_in_thread(body: bytes) -> ImpactedTargets:
    if len(body) <= MAX_INLINE_DECODE_BYTES:
        return decode_targets(body)
    return await asyncio.to_thread(decode_targets, body)


async def free_targets_in_thread(last_references: list[ImpactedTargets]) -> None:
    """Frees long lists in a thread. The list must hold the last references and is emptied: a reference that is dropped
    elsewhere afterwards would free all names there, in one call."""
    if any(len(targets.names) > CHUNK_SIZE for targets in last_references):
        await asyncio.to_thread(_free, last_references)


def _free(last_references: list[ImpactedTargets]) -> None:
    """Drops the sets first, then the names chunk by chunk. A set that is freed while other references to its names
    remain takes a third of the time."""
    names = [iter(targets.names) for targets in last_references]
    chunks = [chunk for each in names for chunk in iter(lambda each=each: list(islice(each, CHUNK_SIZE)), [])]
    names.clear()
    last_references.clear()
    while chunks:
        chunks.pop()
