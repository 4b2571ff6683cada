"""A sorted map that never changes: putting and dropping give a new map that shares almost all of the old one.

Keys lie in chunks. A change copies one chunk and the list of chunks, some hundred pointers each, so a map of
100,000 entries costs about what a map of 100 does, and order and rank come for free, which a hash trie
would not give.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Comparable)
V = TypeVar("V")

FULL = 512


class Chunk(Struct, Generic[K, V], frozen=True):
    keys: tuple[K, ...]
    values: tuple[V, ...]


class SortedMap(Struct, Generic[K, V], frozen=True):
    chunks: tuple[Chunk[K, V], ...] = ()
    lasts: tuple[K, ...] = ()
    """The last key of every chunk."""
    size: int = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[K]:
        return (key for chunk in self.chunks for key in chunk.keys)

    def __contains__(self, key: K) -> bool:
        return self._seek(key) is not None

    def __getitem__(self, key: K) -> V:
        found = self._seek(key)
        if found is None:
            raise KeyError(key)
        return found[0].values[found[1]]

    def get(self, key: K) -> V | None:
        found = self._seek(key)
        return None if found is None else found[0].values[found[1]]

    def values(self) -> Iterator[V]:
        return (value for chunk in self.chunks for value in chunk.values)

    def first(self) -> K | None:
        return self.chunks[0].keys[0] if self.chunks else None

    def nth(self, place: int) -> K:
        for chunk in self.chunks:
            if place < len(chunk.keys):
                return chunk.keys[place]
            place -= len(chunk.keys)
        raise IndexError(place)

    def rank(self, key: K) -> int:
        """How many keys stand before this one."""
        chunk_at, at = self._find(key)
        return sum(len(chunk.keys) for chunk in self.chunks[:chunk_at]) + at

    def apart_from(self, other: "SortedMap[K, V]") -> dict[K, V]:
        """All that lies in chunks which the other does not share: nowhere else can they differ."""
        shared = set(map(id, other.chunks))
        apart = dict[K, V]()
        for chunk in self.chunks:
            if id(chunk) not in shared:
                apart.update(zip(chunk.keys, chunk.values, strict=True))
        return apart

    def put(self, key: K, value: V) -> "SortedMap[K, V]":
        chunk_at, at = self._find(key)
        if chunk_at == len(self.chunks):
            return self._appended(key, value)
        chunk = self.chunks[chunk_at]
        if chunk.keys[at] != key:
            return self._with(chunk_at, _inserted(chunk, at, key, value), 1)
        replaced = Chunk(chunk.keys, (*chunk.values[:at], value, *chunk.values[at + 1 :]))
        return SortedMap((*self.chunks[:chunk_at], replaced, *self.chunks[chunk_at + 1 :]), self.lasts, self.size)

    def drop(self, key: K) -> "SortedMap[K, V]":
        chunk_at, at = self._find(key)
        if not self._holds(key, chunk_at, at):
            return self
        return self._with(chunk_at, _removed(self.chunks[chunk_at], at), -1)

    def _seek(self, key: K) -> tuple[Chunk[K, V], int] | None:
        chunk_at = bisect_left(self.lasts, key)
        if chunk_at == len(self.chunks):
            return None
        chunk = self.chunks[chunk_at]
        at = bisect_left(chunk.keys, key)
        return (chunk, at) if chunk.keys[at] == key else None

    def _find(self, key: K) -> tuple[int, int]:
        chunk_at = bisect_left(self.lasts, key)
        if chunk_at == len(self.chunks):
            return chunk_at, 0
        return chunk_at, bisect_left(self.chunks[chunk_at].keys, key)

    def _holds(self, key: K, chunk_at: int, at: int) -> bool:
        return chunk_at < len(self.chunks) and self.chunks[chunk_at].keys[at] == key

    def _appended(self, key: K, value: V) -> "SortedMap[K, V]":
        """Behind all others, as what is numbered comes: a full chunk stays as it is, and the next one begins."""
        if not self.chunks or len(self.chunks[-1].keys) == FULL:
            return SortedMap((*self.chunks, Chunk((key,), (value,))), (*self.lasts, key), self.size + 1)
        last = self.chunks[-1]
        longer = Chunk((*last.keys, key), (*last.values, value))
        return SortedMap((*self.chunks[:-1], longer), (*self.lasts[:-1], key), self.size + 1)

    def _with(self, at: int, new: tuple[Chunk[K, V], ...], more: int) -> "SortedMap[K, V]":
        chunks = self.chunks[:at] + new + self.chunks[at + 1 :]
        lasts = self.lasts[:at] + tuple(chunk.keys[-1] for chunk in new) + self.lasts[at + 1 :]
        return SortedMap(chunks, lasts, self.size + more)


def _inserted(chunk: Chunk[K, V], at: int, key: K, value: V) -> tuple[Chunk[K, V], ...]:
    keys = (*chunk.keys[:at], key, *chunk.keys[at:])
    values = (*chunk.values[:at], value, *chunk.values[at:])
    if len(keys) <= FULL:
        return (Chunk(keys, values),)
    half = len(keys) // 2
    return Chunk(keys[:half], values[:half]), Chunk(keys[half:], values[half:])


def _removed(chunk: Chunk[K, V], at: int) -> tuple[Chunk[K, V], ...]:
    keys = chunk.keys[:at] + chunk.keys[at + 1 :]
    return (Chunk(keys, chunk.values[:at] + chunk.values[at + 1 :]),) if keys else ()
