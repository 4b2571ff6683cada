"""Tells what happened in one queue to whoever asks, and waits with the answer, if they like, until something does."""

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.clock import Clock
from mergeyard.service.live import Live
from mergeyard.service.shelving import decode_record
from mergeyard.service.telling.events import Stories, Story
from mergeyard.service.yard import Yard


class Told(Struct, frozen=True):
    """A story, and its place in the journal."""

    seq: int
    story: Story


class Retelling:
    def __init__(self, yard: Yard, stories: Stories, clock: Clock, live: Live) -> None:
        self._yard = yard
        self._stories = stories
        self._clock = clock
        self._live = live

    async def after(self, key: QueueKey, seq: int, take: int, patience: int) -> list[Told]:
        """Oldest first. Whoever waits for a queue that is deleted hears of that, too."""
        keeper, until = await self._yard.keeper(key), Instant(self._clock.now() + patience)
        while True:
            seen, gone = keeper.queue, keeper.closed
            entries = await self._yard.store.entries(keeper.id, seq, take)
            if entries or gone or not await self._live.something_happens(keeper, seen, until):
                break
        return [Told(entry.seq, await self._stories.of(key, keeper.id, decode_record(entry.body))) for entry in entries]
