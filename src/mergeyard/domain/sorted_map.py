"""A persistent sorted map: put and drop return a new map that shares almost all of the old one.

Keys are stored in chunks. A change copies one chunk and the list of chunks, a few hundred pointers each, so a change in
a map of 100,000 entries costs about as much as in a map of 100. Unlike a hash trie, order and rank need no extra work.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Comparable)
V = TypeVar("V")

MAX_CHUNK_SIZE = 512


class Chunk(Struct, Generic[K, V], frozen=True):
    keys: tuple[K, ...]
    values: tuple[V, ...]


class SortedMap(Struct, Generic[K, V], frozen=True):
    chunks: tuple[Chunk[K, V], ...] = ()
    last_keys: tuple[K, ...] = ()
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

    def nth(self, index: int) -> K:
        for chunk in self.chunks:
            if index < len(chunk.keys):
                return chunk.keys[index]
            index -= len(chunk.keys)
        raise IndexError(index)

    def rank(self, key: K) -> int:
        """How many keys are smaller than this one."""
        chunk_at, at = self._find(key)
        return sum(len(chunk.keys) for chunk in self.chunks[:chunk_at]) + at

    def entries_not_shared_with(self, other: "SortedMap[K, V]") -> dict[K, V]:
        """The entries in chunks that the other map does not share. All differences between the two are among them."""
        shared = set(map(id, other.chunks))
        apart = dict[K, V]()
        for chunk in self.chunks:
            if id(chunk) not in shared:
                apart.update(zip(chunk.keys, chunk.values, strict=True))
        return apart

    def put(self, key: K, value: V) -> "SortedMap[K, V]":
        chunk_at, at = self._find(key)
        if chunk_at == len(self.chunks):
            return self._append(key, value)
        chunk = self.chunks[chunk_at]
        if chunk.keys[at] != key:
            return self._replace_chunk(chunk_at, _insert(chunk, at, key, value), 1)
        replaced = Chunk(chunk.keys, (*chunk.values[:at], value, *chunk.values[at + 1 :]))
        return SortedMap((*self.chunks[:chunk_at], replaced, *self.chunks[chunk_at + 1 :]), self.last_keys, self.size)

    def drop(self, key: K) -> "SortedMap[K, V]":
        chunk_at, at = self._find(key)
        if not self._has_at(key, chunk_at, at):
            return self
        return self._replace_chunk(chunk_at, _remove(self.chunks[chunk_at], at), -1)

    def _seek(self, key: K) -> tuple[Chunk[K, V], int] | None:
        chunk_at = bisect_left(self.last_keys, key)
        if chunk_at == len(self.chunks):
            return None
        chunk = self.chunks[chunk_at]
        at = bisect_left(chunk.keys, key)
        return (chunk, at) if chunk.keys[at] == key else None

    def _find(self, key: K) -> tuple[int, int]:
        chunk_at = bisect_left(self.last_keys, key)
        if chunk_at == len(self.chunks):
            return chunk_at, 0
        return chunk_at, bisect_left(self.chunks[chunk_at].keys, key)

    def _has_at(self, key: K, chunk_at: int, at: int) -> bool:
        return chunk_at < len(self.chunks) and self.chunks[chunk_at].keys[at] == key

    def _append(self, key: K, value: V) -> "SortedMap[K, V]":
        """Adds a key greater than all others, as counters produce them: a full chunk stays as it is and a new one
        starts."""
        if not self.chunks or len(self.chunks[-1].keys) == MAX_CHUNK_SIZE:
            return SortedMap((*self.chunks, Chunk((key,), (value,))), (*self.last_keys, key), self.size + 1)
        last = self.chunks[-1]
        longer = Chunk((*last.keys, key), (*last.values, value))
        return SortedMap((*self.chunks[:-1], longer), (*self.last_keys[:-1], key), self.size + 1)

    def _replace_chunk(self, at: int, new: tuple[Chunk[K, V], ...], more: int) -> "SortedMap[K, V]":
        chunks = self.chunks[:at] + new + self.chunks[at + 1 :]
        lasts = self.last_keys[:at] + tuple(chunk.keys[-1] for chunk in new) + self.last_keys[at + 1 :]
        return SortedMap(chunks, lasts, self.size + more)


def _insert(chunk: Chunk[K, V], at: int, key: K, value: V) -> tuple[Chunk[K, V], ...]:
    keys = (*chunk.keys[:at], key, *chunk.keys[at:])
    values = (*chunk.values[:at], value, *chunk.values[at:])
    if len(keys) <= MAX_CHUNK_SIZE:
        return (Chunk(keys, values),)
    half = len(keys) // 2
    return Chunk(keys[:half], values[:half]), Chunk(keys[half:], values[half:])


def _remove(chunk: Chunk[K, V], at: int) -> tuple[Chunk[K, V], ...]:
    keys = chunk.keys[:at] + chunk.keys[at + 1 :]
    return (Chunk(keys, chunk.values[:at] + chunk.values[at + 1 :]),) if keys else ()
