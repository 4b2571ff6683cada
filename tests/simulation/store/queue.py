"""One queue as it is stored: what its turns wrote, and which of them wrote what."""

from collections.abc import Callable

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import HEADS_WITH_TARGETS, Changes, LoadedQueue, StoredQueue
from mergeyard.ports.writes import Fact, KeepTargets, SaveTurn
from tests.simulation.store.runs import Runs
from tests.simulation.store.stays import Stays

REMEMBERED_TURNS = 1000
"""For so many turns it is told what changed since."""

Place = tuple[str, str]
"""Shelf and key of a fact."""


class Touched(Struct, frozen=True):
    """What one turn wrote."""

    facts: set[Place]
    stays: set[Ticket]
    runs: set[RunId]


class QueueRecord:
    """A deleted one is found no more, but what it did remains."""

    def __init__(self, queue: QueueId, key: QueueKey) -> None:
        self.id = queue
        self.key = key
        self.deleted = False
        self.stays = Stays()
        self.runs = Runs()
        self.targets: dict[tuple[PrNumber, Sha], KeepTargets] = {}
        self._deleted_up_to = 0
        self._facts: dict[Place, bytes] = {}
        self._turns: list[Touched] = []

    @property
    def version(self) -> int:
        return len(self._turns)

    @property
    def stored(self) -> StoredQueue:
        return StoredQueue(self.id, self.key, self.version)

    def take_turn(self, turn: SaveTurn) -> None:
        """What a turn names twice is as it was named last, and dropping what was not there changes nothing."""
        facts = {(fact.shelf, fact.key): fact.body for fact in turn.facts}
        touched = {place for place, body in facts.items() if body is not None or place in self._facts}
        for place, body in facts.items():
            if body is None:
                self._facts.pop(place, None)
            else:
                self._facts[place] = body
        for stay in turn.stays:
            self.stays.put(stay)
        for run in turn.runs:
            self.runs.put(run)
        self._turns.append(Touched(touched, {stay.ticket for stay in turn.stays}, {run.id for run in turn.runs}))

    def keep_targets(self, kept: KeepTargets) -> None:
        self.targets[kept.number, kept.head] = kept
        others = [each for each in self.targets.values() if each.number == kept.number and each.head != kept.head]
        others.sort(key=lambda each: each.at, reverse=True)
        for older in others[HEADS_WITH_TARGETS - 1 :]:
            del self.targets[older.number, older.head]

    def delete_stay(self, ticket: Ticket) -> None:
        self.stays.delete(ticket)
        self._note_deleted(lambda turn: ticket in turn.stays)

    def delete_run(self, run: RunId) -> Sha | None:
        """The commit that it tested."""
        self._note_deleted(lambda turn: run in turn.runs)
        return self.runs.delete(run)

    def _note_deleted(self, wrote: Callable[[Touched], bool]) -> None:
        last = max(version for version, turn in enumerate(self._turns, 1) if wrote(turn))
        self._deleted_up_to = max(self._deleted_up_to, last)

    def delete(self) -> None:
        self.deleted = True
        self._facts.clear()
        self.targets.clear()

    def load(self) -> LoadedQueue:
        return LoadedQueue(
            version=self.version,
            facts=tuple(Fact(*place, body) for place, body in sorted(self._facts.items())),
            stays=self.stays.live(),
            runs=self.runs.live(),
        )

    def changes(self, after: int) -> Changes | None:
        oldest = max(self.version - REMEMBERED_TURNS, self._deleted_up_to)
        if self.deleted or not oldest <= after <= self.version:
            return None
        turns = self._turns[max(after, 0) :]
        facts = set[Place]().union(*(turn.facts for turn in turns))
        return Changes(
            version=self.version,
            facts=tuple(Fact(*place, self._facts.get(place)) for place in sorted(facts)),
            stays=self.stays.changed(set[Ticket]().union(*(turn.stays for turn in turns))),
            runs=self.runs.changed(set[RunId]().union(*(turn.runs for turn in turns))),
        )
