"""How far tellers told of each queue, and since when they have been unable to go on."""

from collections.abc import Iterable

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant


class Cursor(Struct):
    seq: int = 0
    stuck_since: Instant | None = None


UNTOLD = Cursor()


class Tellers:
    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._cursors: dict[str, dict[QueueId, Cursor]] = {}

    def cursor(self, teller: str, queue: QueueId) -> Cursor:
        return self._cursors.get(teller, {}).get(queue, UNTOLD)

    def begin(self, teller: str, ends: Iterable[tuple[QueueId, int]]) -> None:
        """Who has begun already, or has a place in a queue, keeps it."""
        if teller in self._begun:
            return
        self._begun.add(teller)
        places = self._cursors.setdefault(teller, {})
        for queue, end in ends:
            places.setdefault(queue, Cursor(end))

    def move(self, teller: str, queue: QueueId, seq: int) -> None:
        places = self._cursors.setdefault(teller, {})
        if queue not in places or seq > places[queue].seq:
            places[queue] = Cursor(seq)

    def has_all_read(self, queue: QueueId, seq: int) -> bool:
        return all(self.cursor(teller, queue).seq >= seq for teller in self._begun)

    def note_stuck(self, teller: str, queue: QueueId, at: Instant) -> None:
        cursor = self._cursors.setdefault(teller, {}).setdefault(queue, Cursor())
        if cursor.stuck_since is None:
            cursor.stuck_since = at

    def take_heart(self, teller: str) -> None:
        for cursor in self._cursors.get(teller, {}).values():
            cursor.stuck_since = None

    def forget(self, teller: str) -> None:
        self._begun.discard(teller)
        self._cursors.pop(teller, None)
