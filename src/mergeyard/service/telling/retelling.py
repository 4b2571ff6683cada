"""Tells what happened in one queue to whoever asks, and waits with the answer, if they like, until something does."""

from hashlib import blake2b

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.clock import Clock
from mergeyard.service.live import Live
from mergeyard.service.shelving import decode_record
from mergeyard.service.telling.events import Stories, Story
from mergeyard.service.yard import Yard

HALF_BITS = 29
"""A cursor has 58 bits, so that it fits into the 18 digits that clients may send."""
HALF = (1 << HALF_BITS) - 1
SEQ_BITS = 38
"""Enough for 270 billion entries. The other bits are zero, by which a cursor of another queue is recognized."""
ROUNDS = 6


class Told(Struct, frozen=True):
    """A story, and the cursor behind which the next one is."""

    cursor: int
    story: Story


class Retelling:
    def __init__(self, yard: Yard, stories: Stories, clock: Clock, live: Live) -> None:
        self._yard = yard
        self._stories = stories
        self._clock = clock
        self._live = live

    async def after(self, key: QueueKey, cursor: int, take: int, patience: int) -> list[Told]:
        """Oldest first. Whoever waits for a queue that is deleted hears of that, too."""
        keeper, until = await self._yard.keeper(key), Instant(self._clock.now() + patience)
        seq = decode_cursor(keeper.id, cursor)
        while True:
            seen, gone = keeper.queue, keeper.closed
            entries = await self._yard.store.entries(keeper.id, seq, take)
            if entries or gone or not await self._live.something_happens(keeper, seen, until):
                break
        stories = [await self._stories.of(key, keeper.id, decode_record(entry.body)) for entry in entries]
        cursors = [encode_cursor(keeper.id, entry.seq) for entry in entries]
        return [Told(*told) for told in zip(cursors, stories, strict=True)]


def encode_cursor(queue: QueueId, seq: int) -> int:
    """The cursor of an entry, from which a client learns nothing about other queues.

    The journal numbers the entries of all queues together. A Feistel network permutes that number under a key that only
    the database holds: the queue's id, which is random and which no answer contains. 0 means the beginning, so an entry
    that would get it gets what 0 itself is permuted to.
    """
    return _permute(queue, seq) or _permute(queue, 0)


def decode_cursor(queue: QueueId, cursor: int) -> int:
    """0, the beginning, for what is no cursor of this queue: one of a queue that was on the branch before, say."""
    if not 0 < cursor < 1 << 2 * HALF_BITS:
        return 0
    seq = _permute_back(queue, cursor) or _permute_back(queue, 0)
    return seq if seq < 1 << SEQ_BITS else 0


def _permute(queue: QueueId, number: int) -> int:
    left, right = number >> HALF_BITS, number & HALF
    for step in range(ROUNDS):
        left, right = right, left ^ _mix(queue, step, right)
    return left << HALF_BITS | right


def _permute_back(queue: QueueId, number: int) -> int:
    left, right = number >> HALF_BITS, number & HALF
    for step in reversed(range(ROUNDS)):
        left, right = right ^ _mix(queue, step, left), left
    return left << HALF_BITS | right


def _mix(queue: QueueId, step: int, half: int) -> int:
    digest = blake2b(half.to_bytes(4), digest_size=4, key=queue.encode()[:64], salt=step.to_bytes(1))
    return int.from_bytes(digest.digest()) & HALF
